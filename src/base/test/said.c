/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of an answer in the reader's language, wherever they stand in it. */
#include "base/said.h"

#include <string.h>

#include "base/str.h"
#include "base/unit.h"

static json_t *said(const char *text, enum message_language language)
{
    json_t *v = NULL;
    assert_int_equal(json_parse(text, strlen(text), 1 << 16, &v, NULL), 0);
    said_in(v, language);
    return v;
}

static void expect(const char *text, const char *member, const char *want)
{
    json_t *v = said(text, MESSAGE_CHINESE);
    assert_string_equal(json_get_str(json_get_object(v, "reason"), member, ""), want);
    json_decref(v);
}

static void test_messages_are_said(void **state)
{
    (void)state;
    expect(
        "{\"reason\":{\"code\":\"root_not_mounted\",\"args\":{\"root\":\"/r\"},\"text\":\"x\",\"fix\":\"y\"}}",
        "text", "共享根 '/r' 不存在");
    expect(
        "{\"reason\":{\"code\":\"root_not_mounted\",\"args\":{\"root\":\"/r\"},\"text\":\"x\",\"fix\":\"y\"}}",
        "fix", "在那里以相同路径挂载：'/r'");
    expect("{\"reason\":{\"code\":\"hint_job_end\",\"args\":{\"job\":null},\"text\":\"x\"}}",
           "text", "别人的作业结束后启动");
    json_t *list =
        said("[{\"a\":[{\"code\":\"held\",\"args\":{},\"detail\":\"x\"}]}]", MESSAGE_CHINESE);
    const json_t *in = json_array_get(json_get_array(json_array_get(list, 0), "a"), 0);
    assert_string_equal(json_get_str(in, "detail", ""), "已挂起，等待释放");
    json_decref(list);
}

static void test_a_text_is_said(void **state)
{
    (void)state;
    static const char told[] = "{\"code\":\"held\",\"args\":{},\"detail\":\"x\"}";
    _cleanup_(freep) char *same = said_in_text(told, MESSAGE_ENGLISH);
    _cleanup_(freep) char *other = said_in_text(told, MESSAGE_CHINESE);
    _cleanup_(freep) char *none = said_in_text("{\"code\":", MESSAGE_CHINESE);
    assert_string_equal(same, told);
    assert_null(strstr(other, "\"x\""));
    assert_non_null(strstr(other, "\"code\":\"held\""));
    assert_string_equal(none, "{\"code\":");
    assert_null(said_in_text(NULL, MESSAGE_CHINESE));
}

static void test_advice_is_said(void **state)
{
    (void)state;
    expect("{\"reason\":{\"advice_code\":\"hydra-assert\",\"advice\":\"x\"}}", "advice", "x");
    expect("{\"reason\":{\"advice_code\":\"fact-shm-full\",\"advice\":\"their own\"}}", "advice",
           "their own");
    expect(
        "{\"reason\":{\"advice_code\":\"fact-shm-full\",\"advice\":\"give the container a larger "
        "/dev/shm, or use fewer loader workers\"}}",
        "advice", "给容器更大的 /dev/shm，或减少加载进程");
    expect("{\"reason\":{\"advice_code\":\"port-taken\",\"advice\":null}}", "advice", "");
}

/* A code of a newer server, arguments that no sentence has, no arguments: the server's words. */
static void test_the_rest_stays(void **state)
{
    (void)state;
    expect("{\"reason\":{\"code\":\"newer\",\"args\":{\"a\":1},\"text\":\"its words\"}}", "text",
           "its words");
    expect("{\"reason\":{\"code\":\"hint_pool\",\"args\":{},\"text\":\"its words\"}}", "text",
           "its words");
    expect("{\"reason\":{\"code\":\"held\",\"args\":null,\"text\":\"its words\"}}", "text",
           "its words");
    expect("{\"reason\":{\"code\":7,\"args\":{},\"text\":\"its words\"}}", "text", "its words");
    json_t *v = said("{\"code\":\"held\",\"args\":{},\"text\":\"x\"}", MESSAGE_ENGLISH);
    assert_string_equal(json_get_str(v, "text", ""), "x");
    json_decref(v);
    said_in(NULL, MESSAGE_CHINESE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_text_is_said),
        cmocka_unit_test(test_messages_are_said),
        cmocka_unit_test(test_advice_is_said),
        cmocka_unit_test(test_the_rest_stays),
    };
    return cmocka_run_group_tests_name("base/said", tests, NULL, NULL);
}

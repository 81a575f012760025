/* SPDX-License-Identifier: Apache-2.0 */
/* Opinions: what a stranger may say, what is refused, and that what was kept reads back the same.
 */
#include "core/finding/opinion/opinion.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

#include "base/unit.h"

static int read_text(const char *text, struct opinion *ret, struct err *err)
{
    _cleanup_(json_unrefp) json_t *o = NULL;
    assert_int_equal(json_parse(text, strlen(text), OPINION_BODY_MAX, &o, err), 0);
    return opinion_read(o, ret, err);
}

static void test_what_may_be_said(void **state)
{
    (void)state;
    struct opinion o = {0}, back = {0};
    struct err err = {0};
    assert_int_equal(
        read_text("{\"cause\":\"<b>the \\u0007 disk</b>\",\"advice\":\"free it\",\"attempt\":2,"
                  "\"class\":\"gpu_oom\",\"confidence\":0.5,\"link\":\"https://a/b?c\","
                  "\"patch\":{\"overrides\":{\"a.b\":1}}}",
                  &o, &err),
        0);
    set_str(&o.source, OPINION_GIVEN);
    set_str(&o.author, "bot");
    _cleanup_(freep) char *data = field_to_text(&opinion_table, &o, FIELD_STORED, FIELD_PAGE);
    assert_true(opinion_from_event(data, 7, 9, &back));
    assert_int_equal(back.id, 7);
    assert_int_equal(back.attempt, 2);
    assert_string_equal(back.cause, "<b>the \a disk</b>");
    assert_string_equal(back.patch, "{\"overrides\":{\"a.b\":1}}");
    assert_float_equal(back.confidence, 0.5, 0);
    field_release(&opinion_table, &o);
    field_release(&opinion_table, &back);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{}",
        "{\"cause\":\"\"}",
        "{\"cause\":7}",
        "{\"cause\":\"c\",\"author\":\"root\"}",
        "{\"cause\":\"c\",\"advice\":[]}",
        "{\"cause\":\"c\",\"class\":\"no such class\"}",
        "{\"cause\":\"c\",\"confidence\":2}",
        "{\"cause\":\"c\",\"confidence\":\"high\"}",
        "{\"cause\":\"c\",\"attempt\":1.5}",
        "{\"cause\":\"c\",\"link\":\"javascript:alert(1)\"}",
        "{\"cause\":\"c\",\"link\":\"https://a b\"}",
        "{\"cause\":\"c\",\"patch\":[1]}",
    };
    for (size_t i = 0; i < array_len(bad); i++) {
        struct opinion o = {0};
        struct err err = {0};
        assert_int_equal(read_text(bad[i], &o, &err), ERR_BAD_REQUEST);
        assert_true(*err.text);
        assert_null(o.cause);
    }
    char text[3000] = "{\"cause\":\"";
    size_t n = strlen(text);
    memset(text + n, 'x', 2001);
    memcpy(text + n + 2001, "\"}", 3);
    struct opinion o = {0};
    struct err err = {0};
    assert_int_equal(read_text(text, &o, &err), ERR_BAD_REQUEST);
}

static void test_rows_of_others(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "[]", "{}", "{\"cause\":\"c\"}",
                                      "{\"cause\":\"c\",\"source\":\"made up\"}"};
    struct opinion o = {0};
    for (size_t i = 0; i < array_len(bad); i++)
        assert_false(opinion_from_event(bad[i], 1, 1, &o));
    assert_false(opinion_from_event(NULL, 1, 1, &o));
    assert_true(opinion_from_event("{\"cause\":\"c\",\"source\":\"second_opinion\"}", 1, 1, &o));
    assert_string_equal(o.author, "argusd");
    assert_true(isnan(o.confidence));
    field_release(&opinion_table, &o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_may_be_said),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_rows_of_others),
    };
    return cmocka_run_group_tests_name("core/opinion", tests, NULL, NULL);
}

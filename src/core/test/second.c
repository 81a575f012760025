/* SPDX-License-Identifier: Apache-2.0 */
/* A second opinion: which findings are asked about, what the model is shown, how its answer is
 * read. */
#include "core/finding/opinion/second.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

#include "base/unit.h"

static void test_who_is_asked_about(void **state)
{
    (void)state;
    assert_true(second_is_unsure("unknown", 1, 0.5));
    assert_true(second_is_unsure("gpu_oom", 0.49, 0.5));
    assert_false(second_is_unsure("gpu_oom", 0.5, 0.5));
    assert_false(second_is_unsure("none", 0, 0.5));
    assert_false(second_is_unsure(NULL, 0, 0.5));
}

static void test_what_is_shown(void **state)
{
    (void)state;
    struct buf out = BUF_INIT(SECOND_EVIDENCE_MAX), body = BUF_INIT(4 * SECOND_EVIDENCE_MAX);
    struct buf many = BUF_INIT(1 << 20);
    assert_true(
        second_evidence("{\"class\":\"unknown\",\"node\":\"n1\",\"confidence\":0.25,"
                        "\"evidence\":[{\"source\":\"driver.log\",\"text\":\"a \\\"b\\\"\"}],"
                        "\"advice\":\"none\"}",
                        &out));
    assert_string_equal(buf_str(&out),
                        "{\"class\":\"unknown\",\"meaning\":\"\",\"confidence\":0.25,\"evidence\":["
                        "{\"source\":\"driver.log\",\"text\":\"a \\\"b\\\"\"}],\"after\":[]}");
    second_question("m", buf_str(&out), 100, &body);
    _cleanup_(json_unrefp) json_t *asked = NULL;
    assert_int_equal(json_parse(buf_str(&body), body.len, body.len, &asked, NULL), 0);
    const json_t *user = json_array_get(json_get_array(asked, "messages"), 1);
    assert_string_equal(json_get_str(user, "content", ""), buf_str(&out));
    assert_int_equal(json_get_int(asked, "max_tokens", 0), 100);
    /* A long line is cut between characters, and more lines than there is room for are left out. */
    (void)buf_addf(&many, "{\"class\":\"unknown\",\"evidence\":["); /* it fits */
    for (int i = 0; i < 12; i++) {
        (void)buf_addf(&many, "%s{\"source\":\"s\",\"text\":\"", i ? "," : "");
        for (int k = 0; k < 1000; k++)
            (void)buf_addf(&many, "数");
        (void)buf_addf(&many, "\"}");
    }
    (void)buf_addf(&many, "],\"after\":[{\"source\":\"s\",\"text\":\"x\"}]}");
    buf_reset(&out);
    assert_true(second_evidence(buf_str(&many), &out));
    assert_true(out.len < 12 * 1600 && !strstr(buf_str(&out), "\xef\xbf\xbd"));
    assert_false(second_evidence("[]", &out));
    buf_release(&many);
    buf_release(&body);
    buf_release(&out);
}

static void test_answers(void **state)
{
    (void)state;
    static const struct {
        const char *text, *cause; /* NULL: it is none */
        double confidence;
        int64_t tokens;
    } rows[] = {
        {"{\"choices\":[{\"message\":{\"content\":\"{\\\"cause\\\":\\\"c\\\",\\\"confidence\\\":0.5}\"}}],"
         "\"usage\":{\"total_tokens\":7}}",
         "c", 0.5, 7},
        {"{\"choices\":[{\"message\":{\"content\":\"say {\\\"cause\\\":\\\"c\\\\u0007\\\"} so\"}}],"
         "\"usage\":{\"total_tokens\":-7}}",
         "c ", (double)NAN, 0},
        {"{\"choices\":[{\"message\":{\"content\":\"{\\\"reason\\\":1}\"}}]}", "{\"reason\":1}",
         (double)NAN, 0},
        {"{\"choices\":[{\"message\":{\"content\":\"\"}}]}", NULL, 0, 0},
        {"{\"choices\":[]}", NULL, 0, 0},
        {"{\"error\":\"no\"}", NULL, 0, 0},
        {"not json", NULL, 0, 0},
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        struct second_answer a = {0};
        struct err err = {0};
        int r = second_answer_read(rows[i].text, strlen(rows[i].text), &a, &err);
        assert_int_equal(r, rows[i].cause ? 0 : ERR_UNAVAILABLE);
        if (r < 0)
            continue;
        assert_string_equal(a.said.cause, rows[i].cause);
        assert_true(a.said.confidence == rows[i].confidence ||
                    (isnan(a.said.confidence) && isnan(rows[i].confidence)));
        assert_int_equal(a.tokens, rows[i].tokens);
        field_release(&opinion_table, &a.said);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_is_asked_about),
        cmocka_unit_test(test_what_is_shown),
        cmocka_unit_test(test_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

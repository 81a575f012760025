/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of trial.h. */
#include "core/check/trial.h"

#include <errno.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/unit.h"

static int read_text(const char *text, struct trial_result *ret)
{
    struct err err = {0};
    return trial_read(text, strlen(text), "abc", ret, &err);
}

static void reads_a_pass(void **state)
{
    (void)state;
    struct trial_result r;
    assert_int_equal(read_text("{\"hash\":\"abc\",\"ok\":true,\"findings\":[],\"seconds\":1.5,"
                               "\"reward\":{\"returned\":\"1.0\"},\"train_rows\":640,\"other\":1}",
                               &r),
                     0);
    assert_true(r.ok);
    assert_non_null(strstr(r.shown, "\"returned\":\"1.0\""));
    assert_null(strstr(r.shown, "other"));
    assert_int_equal(trial_train_rows(r.shown), 640);
    assert_int_equal(trial_train_rows("{\"train_rows\":-1}"), 0);
    assert_int_equal(trial_train_rows("{\"train_rows\":\"many\"}"), 0);
    assert_int_equal(trial_train_rows("["), 0);
    assert_int_equal(trial_train_rows(NULL), 0);
    trial_result_release(&r);
}

static void reads_findings(void **state)
{
    (void)state;
    struct trial_result r;
    assert_int_equal(read_text("{\"hash\":\"abc\",\"ok\":false,\"findings\":["
                               "{\"class\":\"data_error\",\"detail\":\"no rows\"},"
                               "{\"class\":\"x\",\"detail\":\"no score\",\"hint\":\"write one\"}]}",
                               &r),
                     0);
    assert_false(r.ok);
    assert_int_equal(r.found.class, FINDING_DATA_ERROR);
    assert_string_equal(r.message, "trial_failed");
    assert_string_equal(r.text, "{\"count\":2,\"findings\":[\"no rows\",\"no score\"]}");
    assert_int_equal(r.found.n_evidence, 2);
    assert_string_equal(r.found.evidence[0].text, "no rows");
    assert_null(r.found.evidence[0].source); /* it did not say where */
    assert_string_equal(r.found.advice_code, "trial");
    assert_non_null(strstr(r.shown, "write one"));
    trial_result_release(&r);
}

/* The program names codes; the words are the catalogue's. */
static void says_codes(void **state)
{
    (void)state;
    struct trial_result r;
    assert_int_equal(read_text("{\"hash\":\"abc\",\"ok\":false,\"findings\":["
                               "{\"class\":\"data_error\",\"field\":\"train_file\","
                               "\"code\":\"trial_few_rows\",\"args\":{\"rows\":3,\"batch\":8,"
                               "\"why\":{\"code\":\"x\"}}}]}",
                               &r),
                     0);
    assert_string_equal(r.message, "trial_few_rows");
    assert_string_equal(r.text, "{\"rows\":3,\"batch\":8}");
    assert_non_null(strstr(r.shown, "\"detail\":\"3 rows do not fill one batch of 8: there would"));
    assert_non_null(strstr(r.shown, "\"hint\":\"give more rows"));
    assert_non_null(strstr(r.shown, "\"args\":{\"rows\":3,\"batch\":8}"));
    trial_result_release(&r);
    assert_int_equal(read_text("{\"hash\":\"abc\",\"ok\":false,\"findings\":["
                               "{\"code\":\"trial_no_rows\",\"args\":{\"path\":\"a\"}},"
                               "{\"code\":\"no such\",\"args\":{},\"detail\":\"words\"}]}",
                               &r),
                     0);
    assert_string_equal(r.text, "{\"count\":2,\"findings\":[{\"code\":\"trial_no_rows\",\"args\":"
                                "{\"path\":\"a\"}},\"words\"]}");
    trial_result_release(&r);
}

#define FAILED(found) "{\"hash\":\"abc\",\"ok\":false,\"findings\":[" found "]}"

static void a_finding_has_place_quote_and_advice(void **state)
{
    (void)state;
    struct trial_result r;
    assert_int_equal(
        read_text(FAILED("{\"class\":\"user_code_error\",\"detail\":\"raises KeyError\","
                         "\"advice\":\"reward-raises\",\"log\":{\"offset\":120,\"line\":4},"
                         "\"place\":{\"file\":\"/r/bad.py\",\"line\":2,\"offset\":30,"
                         "\"text\":\"return k['x']\"}}"),
                  &r),
        0);
    const struct finding_quote *q = r.found.evidence;
    assert_int_equal(r.found.n_evidence, 2);
    assert_string_equal(q[0].source, TRIAL_LOG);
    assert_int_equal(q[0].offset, 120);
    assert_int_equal(q[0].line, 4);
    assert_string_equal(q[0].text, "raises KeyError");
    assert_string_equal(q[1].source, "/r/bad.py");
    assert_int_equal(q[1].line, 2);
    assert_string_equal(q[1].text, "return k['x']");
    assert_string_equal(r.found.rule, "trial-reward-raises");
    assert_string_equal(r.found.advice_code, r.found.rule);
    assert_true(message_is_known(r.found.advice_code));
    assert_int_equal(r.found.n_patch, 0);
    trial_result_release(&r);
}

static void check_batch(const char *fit, const char *batch, const char *mini_batch)
{
    struct trial_result r;
    _cleanup_(freep) char *text = xasprintf(
        FAILED("{\"class\":\"data_error\",\"detail\":\"few\",\"advice\":\"data-few\",\"fit\":%s}"),
        fit);
    assert_int_equal(read_text(text, &r), 0);
    assert_int_equal(r.found.n_patch, !!batch + !!mini_batch);
    if (batch)
        assert_string_equal(r.found.patch[0].value, batch);
    if (mini_batch)
        assert_string_equal(r.found.patch[1].value, mini_batch);
    trial_result_release(&r);
}

static void a_batch_that_the_rows_do_not_fill_has_a_fix(void **state)
{
    (void)state;
    check_batch("{\"rows\":100,\"batch\":256,\"mini_batch\":64}", "64", NULL);
    check_batch("{\"rows\":100,\"batch\":256,\"mini_batch\":128}", "64", "64");
    check_batch("{\"rows\":1,\"batch\":7}", "1", NULL);
    check_batch("{\"rows\":0,\"batch\":7}", NULL, NULL);
    check_batch("{\"rows\":8,\"batch\":7}", NULL, NULL);
    check_batch("{\"rows\":1,\"batch\":9000000000000000000}", NULL, NULL);
    check_batch("\"all\"", NULL, NULL);
}

static void a_forged_finding_is_bounded(void **state)
{
    (void)state;
    struct trial_result r;
    _cleanup_(freep) char *many = xmalloc(60000);
    memset(many, 'x', 59999);
    many[59999] = '\0';
    _cleanup_(freep) char *text =
        xasprintf(FAILED("{\"class\":\"node_lost\",\"detail\":\"%s\",\"advice\":\"%s\","
                         "\"log\":{\"offset\":-1,\"line\":\"a\"},\"place\":{\"file\":\"../x\"}}"),
                  many, many);
    assert_int_equal(read_text(text, &r), 0);
    assert_int_equal(r.found.class, FINDING_CONFIG_ERROR);
    assert_int_equal(strlen(r.found.evidence[0].text), FINDING_QUOTE_MAX);
    assert_int_equal(r.found.n_evidence, 1);
    assert_int_equal(r.found.evidence[0].offset, 0);
    assert_string_equal(r.found.advice_code, "trial");
    trial_result_release(&r);
}

static void a_refusal_is_a_finding_too(void **state)
{
    (void)state;
    struct finding f;
    trial_finding_of_refusal("there is no secret 'X'", &f);
    assert_int_equal(f.class, FINDING_CONFIG_ERROR);
    assert_string_equal(f.evidence[0].text, "there is no secret 'X'");
    assert_string_equal(f.advice_code, "trial-refused");
    finding_release(&f);
}

static void survives_anything(void **state)
{
    (void)state;
    struct trial_result r;
    assert_int_equal(read_text("{", &r), -EINVAL);
    assert_int_equal(read_text("[]", &r), -EINVAL);
    assert_int_equal(read_text("{\"ok\":true}", &r), -ESTALE);
    assert_int_equal(read_text("{\"hash\":\"abd\",\"ok\":true}", &r), -ESTALE);
    assert_int_equal(read_text("{\"hash\":\"abc\",\"ok\":1,\"findings\":{},\"row\":[[]]}", &r), 0);
    assert_false(r.ok);
    assert_int_equal(r.found.class, FINDING_CONFIG_ERROR);
    assert_string_equal(r.found.evidence[0].text, "the trial failed and did not say why");
    assert_string_equal(r.message, "trial_silent");
    trial_result_release(&r);
    assert_int_equal(read_text("{\"hash\":\"abc\",\"ok\":true,\"findings\":[1]}", &r), 0);
    assert_false(r.ok);
    assert_string_equal(r.message, "trial_silent");
    trial_result_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_pass),
        cmocka_unit_test(reads_findings),
        cmocka_unit_test(says_codes),
        cmocka_unit_test(a_finding_has_place_quote_and_advice),
        cmocka_unit_test(a_batch_that_the_rows_do_not_fill_has_a_fix),
        cmocka_unit_test(a_forged_finding_is_bounded),
        cmocka_unit_test(a_refusal_is_a_finding_too),
        cmocka_unit_test(survives_anything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

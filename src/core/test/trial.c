/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of trial.h. */
#include "core/check/trial.h"

#include <errno.h>
#include <string.h>

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
    assert_int_equal(r.class, FINDING_DATA_ERROR);
    assert_string_equal(r.message, "trial_failed");
    assert_string_equal(r.text, "{\"count\":2,\"findings\":[\"no rows\",\"no score\"]}");
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
    assert_int_equal(r.class, FINDING_CONFIG_ERROR);
    trial_result_release(&r);
    assert_int_equal(read_text("{\"hash\":\"abc\",\"ok\":true,\"findings\":[1]}", &r), 0);
    assert_false(r.ok);
    trial_result_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_pass),
        cmocka_unit_test(reads_findings),
        cmocka_unit_test(says_codes),
        cmocka_unit_test(survives_anything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

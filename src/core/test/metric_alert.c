/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of metric_alert.h. */
#include "core/spec/metric_alert.h"

#include <math.h>
#include <string.h>

#include "base/unit.h"

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-12;
}

static void reads_what_is_meant(void **state)
{
    static const struct {
        const char *text, *metric;
        enum metric_alert_kind kind;
        double number;
        bool from_first;
        int64_t steps;
    } cases[] = {
        {"actor/entropy < 0.1 for 10 steps", "actor/entropy", METRIC_ALERT_BELOW, 0.1, false, 10},
        {"a <= -1e-3", "a", METRIC_ALERT_AT_MOST, -1e-3, false, 1},
        {"  a\t>  5 %  for 1 step ", "a", METRIC_ALERT_ABOVE, 0.05, false, 1},
        {"a >= 50%", "a", METRIC_ALERT_AT_LEAST, 0.5, false, 1},
        {"val-core/*/acc@1 falls 20 % from best", "val-core/*/acc@1", METRIC_ALERT_FALLS, 0.2,
         false, 1},
        {"x RISES 150% FROM First FOR 3 Steps", "x", METRIC_ALERT_RISES, 1.5, true, 3},
        {"actor/pg_loss is NaN for 2 steps", "actor/pg_loss", METRIC_ALERT_IS_NAN, 0, false, 2},
    };
    (void)state;
    for (size_t i = 0; i < array_len(cases); i++) {
        struct metric_alert a = {0};
        struct err err = {0};
        if (metric_alert_parse(cases[i].text, &a, &err) < 0)
            fail_msg("%s: %s", cases[i].text, err.text);
        assert_string_equal(a.metric, cases[i].metric);
        assert_int_equal(a.kind, cases[i].kind);
        assert_true(near(a.number, cases[i].number));
        assert_int_equal(a.from_first, cases[i].from_first);
        assert_int_equal(a.steps, cases[i].steps);
        metric_alert_release(&a);
    }
}

static void says_where_it_is_not_understood(void **state)
{
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"", "the name of a metric is wanted in column 1, where 'its end' stands"},
        {"a", "one of < <= > >= falls rises is is wanted in column 2"},
        {"a under 3", "is wanted in column 3, where 'under' stands"},
        {"a < ", "a number is wanted in column 5"},
        {"a < x", "a number is wanted in column 5, where 'x' stands"},
        {"a < inf", "a number is wanted"},
        {"a < 1 2", "for N steps, or nothing is wanted in column 7, where '2' stands"},
        {"a < 1 for x steps", "a number of steps, from 1 to 100000 is wanted in column 11"},
        {"a < 1 for 0 steps", "a number of steps"},
        {"a < 1 for 3", "steps is wanted in column 12"},
        {"a < 1 for 3 steps now", "its end is wanted in column 19, where 'now' stands"},
        {"a falls 20 from best", "a percentage above 0, such as 20 % is wanted"},
        {"a falls 20 %", "from best, or from first is wanted"},
        {"a falls 20 % from yesterday", "best or first is wanted in column 19"},
        {"a is 3", "nan is wanted in column 6, where '3' stands"},
    };
    char longer[METRIC_ALERT_TEXT_MAX + 2];
    struct metric_alert a = {0};
    struct err err = {0};
    (void)state;
    for (size_t i = 0; i < array_len(cases); i++) {
        assert_int_equal(metric_alert_parse(cases[i].text, &a, &err), ERR_BAD_SPEC);
        if (!strstr(err.text, cases[i].said))
            fail_msg("'%s': %s", cases[i].text, err.text);
        assert_null(a.metric); /* untouched */
    }
    memset(longer, 'a', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = 0;
    assert_int_equal(metric_alert_parse(longer, &a, &err), ERR_BAD_SPEC);
    assert_non_null(strstr(err.text, "at most 300 bytes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_is_meant),
        cmocka_unit_test(says_where_it_is_not_understood),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

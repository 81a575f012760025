/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of verdict_series.h. */
#include "core/training/verdict_series.h"

#include <math.h>

#include "base/mem.h"
#include "base/unit.h"

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

static void keeps_the_newest_and_the_first(void **state)
{
    struct verdict_series s = {0};
    (void)state;
    assert_int_equal(series_count(&s), 0);
    assert_true(isnan(series_median(&s, 0, 5)));
    assert_true(isnan(series_mean(&s, 0, 5)));
    assert_true(isnan(series_baseline(&s)));
    for (int i = 1; i <= 100; i++)
        series_add(&s, 10 * i, i);
    assert_int_equal(series_count(&s), SERIES_KEPT);
    assert_true(near(series_at(&s, 0), 100));
    assert_true(near(series_at(&s, SERIES_KEPT - 1), 100 - SERIES_KEPT + 1));
    assert_int_equal(series_step(&s, 2), 980);
    assert_true(near(series_median(&s, 0, 5), 98));
    assert_true(near(series_median(&s, 10, 2), 89.5));
    assert_true(near(series_mean(&s, 0, 4), 98.5));
    assert_true(near(series_baseline(&s), 5.5));
    assert_true(near(series_base_spread(&s), 2.5 * 1.4826));
    assert_true(near(series_spread(&s, 0, 5), 1.4826));
}

static void finds_where_it_turns(void **state)
{
    (void)state;
    for (int turn = 20; turn <= 60; turn += 5) {
        struct verdict_series fall = {0}, jump = {0};
        for (int i = 1; i < turn + 12; i++) {
            double wave = 1 + 0.02 * ((i * 7) % 5 - 2);
            series_add(&fall, i, wave * (i < turn ? 1 : exp(-(i - turn + 1) / 5.0)));
            series_add(&jump, i, wave * (i < turn ? 1 : 4));
        }
        assert_in_range(series_turn(&fall), turn - 2, turn + 2);
        assert_int_equal(series_turn(&jump), turn);
    }
}

static void draws_a_line(void **state)
{
    struct verdict_series s = {0}, flat = {0};
    (void)state;
    assert_true(isnan(series_line(&s, 10).slope));
    for (int i = 0; i < 40; i++) {
        series_add(&s, 2 * i, 5 + 0.5 * (2 * i));
        series_add(&flat, i, 3);
    }
    struct series_line l = series_line(&s, 20);
    assert_true(fabs(l.slope - 0.5) < 1e-6);
    assert_true(l.fit > 0.999);
    assert_true(near(series_line(&flat, 20).slope, 0));
    assert_true(near(series_noise(&flat, 20), 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_the_newest_and_the_first),
        cmocka_unit_test(finds_where_it_turns),
        cmocka_unit_test(draws_a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of goodput.h. */
#include "core/metric/goodput.h"

#include <math.h>
#include <string.h>

#include "base/unit.h"

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-6 * fmax(1, fabs(b));
}

/* 50 steps of 10 s, the last 10 of them run again by attempt 2; each tenth saves. */
static void fill(struct goodput_sums *s)
{
    *s = (struct goodput_sums){0};
    for (int i = 1; i <= 50; i++)
        goodput_add(s, 1, i > 40, 10, i % 10 ? (double)NAN : 5);
    for (int i = 41; i <= 60; i++)
        goodput_add(s, 2, false, 10, i % 10 ? 0 : 5);
}

static void time_that_counted(void **state)
{
    (void)state;
    struct goodput_sums s;
    struct goodput g;
    fill(&s);
    goodput_judge(&s, 1000, 1, &g);
    assert_int_equal(g.steps, 60);
    assert_int_equal(g.lost, 10);
    assert_true(near(g.good_s, 600) && near(g.lost_s, 100) && near(g.ratio, 0.6));
    assert_true(near(g.save_s, 5) && near(g.mtbf_s, 1000));
    assert_true(near(goodput_interval(5, 1000), 100 * (1 + 0.05 / 3 + 0.0025 / 9) - 5));
    assert_int_equal(g.save_freq, 10); /* 96.7 s */
    goodput_judge(&s, 1000, 0, &g);
    assert_true(isnan(g.mtbf_s));
    assert_int_equal(g.save_freq, 0);
    goodput_judge(&s, 500, 1, &g);
    assert_true(near(g.ratio, 1));
}

/* Steps of 10 s, two of them lost; the others were read late, all at once. */
static void moments_of_steps(void **state)
{
    (void)state;
    const usec_t s = USEC_SEC;
    struct goodput_sums sums = {0}, again;
    for (int i = 1; i <= 4; i++) {
        goodput_add(&sums, 1, i > 2, 10, NAN);
        goodput_add_moment(&sums, 1, i > 2, (usec_t)(100 + 11 * i) * s, true);
    }
    for (int i = 3; i <= 6; i++) {
        goodput_add(&sums, 2, false, 10, NAN);
        goodput_add_moment(&sums, 2, false, 500 * s, i > 4);
    }
    assert_true(sums.v[0].first_at == 101 * s && sums.v[0].fresh_at == 111 * s);
    assert_true(sums.v[0].kept_at == 122 * s && sums.v[0].last_at == 144 * s);
    assert_true(sums.v[1].first_at == 460 * s && sums.v[1].fresh_at == 500 * s);
    assert_true(sums.v[1].kept_at == 500 * s);
    struct buf out = BUF_INIT(8192);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '[');
    for (size_t i = 0; i < sums.n; i++)
        field_to_json(&goodput_attempt_table, &sums.v[i], FIELD_ALL, FIELD_PAGE, &j, NULL);
    jout_close(&j, ']');
    json_t *array = json_loads(buf_str(&out), 0, NULL);
    goodput_from_json(array, &again);
    assert_int_equal(again.n, 2);
    for (size_t i = 0; i < 2; i++)
        assert_true(
            again.v[i].first_at == sums.v[i].first_at && again.v[i].kept_at == sums.v[i].kept_at &&
            again.v[i].last_at == sums.v[i].last_at && again.v[i].fresh_at == sums.v[i].fresh_at);
    json_decref(array);
    buf_release(&out);
}

/* Which part of each ten steps lay between them is kept; what is not ten yet is not. */
static void between_steps(void **state)
{
    (void)state;
    struct goodput_sums sums = {0}, again;
    struct buf text = BUF_INIT(1 << 16);
    struct jout j = jout_begin(&text);
    json_t *v = NULL;
    assert_true(isnan(goodput_least_between(&sums)) && near(goodput_tens_above(&sums, 2), 0));
    for (int i = 0; i < 105; i++) /* late and early by turns: 2 s a step, of 12 */
        goodput_add_between(&sums, 1, i % 2 ? 9 : -5, 10);
    goodput_add_between(&sums, 1, NAN, 10);
    assert_int_equal(sums.v[0].tens[GOODPUT_TENS_20], 10);
    assert_int_equal(sums.v[0].ten, 5);
    assert_true(near(goodput_least_between(&sums), 0.2));
    for (int i = 0; i < 10; i++)
        goodput_add_between(&sums, 2, -1, 10);
    assert_int_equal(sums.v[1].tens[GOODPUT_TENS_2], 1);
    assert_true(near(goodput_least_between(&sums), 0.2)); /* one of eleven is no tenth */
    assert_true(near(goodput_tens_above(&sums, 15), 10.0 / 11));
    assert_true(near(goodput_tens_above(&sums, 20), 0));
    jout_open(&j, NULL, '[');
    for (size_t i = 0; i < sums.n; i++)
        field_to_json(&goodput_attempt_table, &sums.v[i], FIELD_ALL, FIELD_PAGE, &j, NULL);
    jout_close(&j, ']');
    assert_int_equal(json_parse(buf_str(&text), text.len, text.max, &v, NULL), 0);
    goodput_from_json(v, &again);
    for (int b = 0; b < GOODPUT_TENS; b++)
        assert_true(again.v[0].tens[b] == sums.v[0].tens[b] &&
                    again.v[1].tens[b] == sums.v[1].tens[b]);
    json_decref(v);
    buf_release(&text);
}

static void nothing_is_known(void **state)
{
    (void)state;
    struct goodput_sums s = {0};
    struct goodput g;
    goodput_judge(&s, 0, 0, &g);
    assert_true(isnan(g.ratio) && isnan(g.save_s) && !g.save_freq);
    goodput_add(&s, 1, false, NAN, NAN);
    goodput_judge(&s, 100, 3, &g);
    assert_true(near(g.ratio, 0));
    assert_int_equal(g.steps, 1);
    assert_int_equal(g.save_freq, 0);
}

/* A save that takes longer than the time between two failures. */
static void hopeless_cases_have_a_bound(void **state)
{
    (void)state;
    struct goodput_sums s = {0};
    struct goodput g;
    assert_true(near(goodput_interval(300, 100), 100));
    goodput_add(&s, 1, false, 1000, 900);
    goodput_judge(&s, 1000, 10, &g);
    assert_int_equal(g.save_freq, 1);
}

static void many_attempts(void **state)
{
    (void)state;
    struct goodput_sums s = {0};
    struct goodput g;
    for (int k = 1; k <= 2 * GOODPUT_ATTEMPTS_MAX; k++)
        goodput_add(&s, k, false, 1, NAN);
    assert_int_equal(s.n, GOODPUT_ATTEMPTS_MAX);
    goodput_judge(&s, 1000, 1, &g);
    assert_int_equal(g.steps, 2 * GOODPUT_ATTEMPTS_MAX);
}

static void there_and_back(void **state)
{
    (void)state;
    struct goodput_sums s, back;
    struct buf text = BUF_INIT(1 << 16);
    struct jout j = jout_begin(&text);
    json_t *v = NULL;
    fill(&s);
    jout_open(&j, NULL, '[');
    for (size_t i = 0; i < s.n; i++)
        field_to_json(&goodput_attempt_table, &s.v[i], FIELD_ALL, FIELD_PAGE, &j, NULL);
    jout_close(&j, ']');
    assert_int_equal(json_parse(buf_str(&text), text.len, text.max, &v, NULL), 0);
    goodput_from_json(v, &back);
    assert_int_equal(back.n, 2);
    assert_int_equal(back.v[0].lost, 10);
    assert_int_equal(back.v[1].saves, 2);
    assert_true(near(back.v[0].good_s, 400) && near(back.v[0].save_s, 25));
    json_decref(v);
    buf_release(&text);
    static const char odd[] = "[1,null,{\"k\":\"x\",\"steps\":-4,\"good_s\":-1e300}]";
    assert_int_equal(json_parse(odd, strlen(odd), 100, &v, NULL), 0);
    goodput_from_json(v, &back);
    assert_int_equal(back.n, 1);
    assert_true(!back.v[0].steps && near(back.v[0].good_s, 0));
    json_decref(v);
    goodput_from_json(NULL, &back);
    assert_int_equal(back.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_that_counted),
        cmocka_unit_test(moments_of_steps),
        cmocka_unit_test(between_steps),
        cmocka_unit_test(nothing_is_known),
        cmocka_unit_test(hopeless_cases_have_a_bound),
        cmocka_unit_test(many_attempts),
        cmocka_unit_test(there_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

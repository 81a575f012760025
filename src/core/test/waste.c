/* SPDX-License-Identifier: Apache-2.0 */
/* What a job wasted, and which advice gains most by its own figures. */
#include "core/account/waste.h"
#include "base/unit.h"

static bool is_near(double a, double b)
{
    return a - b < 1e-6 && b - a < 1e-6;
}

static void test_idle(void **state)
{
    /* 8 GPUs for an hour, 3 of them idle. */
    struct waste_facts f = {.held_s = 8 * 3600, .idle_s = 3 * 3600, .gpus = 8};
    struct waste w;
    (void)state;
    waste_judge(&f, &w);
    assert_int_equal(w.advice, WASTE_FEWER_GPUS);
    assert_int_equal(w.gpus, 5);
    assert_true(is_near(w.gain_s, 3 * 3600) && is_near(w.idle_s, 3 * 3600));
    /* 2.5 idle on average: 6 are needed, and the half GPU that is idle then is no gain. */
    f.idle_s = 2.5 * 3600;
    waste_judge(&f, &w);
    assert_int_equal(w.gpus, 6);
    assert_true(is_near(w.gain_s, 2 * 3600));
    f.idle_s = 1.9 * 3600; /* less than a quarter */
    waste_judge(&f, &w);
    assert_int_equal(w.advice, WASTE_NONE);
    /* All idle: one GPU is the least. */
    f.idle_s = 8 * 3600;
    waste_judge(&f, &w);
    assert_int_equal(w.gpus, 1);
    assert_true(is_near(w.gain_s, 7 * 3600));
    /* Nobody measured, or too little: no advice. */
    f = (struct waste_facts){.held_s = 8 * 3600, .unknown_s = 8 * 3600, .gpus = 8};
    waste_judge(&f, &w);
    assert_int_equal(w.advice, WASTE_NONE);
    f = (struct waste_facts){.held_s = 400, .idle_s = 400, .gpus = 8};
    waste_judge(&f, &w);
    assert_int_equal(w.advice, WASTE_NONE);
    f = (struct waste_facts){0};
    waste_judge(&f, &w);
    assert_int_equal(w.advice, WASTE_NONE);
}

static void test_redone(void **state)
{
    struct goodput_sums sums = {0};
    struct waste_facts f = {.gpus = 4, .sums = &sums, .failures = 2};
    struct waste w;
    (void)state;
    /* Steps of 10 s, a save of 5 s each 100 steps; two failures cost 90 steps each. */
    for (int k = 1; k <= 3; k++)
        for (int i = 0; i < 300; i++)
            goodput_add(&sums, k, k < 3 && i >= 210, 10, i % 100 == 99 ? 5 : 0);
    f.held_s = 4 * (3 * 300 * 10.0 + 9 * 5.0);
    waste_judge(&f, &w);
    assert_true(is_near(w.redone_s, 4 * 2 * 90 * 10.0));
    assert_int_equal(w.advice, WASTE_SAVE_MORE_OFTEN);
    assert_true(w.save_freq > 0 && w.save_freq < 100);
    assert_true(is_near(w.gain_s, w.redone_s - 4 * 2 * (double)w.save_freq * 10 / 2));
    f.failures = 0; /* then nobody knows how often one comes */
    waste_judge(&f, &w);
    assert_int_equal(w.advice, WASTE_NONE);
    /* What gains more is said. */
    f.failures = 2;
    f.idle_s = f.held_s / 2;
    waste_judge(&f, &w);
    assert_int_equal(w.advice, WASTE_FEWER_GPUS);
}

/* A job that failed for good has lost what came since its last save; time between steps is told. */
static void test_failed(void **state)
{
    struct goodput_sums sums = {0};
    struct waste_facts f = {.held_s = 4 * 1000.0, .gpus = 4, .sums = &sums, .failures = 1};
    struct waste w;
    (void)state;
    for (int i = 1; i <= 75; i++) {
        goodput_add(&sums, 1, false, 10, i % 50 ? 0 : 5);
        goodput_add_between(&sums, 1, i % 2 ? 3 : -1);
    }
    waste_judge(&f, &w); /* somebody went on from its saves */
    assert_true(is_near(w.failed_s, 0) && is_near(w.redone_s, 0));
    assert_true(is_near(w.between_s, 4 * (38 * 3.0 - 37)));
    f.failed = true;
    waste_judge(&f, &w);
    assert_true(is_near(w.failed_s, 4 * 25 * 10.0));
    assert_int_equal(w.advice, WASTE_SAVE_MORE_OFTEN);
    assert_true(is_near(w.gain_s, w.failed_s - 4 * (double)w.save_freq * 10 / 2));
    sums.v[0].between_s = -5; /* its lines were read late: nothing is known */
    waste_judge(&f, &w);
    assert_true(is_near(w.between_s, 0));
}

static void test_words(void **state)
{
    (void)state;
    assert_string_equal(waste_advice_to_string(WASTE_NONE), "none");
    assert_string_equal(waste_advice_to_string(WASTE_SAVE_MORE_OFTEN), "save_more_often");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_redone),
        cmocka_unit_test(test_failed),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

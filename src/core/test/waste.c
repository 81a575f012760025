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
        goodput_add_between(&sums, 1, i % 2 ? 3 : -1, 10);
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

/* Steps of 10 s; of each hundred the first ten come at once and the others wait 10 s for data. */
static void test_data(void **state)
{
    struct goodput_sums sums = {0};
    struct waste_facts f = {.held_s = 4 * 5000.0, .gpus = 4, .sums = &sums};
    struct waste w;
    (void)state;
    for (int i = 0; i < 200; i++) {
        goodput_add(&sums, 1, false, 10, 0);
        goodput_add_between(&sums, 1, i % 100 < 10 ? 0 : 10, 10);
    }
    waste_judge(&f, &w);
    assert_true(is_near(w.between_s, 4 * 1800.0));
    assert_int_equal(w.advice, WASTE_FASTER_DATA);
    /* The best tenth had nothing between: the least bound is 2 %. */
    assert_true(is_near(w.least_between, 0.02));
    assert_true(is_near(w.gain_s, 4 * (1800 - 2000 * 0.02 / 0.98)));
    assert_true(is_near(waste_between_above(&f, 0.9), 0) && is_near(waste_between_above(&f, 1), 0));
    /* What gains more is said. */
    f.idle_s = 4 * 3000.0;
    waste_judge(&f, &w);
    assert_int_equal(w.advice, WASTE_FEWER_GPUS);
}

/* One stall of hours is no reading of data: nearly all of the tens wait for nothing. */
static void test_data_stalled_once(void **state)
{
    struct goodput_sums sums = {0};
    struct waste_facts f = {.held_s = 4 * 20000.0, .gpus = 4, .sums = &sums};
    struct waste w;
    (void)state;
    for (int i = 0; i < 200; i++) {
        goodput_add(&sums, 1, false, 10, 0);
        goodput_add_between(&sums, 1, i == 100 ? 7200 : 0, 10);
    }
    assert_true(waste_between_above(&f, 0.2) > 4 * 6000);
    waste_judge(&f, &w);
    assert_int_equal(w.advice, WASTE_NONE);
    for (int k = 0; k < GOODPUT_TENS; k++)
        sums.v[0].tens[k] = 0;
    sums.v[0].tens[GOODPUT_TENS_20] = 15; /* at most a fifth: those are not above it */
    sums.v[0].tens[GOODPUT_TENS_30] = 5;
    waste_judge(&f, &w);
    assert_int_equal(w.advice, WASTE_FASTER_DATA);
    sums.v[0].tens[GOODPUT_TENS_20] = 16;
    waste_judge(&f, &w);
    assert_int_equal(w.advice, WASTE_NONE);
}

static void test_data_is_quick(void **state)
{
    struct goodput_sums sums = {0};
    struct waste_facts f = {.held_s = 4 * 5000.0, .gpus = 4, .sums = &sums};
    struct waste w;
    (void)state;
    for (int i = 0; i < 90; i++) {
        goodput_add(&sums, 1, false, 10, 0);
        goodput_add_between(&sums, 1, i < 10 ? 0 : 10, 10);
    }
    waste_judge(&f, &w); /* nine tens: no tenth of them */
    assert_int_equal(w.advice, WASTE_NONE);
    sums = (struct goodput_sums){0};
    for (int i = 0; i < 200; i++) {
        goodput_add(&sums, 1, false, 10, 0);
        goodput_add_between(&sums, 1, i < 20 ? 0 : 2, 10); /* a sixth */
    }
    waste_judge(&f, &w);
    assert_int_equal(w.advice, WASTE_NONE);
    sums = (struct goodput_sums){0};
    for (int i = 0; i < 200; i++) {
        goodput_add(&sums, 1, false, 10, 0);
        goodput_add_between(&sums, 1, 10, 10); /* always so: no step shows that it can be less */
    }
    waste_judge(&f, &w);
    assert_int_equal(w.advice, WASTE_NONE);
}

static void test_time_limit(void **state)
{
    struct waste_facts f = {.held_s = 8 * 1800,
                            .unknown_s = 8 * 1800,
                            .gpus = 8,
                            .timeout = USEC_DAY,
                            .ran = 30 * USEC_MIN,
                            .succeeded = true};
    struct waste w;
    (void)state;
    waste_judge(&f, &w);
    assert_int_equal(w.advice, WASTE_SHORTER_TIME_LIMIT);
    assert_true(w.timeout == 50 * USEC_MIN && is_near(w.gain_s, 0)); /* 45 min, up to ten */
    f.ran = 5 * USEC_HOUR;
    waste_judge(&f, &w);
    assert_true(w.timeout == 8 * USEC_HOUR); /* 7.5 h, up to the hour */
    f.ran = 7 * USEC_HOUR;                   /* more than a quarter */
    waste_judge(&f, &w);
    assert_int_equal(w.advice, WASTE_NONE);
    f.ran = 10 * USEC_MIN;
    f.timeout = USEC_HOUR; /* an hour's wait at most */
    waste_judge(&f, &w);
    assert_int_equal(w.advice, WASTE_NONE);
    f.timeout = USEC_DAY;
    f.succeeded = false; /* it says nothing of how long it takes */
    waste_judge(&f, &w);
    assert_int_equal(w.advice, WASTE_NONE);
    f.succeeded = true;
    f.timeout = 0;
    waste_judge(&f, &w);
    assert_int_equal(w.advice, WASTE_NONE);
    /* Where GPU time can be spared that is said. */
    f = (struct waste_facts){.held_s = 8 * 3600,
                             .idle_s = 4 * 3600,
                             .gpus = 8,
                             .timeout = 10 * USEC_DAY,
                             .ran = USEC_HOUR,
                             .succeeded = true};
    waste_judge(&f, &w);
    assert_int_equal(w.advice, WASTE_FEWER_GPUS);
}

/* Room for a slow day, in a round number; 0 where what it has is near enough. */
static void test_time_limits(void **state)
{
    (void)state;
    assert_true(waste_time_limit(0, 0) == 0 && waste_time_limit(0, USEC_DAY) == 0);
    assert_true(waste_time_limit(USEC_SEC, 0) == 10 * USEC_MIN);
    assert_true(waste_time_limit(61 * USEC_MIN, 0) == 100 * USEC_MIN);
    assert_true(waste_time_limit(80 * USEC_MIN, 0) == 2 * USEC_HOUR);
    assert_true(waste_time_limit(81 * USEC_MIN, 0) == 3 * USEC_HOUR);
    assert_true(waste_time_limit(61 * USEC_MIN, 4 * USEC_HOUR) == 0); /* less than four times */
    assert_true(waste_time_limit(USEC_HOUR, 4 * USEC_HOUR) == 90 * USEC_MIN);
    assert_true(waste_time_limit(USEC_SEC, 10 * USEC_MIN) == 0); /* it has that */
    assert_true(waste_time_limit(UINT64_MAX, 0) == 0);
}

static void test_words(void **state)
{
    (void)state;
    assert_string_equal(waste_advice_to_string(WASTE_NONE), "none");
    assert_string_equal(waste_advice_to_string(WASTE_SAVE_MORE_OFTEN), "save_more_often");
    assert_string_equal(waste_advice_to_string(WASTE_FASTER_DATA), "faster_data");
    assert_string_equal(waste_advice_to_string(WASTE_SHORTER_TIME_LIMIT), "shorter_time_limit");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_redone),
        cmocka_unit_test(test_failed),
        cmocka_unit_test(test_data),
        cmocka_unit_test(test_data_is_quick),
        cmocka_unit_test(test_time_limit),
        cmocka_unit_test(test_data_stalled_once),
        cmocka_unit_test(test_time_limits),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of gpu_idle.h. */
#include "core/metric/gpu_idle.h"

#include <math.h>

#include "base/unit.h"

static const struct gpu_idle_rule RULE = {.least = 0.05,
                                          .window = 30 * USEC_MIN,
                                          .span = 30 * USEC_MIN,
                                          .warn = 15 * USEC_MIN,
                                          .stops = true};

/* Minute by minute from `from` on; the minute at which it is told, -1: it never is. */
static int first(struct gpu_idle *w,
                 const struct gpu_idle_rule *rule,
                 struct gpu_idle_look look,
                 int from,
                 int to,
                 enum gpu_idle_act what)
{
    for (int m = from; m < to; m++) {
        look.now = (usec_t)m * USEC_MIN;
        if (gpu_idle_see(w, rule, &look) == what)
            return m;
    }
    return -1;
}

static void warns_and_then_stops(void **state)
{
    struct gpu_idle w = {0};
    const struct gpu_idle_look low = {.use = 0.01};
    (void)state;
    assert_int_equal(first(&w, &RULE, low, 100, 200, GPU_IDLE_WARN), 130);
    assert_int_equal(first(&w, &RULE, low, 131, 200, GPU_IDLE_STOP), 145);
    struct gpu_idle_rule alert = RULE;
    alert.stops = false;
    w = (struct gpu_idle){0};
    assert_int_equal(first(&w, &alert, low, 100, 400, GPU_IDLE_STOP), -1);
    alert.least = 0;
    w = (struct gpu_idle){0};
    assert_int_equal(first(&w, &alert, low, 100, 400, GPU_IDLE_WARN), -1);
}

static void begins_anew_when_it_works_and_counts_what_is_known(void **state)
{
    struct gpu_idle w = {0};
    const struct gpu_idle_look low = {.use = 0.01}, busy = {.use = 0.9}, unknown = {.use = NAN};
    (void)state;
    assert_int_equal(first(&w, &RULE, low, 100, 140, GPU_IDLE_WARN), 130);
    assert_int_equal(first(&w, &RULE, low, 131, 140, GPU_IDLE_STOP), -1);
    assert_int_equal(first(&w, &RULE, unknown, 140, 200, GPU_IDLE_STOP), -1);
    assert_int_equal(first(&w, &RULE, low, 200, 300, GPU_IDLE_STOP), 205); /* 15 that are known */
    assert_int_equal(first(&w, &RULE, busy, 300, 301, GPU_IDLE_BUSY), 300);
    assert_int_equal(w.since, 0);
    assert_int_equal(w.warned, 0);
}

static void waits_for_a_checkpoint(void **state)
{
    struct gpu_idle w = {0};
    (void)state;
    struct gpu_idle_look unsaved = {.use = 0, .step = 12, .saved = 10};
    const struct gpu_idle_look saved = {.use = 0, .step = 20, .saved = 20};
    const struct gpu_idle_look saves_never = {.use = 0, .step = 12};
    assert_int_equal(first(&w, &RULE, unsaved, 100, 131, GPU_IDLE_STOP), -1); /* warned at 130 */
    for (; unsaved.step < 20; unsaved.step++) /* a step each 20 minutes, for hours */
        assert_int_equal(first(&w, &RULE, unsaved, 131 + 20 * (int)(unsaved.step - 12),
                               151 + 20 * (int)(unsaved.step - 12), GPU_IDLE_STOP),
                         -1);
    assert_int_equal(first(&w, &RULE, saved, 291, 292, GPU_IDLE_STOP), 291);
    w = (struct gpu_idle){0};
    assert_int_equal(first(&w, &RULE, saves_never, 100, 300, GPU_IDLE_STOP), 145);
}

static void waits_for_no_checkpoint_of_one_that_stands_still(void **state)
{
    struct gpu_idle w = {0};
    const struct gpu_idle_look still = {.use = 0, .step = 12, .saved = 10};
    const struct gpu_idle_look unknown = {.use = NAN, .step = 12, .saved = 10};
    (void)state;
    assert_int_equal(first(&w, &RULE, still, 100, 150, GPU_IDLE_STOP), -1); /* warned at 130 */
    assert_int_equal(first(&w, &RULE, unknown, 150, 200, GPU_IDLE_STOP), -1);
    assert_int_equal(first(&w, &RULE, still, 200, 300, GPU_IDLE_STOP), 210); /* of 80, 50 unknown */
}

/* Whatever it does there, and for a span after it, whose mean is of it. */
static void passes_over_phases_in_which_gpus_rest(void **state)
{
    static const enum hang_phase rests[] = {HANG_ENVIRONMENT, HANG_MODEL, HANG_VALIDATION,
                                            HANG_SAVING, HANG_FINISHING};
    const struct gpu_idle_look training = {.has_phases = true, .phase = HANG_TRAINING, .use = 0};
    (void)state;
    for (size_t i = 0; i < array_len(rests); i++) {
        struct gpu_idle w = {0};
        const struct gpu_idle_look rest = {.has_phases = true, .phase = rests[i], .use = 0};
        assert_int_equal(first(&w, &RULE, training, 100, 129, GPU_IDLE_WARN), -1);
        assert_int_equal(first(&w, &RULE, rest, 129, 400, GPU_IDLE_WARN), -1);
        assert_int_equal(first(&w, &RULE, training, 400, 500, GPU_IDLE_WARN), 430);
    }
}

static void takes_a_reason(void **state)
{
    struct gpu_idle w = {0};
    const struct gpu_idle_look low = {.use = 0}, justified = {.use = 0, .is_justified = true};
    (void)state;
    assert_int_equal(first(&w, &RULE, low, 100, 140, GPU_IDLE_WARN), 130);
    assert_int_equal(first(&w, &RULE, justified, 140, 141, GPU_IDLE_BUSY), 140);
    assert_int_equal(first(&w, &RULE, justified, 141, 500, GPU_IDLE_STOP), -1);
    assert_int_equal(first(&w, &RULE, low, 500, 600, GPU_IDLE_WARN), 500);
    assert_int_equal(first(&w, &RULE, low, 501, 600, GPU_IDLE_STOP), 515);
}

/* A spell of low use and then work, in minutes from `from` on; the minute of its warning, -1: none.
 */
static int spell(struct gpu_idle *w, int from, int low, int work)
{
    const struct gpu_idle_look rests = {.use = 0}, works = {.use = 0.9};
    int told = first(w, &RULE, rests, from, from + low, GPU_IDLE_WARN);
    (void)first(w, &RULE, rests, told < 0 ? from + low : told + 1, from + low, GPU_IDLE_WARN);
    assert_int_equal(first(w, &RULE, works, from + low, from + low + work, GPU_IDLE_NOTHING), -1);
    return told;
}

/* Low for 20 minutes is, by a mean over 30, a spell of 50. */
static void learns_how_long_it_rests_again_and_again(void **state)
{
    struct gpu_idle w = {0};
    (void)state;
    assert_int_equal(spell(&w, 1000, 61, 200), 1030); /* its first minutes may be of before */
    assert_int_equal(spell(&w, 2000, 20, 200), 2000);
    assert_int_equal(w.learnt, 50 * USEC_MIN); /* the shorter of two, of 61 and 50 */
    assert_int_equal(spell(&w, 3000, 20, 200), -1);
    assert_int_equal(spell(&w, 4000, 40, 200), 4033); /* 62.5 minutes after it began */
    assert_int_equal(w.learnt, 61 * USEC_MIN);
    w = gpu_idle_begin(w.learnt); /* another attempt */
    assert_int_equal(spell(&w, 5000, 31, 200), -1);
    assert_int_equal(spell(&w, 6000, 60, 200), 6047); /* 76.25 */
}

static void learns_nothing_of_one_that_mostly_rests(void **state)
{
    struct gpu_idle w = {0};
    (void)state;
    for (int i = 0; i < 10; i++) /* 90 minutes of rest and 20 of work */
        assert_int_equal(spell(&w, 1000 + 80 * i, 60, 20), i ? 1000 + 80 * i : 1030);
    assert_int_equal(w.learnt, 0);
}

static void learns_nothing_of_what_was_justified_and_counts_no_unknown_time(void **state)
{
    struct gpu_idle w = {0};
    const struct gpu_idle_look low = {.use = 0}, justified = {.use = 0, .is_justified = true};
    const struct gpu_idle_look unknown = {.use = NAN};
    (void)state;
    for (int from = 1000; from < 4000; from += 1000) {
        assert_int_equal(spell(&w, from, 0, 200), -1);
        (void)first(&w, &RULE, low, from + 200, from + 230, GPU_IDLE_STOP);
        (void)first(&w, &RULE, justified, from + 230, from + 231, GPU_IDLE_STOP);
    }
    assert_int_equal(w.longest, 0);
    for (int from = 5000; from < 7000; from += 1000) {
        (void)first(&w, &RULE, low, from, from + 10, GPU_IDLE_STOP);
        (void)first(&w, &RULE, unknown, from + 10, from + 300, GPU_IDLE_STOP);
        assert_int_equal(spell(&w, from + 300, 10, 200), -1);
    }
    assert_int_equal(w.learnt, 50 * USEC_MIN);
}

static void has_a_bound_to_its_patience(void **state)
{
    struct gpu_idle w = gpu_idle_begin(10 * USEC_HOUR);
    (void)state;
    assert_int_equal(spell(&w, 1000, 0, 200), -1);
    assert_int_equal(spell(&w, 2000, 300, 400),
                     2090); /* four windows, of which one is the mean's */
}

static void warns_no_longer_than_the_window(void **state)
{
    (void)state;
    assert_int_equal(gpu_idle_warn(20 * USEC_SEC), 20 * USEC_SEC);
    assert_int_equal(gpu_idle_warn(2 * USEC_HOUR), 15 * USEC_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warns_and_then_stops),
        cmocka_unit_test(begins_anew_when_it_works_and_counts_what_is_known),
        cmocka_unit_test(waits_for_a_checkpoint),
        cmocka_unit_test(waits_for_no_checkpoint_of_one_that_stands_still),
        cmocka_unit_test(passes_over_phases_in_which_gpus_rest),
        cmocka_unit_test(takes_a_reason),
        cmocka_unit_test(learns_how_long_it_rests_again_and_again),
        cmocka_unit_test(learns_nothing_of_one_that_mostly_rests),
        cmocka_unit_test(learns_nothing_of_what_was_justified_and_counts_no_unknown_time),
        cmocka_unit_test(has_a_bound_to_its_patience),
        cmocka_unit_test(warns_no_longer_than_the_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

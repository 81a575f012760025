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
        cmocka_unit_test(warns_no_longer_than_the_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of hang.h. */
#include "core/metric/hang.h"

#include <math.h>
#include <string.h>

#include "base/message.h"
#include "base/unit.h"

static const struct hang_limits LIMITS = {.factor = 5,
                                          .floor = 3 * USEC_MIN,
                                          .start = {15 * USEC_MIN, 30 * USEC_MIN, 45 * USEC_MIN}};

/* A look of a training of verl, so many seconds after its beginning. */
static struct hang_look look(uint64_t at, uint64_t steps, double median_s)
{
    return (struct hang_look){.now = (1000 + at) * USEC_SEC,
                              .is_known = true,
                              .steps = steps,
                              .median_s = steps ? median_s : (double)NAN,
                              .longest_s = steps ? median_s : (double)NAN,
                              .bytes = 10 * steps,
                              .phase = steps ? HANG_TRAINING : HANG_ENVIRONMENT};
}

static bool is_late(const struct hang *h, uint64_t at, struct hang_late *ret)
{
    return hang_is_late(h, &LIMITS, (1000 + at) * USEC_SEC, ret);
}

static const char *told(const struct hang *h, const struct hang_late *late, char said[static 200])
{
    char args[200];
    const char *code = hang_late_message(h, late, args, sizeof(args));
    message_to_string(code, args, true, said, 200);
    return said;
}

static void a_step_that_does_not_come(void **state)
{
    (void)state;
    struct hang h = {0};
    struct hang_late late;
    char text[200];
    struct hang_look l = look(0, 3, 60);
    assert_false(hang_see(&h, &l)); /* the first look is where the watch begins */
    l = look(60, 4, 60);
    assert_true(hang_see(&h, &l));
    assert_false(is_late(&h, 60 + 300, &late));
    assert_true(is_late(&h, 60 + 301, &late));
    assert_int_equal(late.kind, HANG_NO_STEP);
    assert_true(late.limit == 300 * USEC_SEC && late.span == 301 * USEC_SEC);
    assert_string_equal(told(&h, &late, text),
                        "no new step for 5m1s (a step takes 1m, 5m is allowed)");
    l = look(400, 5, 60);
    assert_true(hang_see(&h, &l));
    assert_false(is_late(&h, 401, &late));
}

static void short_steps_have_the_floor(void **state)
{
    (void)state;
    struct hang h = {0};
    struct hang_late late;
    struct hang_look l = look(0, 100, 0.25);
    (void)hang_see(&h, &l);
    assert_false(is_late(&h, 180, &late));
    assert_true(is_late(&h, 181, &late));
}

/* A validation that every tenth step contains, and the first one of a run. */
static void long_validations_and_saves_are_known(void **state)
{
    (void)state;
    struct hang h = {0};
    struct hang_late late;
    struct hang_look l = look(0, 20, 10);
    l.longest_s = 900;
    (void)hang_see(&h, &l);
    assert_false(is_late(&h, 1800, &late));
    assert_true(is_late(&h, 1801, &late));
    l = look(2000, 21, 10);
    l.phase = HANG_SAVING;
    (void)hang_see(&h, &l);
    assert_false(is_late(&h, 2000 + 44 * 60, &late));
    assert_true(is_late(&h, 2000 + 46 * 60, &late));
}

static void phases_before_the_first_step(void **state)
{
    (void)state;
    struct hang h = {0};
    struct hang_late late;
    char text[200];
    struct hang_look l = look(0, 0, 0);
    (void)hang_see(&h, &l);
    assert_false(is_late(&h, 900, &late));
    assert_true(is_late(&h, 901, &late));
    assert_int_equal(late.kind, HANG_NO_OUTPUT);
    l = look(902, 0, 0);
    l.bytes = 77; /* it prints */
    assert_true(hang_see(&h, &l));
    assert_false(is_late(&h, 902 + 900, &late));
    l.now += USEC_SEC;
    l.phase = HANG_MODEL;
    (void)hang_see(&h, &l);
    assert_false(is_late(&h, 903 + 1800, &late));
    assert_true(is_late(&h, 903 + 1801, &late));
    assert_string_equal(told(&h, &late, text),
                        "no output for 30m1s in loading the model (30m is allowed)");
}

static void nobody_could_see_it(void **state)
{
    (void)state;
    struct hang h = {0};
    struct hang_late late;
    struct hang_look l = look(0, 3, 1);
    (void)hang_see(&h, &l);
    l.now = 5000 * USEC_SEC;
    l.blind = true;
    assert_false(hang_see(&h, &l));
    assert_false(is_late(&h, 5000, &late));
    l = look(5000, 3, 1);
    assert_false(hang_see(&h, &l));
    assert_false(is_late(&h, 5000 + 180, &late));
    assert_true(is_late(&h, 5000 + 181, &late));
}

static void time_is_doubled_a_few_times(void **state)
{
    (void)state;
    struct hang h = {0};
    struct hang_late late;
    struct hang_look l = look(0, 3, 1);
    (void)hang_see(&h, &l);
    for (int i = 1; i <= HANG_GRANTS_MAX; i++) {
        assert_true(hang_grant(&h));
        assert_false(is_late(&h, (uint64_t)180 << i, &late));
        assert_true(is_late(&h, ((uint64_t)180 << i) + 1, &late));
    }
    assert_false(hang_grant(&h));
    l = look(9000, 4, 1);
    assert_true(hang_see(&h, &l));
    assert_true(hang_grant(&h));
}

/* Jobs of which nobody said that they must print, that are done, or for which it is off. */
static void others_are_never_late(void **state)
{
    (void)state;
    struct hang h = {0};
    struct hang_late late;
    struct hang_limits limits = LIMITS;
    struct hang_look l = look(0, 0, 0);
    l.is_known = false;
    (void)hang_see(&h, &l);
    assert_false(is_late(&h, 1000000, &late));
    limits.silence = 600 * USEC_SEC;
    assert_true(hang_is_late(&h, &limits, 2000 * USEC_SEC, &late));
    assert_int_equal(late.kind, HANG_NO_OUTPUT);

    l = look(0, 30, 1);
    l.is_known = false;
    l.is_done = true;
    h = (struct hang){0};
    (void)hang_see(&h, &l);
    assert_false(is_late(&h, 1000000, &late));

    limits.factor = 0;
    l.is_done = false;
    (void)hang_see(&h, &l);
    assert_true(is_late(&h, 1000000, &late));
    assert_false(hang_is_late(&h, &limits, (usec_t)1000000 * USEC_SEC, &late));
}

static enum hang_phase after(enum hang_phase before, const char *text)
{
    return hang_phase_read(before, text, strlen(text));
}

static void logs_name_phases(void **state)
{
    (void)state;
    assert_int_equal(after(HANG_ENVIRONMENT, "nothing\nof use\n"), HANG_ENVIRONMENT);
    assert_int_equal(after(HANG_ENVIRONMENT, "(TaskRunner pid=7) dataset len: 640\n"), HANG_MODEL);
    assert_int_equal(after(HANG_MODEL, "x\nTraining from scratch\ny"), HANG_FIRST);
    assert_int_equal(after(HANG_FIRST, "\x1b[36m(TaskRunner pid=970)\x1b[0m step:1 - a/b:1\n"),
                     HANG_TRAINING);
    assert_int_equal(after(HANG_TRAINING, "step:9 - a:1\nlocal_global_step_folder: /x\n"),
                     HANG_SAVING);
    assert_int_equal(after(HANG_SAVING, "Saved model to x\nstep:10 - a:1\n"), HANG_TRAINING);
    assert_int_equal(after(HANG_TRAINING, "timestep:10 units\nstep: - \nstep:4"), HANG_TRAINING);
    assert_int_equal(after(HANG_TRAINING, "('Final validation metrics: {'"), HANG_FINISHING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_that_does_not_come),
        cmocka_unit_test(short_steps_have_the_floor),
        cmocka_unit_test(long_validations_and_saves_are_known),
        cmocka_unit_test(phases_before_the_first_step),
        cmocka_unit_test(nobody_could_see_it),
        cmocka_unit_test(time_is_doubled_a_few_times),
        cmocka_unit_test(others_are_never_late),
        cmocka_unit_test(logs_name_phases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Who still uses a machine that is to go, by what Ray's lists show and by what they do not. */
#include "core/job/vacancy.h"

#include "base/unit.h"

static const usec_t SINCE = 1000 * USEC_SEC;

/* Each list is new, and nobody is there. */
static struct vacancy_sight seen_empty(void)
{
    const usec_t fresh = SINCE + 3 * USEC_SEC;
    return (struct vacancy_sight){
        .since = SINCE, .use_of = fresh, .holders_of = fresh, .jobs_of = fresh};
}

static enum vacancy judged(const struct vacancy_sight *s, usec_t after)
{
    return vacancy_judge(s, SINCE + after);
}

static void test_an_empty_machine_goes(void **state)
{
    (void)state;
    struct vacancy_sight s = seen_empty();
    assert_int_equal(judged(&s, 4 * USEC_SEC), VACANCY_FREE);
    s.anywhere = 5; /* they are elsewhere */
    assert_int_equal(judged(&s, 4 * USEC_SEC), VACANCY_FREE);
    s.gpus = s.cpus = 0.001; /* what floats leave */
    assert_int_equal(judged(&s, 4 * USEC_SEC), VACANCY_FREE);
}

static void test_ours_come_first(void **state)
{
    (void)state;
    struct vacancy_sight s = seen_empty();
    s.is_leased = true;
    s.here = 1;
    assert_int_equal(judged(&s, 4 * USEC_SEC), VACANCY_OURS);
    s.may_end = s.is_lost = true; /* that is said of jobs of others */
    assert_int_equal(judged(&s, 4 * USEC_SEC), VACANCY_OURS);
}

/* However long, and whatever they hold: a GPU, a CPU, or a process alone. */
static void test_others_are_waited_for(void **state)
{
    (void)state;
    struct vacancy_sight gpu = seen_empty(), cpu = seen_empty(), process = seen_empty();
    gpu.gpus = 0.5;
    cpu.cpus = 1;
    process.here = 1;
    const struct vacancy_sight *all[] = {&gpu, &cpu, &process};
    for (size_t i = 0; i < 3; i++)
        for (usec_t after = 0; after < 30 * USEC_DAY; after += USEC_DAY)
            assert_int_equal(judged(all[i], 4 * USEC_SEC + after), VACANCY_OTHERS);
    /* One that was seen is believed after Ray fell silent, too. */
    process.jobs_of = process.use_of = process.holders_of = SINCE - USEC_SEC;
    process.anywhere = 1;
    process.ray_away = process.is_whole = true;
    assert_int_equal(judged(&process, USEC_DAY), VACANCY_OTHERS);
    process.may_end = true;
    assert_int_equal(judged(&process, USEC_DAY), VACANCY_FREE);
    gpu.is_lost = true; /* its raylet is dead, and they with it */
    assert_int_equal(judged(&gpu, USEC_DAY), VACANCY_FREE);
}

/* What a job of ours has just given back is still counted: that is nobody's use. */
static void test_a_count_of_before_says_nothing(void **state)
{
    (void)state;
    struct vacancy_sight s = seen_empty();
    s.gpus = 4;
    s.use_of = SINCE - 1;
    assert_int_equal(judged(&s, 4 * USEC_SEC), VACANCY_UNTOLD);
    s.use_of = SINCE + USEC_SEC; /* Ray's own lists lag a little */
    assert_int_equal(judged(&s, 4 * USEC_SEC), VACANCY_UNTOLD);
    s.use_of = SINCE + 2 * USEC_SEC;
    assert_int_equal(judged(&s, 4 * USEC_SEC), VACANCY_OTHERS);
    s.gpus = 0;
    assert_int_equal(judged(&s, 4 * USEC_SEC), VACANCY_FREE);
}

static void test_one_list_that_does_not_come_is_not_waited_for(void **state)
{
    (void)state;
    struct vacancy_sight use = seen_empty(), holders = seen_empty(), neither = seen_empty();
    use.holders_of = holders.use_of = neither.holders_of = neither.use_of = 0;
    struct vacancy_sight *one[] = {&use, &holders};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(judged(one[i], 29 * USEC_SEC), VACANCY_UNTOLD);
        assert_int_equal(judged(one[i], 30 * USEC_SEC), VACANCY_FREE);
        one[i]->anywhere = 1; /* what it has there may be in the other list alone */
        assert_int_equal(judged(one[i], USEC_DAY), VACANCY_UNTOLD);
    }
    assert_int_equal(judged(&neither, USEC_DAY), VACANCY_UNTOLD);
}

static void test_a_silent_ray_ends_nothing(void **state)
{
    (void)state;
    struct vacancy_sight s = {.since = SINCE, .ray_away = true};
    assert_int_equal(judged(&s, USEC_DAY), VACANCY_UNTOLD); /* it never told anything */
    s.jobs_of = SINCE - USEC_MIN;                           /* nobody was there then */
    assert_int_equal(judged(&s, 59 * USEC_SEC), VACANCY_UNTOLD);
    assert_int_equal(judged(&s, 60 * USEC_SEC), VACANCY_FREE);
    s.anywhere = 1; /* somebody lived then: where may have changed since */
    assert_int_equal(judged(&s, USEC_DAY), VACANCY_UNTOLD);
    s.may_end = true;
    assert_int_equal(judged(&s, 0), VACANCY_FREE);
}

static void test_the_whole_cluster_does_not_wait_for_a_silent_ray(void **state)
{
    (void)state;
    struct vacancy_sight s = {.since = SINCE, .is_whole = true};
    assert_int_equal(judged(&s, USEC_SEC), VACANCY_UNTOLD); /* it answers: its list is on the way */
    s.ray_away = true;
    assert_int_equal(judged(&s, USEC_SEC), VACANCY_FREE);
    s.anywhere = 1;
    assert_int_equal(judged(&s, USEC_DAY), VACANCY_UNTOLD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_empty_machine_goes),
        cmocka_unit_test(test_ours_come_first),
        cmocka_unit_test(test_others_are_waited_for),
        cmocka_unit_test(test_a_count_of_before_says_nothing),
        cmocka_unit_test(test_one_list_that_does_not_come_is_not_waited_for),
        cmocka_unit_test(test_a_silent_ray_ends_nothing),
        cmocka_unit_test(test_the_whole_cluster_does_not_wait_for_a_silent_ray),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

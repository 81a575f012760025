/* SPDX-License-Identifier: Apache-2.0 */
/* hostbook.c - what processes used between two looks: nothing is counted twice, and nothing that
 * was used before. */
#include "shepherd/scout/hostbook.h"

#include "base/unit.h"

static uint64_t ticks_between(struct hostbook_process *was,
                              size_t n_was,
                              struct hostbook_process *now,
                              size_t n_now)
{
    struct hostbook_look before = {.at_ticks = 1000, .n = n_was, .v = was};
    struct hostbook_look after = {.at_ticks = 2500, .n = n_now, .v = now};
    hostbook_sort(&before);
    hostbook_sort(&after);
    return hostbook_ticks(&before, &after);
}

static void test_only_what_was_used_in_between(void **state)
{
    (void)state;
    struct hostbook_process was[] = {{30, 500, 100}, {10, 400, 7}, {20, 450, 50}};
    struct hostbook_process now[] = {{20, 450, 60}, {30, 500, 400}, {10, 400, 7}};
    assert_int_equal(ticks_between(was, 3, now, 3), 310);
}

static void test_processes_come_and_go(void **state)
{
    (void)state;
    struct hostbook_process was[] = {{10, 400, 70}, {20, 450, 50}};
    /* 10 has ended; 40 is new; 50 is older than the look before, but was not met then. */
    struct hostbook_process now[] = {{20, 450, 51}, {40, 1200, 30}, {50, 900, 5000}};
    assert_int_equal(ticks_between(was, 2, now, 3), 31);
    assert_int_equal(ticks_between(NULL, 0, now, 3), 30);
    assert_int_equal(ticks_between(was, 2, NULL, 0), 0);
}

static void test_a_pid_that_came_again(void **state)
{
    (void)state;
    struct hostbook_process was[] = {{10, 400, 70}};
    struct hostbook_process now[] = {{10, 1800, 90}};
    assert_int_equal(ticks_between(was, 1, now, 1), 90);
    struct hostbook_process less[] = {{10, 400, 60}};
    assert_int_equal(ticks_between(was, 1, less, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_what_was_used_in_between),
        cmocka_unit_test(test_processes_come_and_go),
        cmocka_unit_test(test_a_pid_that_came_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

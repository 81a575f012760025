/* SPDX-License-Identifier: Apache-2.0 */
/* Spans that clocks and restarts cannot change. */
#include "core/job/stopwatch.h"

#include "base/unit.h"

static struct moment at(usec_t wall, usec_t boot, const char *boot_id)
{
    return (struct moment){.wall = wall, .boot = boot, .boot_id = boot_id};
}

static usec_t read_at(const struct stopwatch *w, usec_t wall, usec_t boot, const char *boot_id)
{
    struct moment m = at(wall, boot, boot_id);
    return stopwatch_read(w, &m);
}

static void test_jumps_of_the_wall_clock(void **state)
{
    (void)state;
    struct stopwatch w = {0};
    struct moment m = at(USEC_DAY, 100, "a");
    stopwatch_start(&w, &m);
    assert_int_equal(read_at(&w, USEC_DAY + 5, 105, "a"), 5);
    assert_int_equal(read_at(&w, 2 * USEC_DAY, 105, "a"), 5);
    assert_int_equal(read_at(&w, 1, 105, "a"), 5);
}

static void test_another_start_of_the_machine(void **state)
{
    (void)state;
    struct stopwatch w = {0};
    struct moment m = at(1000, 900, "a");
    stopwatch_start(&w, &m);
    assert_int_equal(read_at(&w, 1700, 10, "b"), 700);
    assert_int_equal(read_at(&w, 400, 950, "b"), 0); /* set back: not below zero */
    m = at(1000, 900, "");
    stopwatch_start(&w, &m);
    assert_int_equal(read_at(&w, 1300, 5000, ""), 300); /* not known: nothing to compare */
}

static void test_pauses(void **state)
{
    (void)state;
    struct stopwatch w = {0};
    struct moment m = at(1, 10, "a");
    stopwatch_start(&w, &m);
    m = at(1, 30, "a");
    stopwatch_pause(&w, &m);
    assert_int_equal(read_at(&w, 1, 500, "a"), 20);
    m = at(1, 400, "a");
    stopwatch_pause(&w, &m);
    assert_int_equal(read_at(&w, 9, 9, "b"), 20);
    m = at(1, 1000, "a");
    stopwatch_resume(&w, &m);
    m = at(1, 1005, "a");
    stopwatch_resume(&w, &m);
    assert_int_equal(read_at(&w, 1, 1010, "a"), 30);
    stopwatch_start(&w, &m);
    assert_int_equal(read_at(&w, 1, 1006, "a"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jumps_of_the_wall_clock),
        cmocka_unit_test(test_another_start_of_the_machine),
        cmocka_unit_test(test_pauses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

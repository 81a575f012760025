/* SPDX-License-Identifier: Apache-2.0 */
/* The ceiling per second: what passes, what is dropped, what is kept of it. */
#include "shepherd/attempt/flood.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/unit.h"

static void test_no_ceiling(void **state)
{
    (void)state;
    struct flood *f = flood_new(0);
    for (int i = 0; i < 100; i++)
        assert_true(flood_pass(f, 1 << 30, 1));
    flood_free(f);
}

static void test_a_burst_passes_and_a_flood_does_not(void **state)
{
    (void)state;
    struct flood *f = flood_new(1000);
    usec_t now = 5 * USEC_SEC;
    assert_true(flood_pass(f, 1000 * FLOOD_SPAN, now)); /* all at once */
    assert_false(flood_pass(f, 1, now));
    assert_false(flood_pass(f, 501, now + USEC_SEC / 2));
    assert_true(flood_pass(f, 500, now + USEC_SEC / 2));
    for (int i = 1; i < 100; i++) /* as fast as the ceiling, for ever */
        assert_true(flood_pass(f, 100, now + USEC_SEC / 2 + (usec_t)i * USEC_SEC / 10));
    assert_true(flood_pass(f, 100000, now + 100 * USEC_SEC)); /* a piece larger than all */
    flood_free(f);
}

static void test_dropping_ends_with_a_pause(void **state)
{
    (void)state;
    struct flood_end e;
    struct flood *f = flood_new(1000);
    usec_t now = USEC_SEC;
    assert_true(flood_pass(f, 1000 * FLOOD_SPAN, now));
    assert_false(flood_pass(f, 10, now));
    flood_drop(f, "first\nline", 10, "too much");
    assert_true(flood_is_dropping(f));
    assert_false(flood_pass(f, 10, now + USEC_SEC)); /* a second of output more, and what is kept */
    assert_true(flood_pass(f, 10, now + USEC_SEC + USEC_SEC / 10));
    flood_end(f, &e);
    assert_true(flood_is_dropping(f));
    assert_true(e.dropped == 0 && !*e.line); /* it was all kept */
    assert_int_equal(e.kept_n[0], 10);
    assert_memory_equal(e.kept[0], "first\nline", 10);
    flood_reset(f);
    assert_false(flood_is_dropping(f));
    flood_free(f);
}

static void test_the_newest_is_kept_from_the_beginning_of_a_line(void **state)
{
    (void)state;
    struct flood_end e;
    struct flood *f = flood_new(1);
    char line[1001];
    uint64_t all = 0;
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(line, sizeof(line), "%999d\n", i);
        flood_drop(f, line, 1000, "too much");
        all += 1000;
    }
    flood_end(f, &e);
    size_t kept = e.kept_n[0] + e.kept_n[1];
    assert_true(kept <= FLOOD_KEPT && kept > FLOOD_KEPT - 1000 && kept % 1000 == 0);
    assert_int_equal(e.dropped + kept, all);
    assert_memory_equal(e.kept[1] + e.kept_n[1] - 5, "4999\n", 5);
    assert_true(e.kept[0][0] == ' ');
    char want[100];
    (void)snprintf(want, sizeof(want), "[argus] %llu bytes of output dropped here: too much\n",
                   (unsigned long long)e.dropped);
    assert_string_equal(e.line, want);
    flood_reset(f);
    _cleanup_(freep) char *big = xcalloc(3, FLOOD_KEPT); /* in one piece, without a line */
    flood_drop(f, big, 3 * (size_t)FLOOD_KEPT, "too much");
    flood_end(f, &e);
    assert_int_equal(e.dropped, 2 * FLOOD_KEPT);
    flood_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_ceiling),
        cmocka_unit_test(test_a_burst_passes_and_a_flood_does_not),
        cmocka_unit_test(test_dropping_ends_with_a_pause),
        cmocka_unit_test(test_the_newest_is_kept_from_the_beginning_of_a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

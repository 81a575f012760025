/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of node_slow.h. */
#include "core/job/node_slow.h"

#include <stdio.h>
#include <string.h>

#include "base/unit.h"

static const usec_t NOW = 1796000000 * USEC_SEC;

static void jobs_of_the_last_days(void **state)
{
    char book[NODE_SLOW_MAX] = "";
    (void)state;
    assert_int_equal(node_slow_count(book, NOW), 0);
    assert_true(node_slow_note(book, "a", NOW));
    assert_false(node_slow_note(book, "a", NOW + USEC_MIN)); /* it is the same */
    assert_int_equal(node_slow_count(book, NOW + USEC_MIN), 1);
    assert_true(node_slow_note(book, "b", NOW + USEC_DAY));
    assert_int_equal(node_slow_count(book, NOW + USEC_DAY), 2);
    assert_true(node_slow_note(book, "a", NOW + 2 * USEC_DAY)); /* and counts once */
    assert_int_equal(node_slow_count(book, NOW + 2 * USEC_DAY), 2);
    assert_int_equal(node_slow_count(book, NOW + 8 * USEC_DAY + USEC_SEC), 1);
    assert_int_equal(node_slow_count(book, NOW + 20 * USEC_DAY), 0);
}

static void the_newest_are_kept(void **state)
{
    char book[NODE_SLOW_MAX] = "", job[16];
    (void)state;
    for (int i = 0; i < 3 * NODE_SLOW_JOBS; i++) {
        (void)snprintf(job, sizeof(job), "job-%d", i);
        assert_true(node_slow_note(book, job, NOW + (usec_t)i * USEC_SEC));
    }
    assert_int_equal(node_slow_count(book, NOW), NODE_SLOW_JOBS);
    assert_false(node_slow_note(book, job, NOW));
    assert_true(node_slow_note(book, "job-0", NOW));
}

static void what_cannot_be_read(void **state)
{
    static const char *const books[] = {"x", "@", "12@", "zz@5", "1@99999999999999999999999", " "};
    (void)state;
    for (size_t i = 0; i < array_len(books); i++) {
        char book[NODE_SLOW_MAX];
        (void)snprintf(book, sizeof(book), "%s", books[i]);
        assert_in_range(node_slow_count(book, NOW), 0, 1);
        assert_true(node_slow_note(book, "a", NOW));
        assert_in_range(node_slow_count(book, NOW), 1, 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_of_the_last_days),
        cmocka_unit_test(the_newest_are_kept),
        cmocka_unit_test(what_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of node_slow.h. */
#include "core/job/node_slow.h"

#include <stdio.h>
#include <string.h>

#include "base/unit.h"

static const usec_t NOW = 1796000000 * USEC_SEC;

static int jobs_at(const char *book, usec_t now)
{
    int users;
    return node_slow_count(book, now, &users);
}

static int users_at(const char *book, usec_t now)
{
    int users;
    (void)node_slow_count(book, now, &users); /* the jobs are asked for elsewhere */
    return users;
}

static void jobs_of_the_last_days(void **state)
{
    char book[NODE_SLOW_MAX] = "";
    (void)state;
    assert_int_equal(jobs_at(book, NOW), 0);
    assert_int_equal(users_at(book, NOW), 0);
    assert_true(node_slow_note(book, "a", "ann", NOW));
    assert_false(node_slow_note(book, "a", "ann", NOW + USEC_MIN)); /* it is the same */
    assert_int_equal(jobs_at(book, NOW + USEC_MIN), 1);
    assert_true(node_slow_note(book, "b", "ann", NOW + USEC_DAY));
    assert_int_equal(jobs_at(book, NOW + USEC_DAY), 2);
    assert_true(node_slow_note(book, "a", "ann", NOW + 2 * USEC_DAY)); /* and counts once */
    assert_int_equal(jobs_at(book, NOW + 2 * USEC_DAY), 2);
    assert_int_equal(jobs_at(book, NOW + 8 * USEC_DAY + USEC_SEC), 1);
    assert_int_equal(jobs_at(book, NOW + 20 * USEC_DAY), 0);
}

/* What a job tells of its ranks it writes itself: a second user has to see it, too. */
static void jobs_of_one_user_make_no_slow_node(void **state)
{
    char book[NODE_SLOW_MAX] = "", job[16];
    (void)state;
    for (int i = 0; i < 3 * NODE_SLOW_JOBS; i++) {
        (void)snprintf(job, sizeof(job), "job-%d", i);
        assert_true(node_slow_note(book, job, "ann", NOW));
        assert_false(node_slow_is(book, NOW));
    }
    assert_int_equal(users_at(book, NOW), 1);
    assert_true(node_slow_note(book, "bob-1", "bob", NOW));
    assert_true(node_slow_is(book, NOW));
    assert_int_equal(users_at(book, NOW), 2);
    assert_false(node_slow_is(book, NOW + NODE_SLOW_DAYS + USEC_SEC));
}

/* Nor do they push out what others have seen. */
static void jobs_of_one_user_leave_those_of_others(void **state)
{
    char book[NODE_SLOW_MAX] = "", job[16];
    (void)state;
    assert_true(node_slow_note(book, "bob-1", "bob", NOW));
    assert_true(node_slow_note(book, "carol-1", "carol", NOW));
    for (int i = 0; i < 3 * NODE_SLOW_JOBS; i++) {
        (void)snprintf(job, sizeof(job), "job-%d", i);
        assert_true(node_slow_note(book, job, "ann", NOW + USEC_MIN));
    }
    assert_int_equal(jobs_at(book, NOW + USEC_MIN), NODE_SLOW_JOBS);
    assert_int_equal(users_at(book, NOW + USEC_MIN), 3);
    assert_false(node_slow_note(book, "bob-1", "bob", NOW + USEC_MIN)); /* it is still there */
}

static void the_newest_are_kept(void **state)
{
    char book[NODE_SLOW_MAX] = "", job[16];
    (void)state;
    for (int i = 0; i < 3 * NODE_SLOW_JOBS; i++) {
        (void)snprintf(job, sizeof(job), "job-%d", i);
        assert_true(node_slow_note(book, job, "ann", NOW + (usec_t)i * USEC_SEC));
    }
    assert_int_equal(jobs_at(book, NOW), NODE_SLOW_JOBS);
    assert_false(node_slow_note(book, job, "ann", NOW));
    assert_true(node_slow_note(book, "job-0", "ann", NOW));
}

/* Jobs without a user are those of one. */
static void a_book_of_an_older_argus(void **state)
{
    char book[NODE_SLOW_MAX] = "12@1796000000 34@1796000000";
    (void)state;
    assert_int_equal(jobs_at(book, NOW), 2);
    assert_int_equal(users_at(book, NOW), 1);
    assert_true(node_slow_note(book, "a", "ann", NOW));
    assert_int_equal(jobs_at(book, NOW), 3);
    assert_true(node_slow_is(book, NOW));
}

static void what_cannot_be_read(void **state)
{
    static const char *const books[] = {
        "x", "@", "12@", "zz@5", "1@99999999999999999999999", "1@2@", "1@2@x", "1@2@3@4", " "};
    (void)state;
    for (size_t i = 0; i < array_len(books); i++) {
        char book[NODE_SLOW_MAX];
        (void)snprintf(book, sizeof(book), "%s", books[i]);
        assert_in_range(jobs_at(book, NOW), 0, 1);
        assert_true(node_slow_note(book, "a", "ann", NOW));
        assert_in_range(jobs_at(book, NOW), 1, 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_of_the_last_days),
        cmocka_unit_test(jobs_of_one_user_make_no_slow_node),
        cmocka_unit_test(jobs_of_one_user_leave_those_of_others),
        cmocka_unit_test(the_newest_are_kept),
        cmocka_unit_test(a_book_of_an_older_argus),
        cmocka_unit_test(what_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of userlines.c: whose work is next, and that nobody waits for all that another one has. */
#include "argusd/ground/userlines.h"

#include "base/mem.h"
#include "base/unit.h"

enum { MOST = 2, MANY = 100 };

static void a_line_is_in_order(void **state)
{
    (void)state;
    struct userlines ls = {0};
    struct userlines_place v[3] = {0};
    assert_null(userlines_next(&ls, MOST));
    for (size_t i = 0; i < array_len(v); i++)
        userlines_join(&ls, &v[i], "a");
    assert_int_equal(userlines_waiting(&v[0]), 3);
    assert_ptr_equal(userlines_next(&ls, MOST), &v[0]);
    assert_ptr_equal(userlines_next(&ls, MOST), &v[1]);
    assert_null(userlines_next(&ls, MOST));
    assert_true(v[0].goes_on && v[1].goes_on && !v[2].goes_on);
    userlines_leave(&ls, &v[1]);
    assert_ptr_equal(userlines_next(&ls, MOST), &v[2]);
    for (size_t i = 0; i < array_len(v); i++)
        userlines_leave(&ls, &v[i]); /* one of them has left before */
    assert_null(ls.first);
    assert_int_equal(ls.going_on, 0);
}

/* However many of others wait, and however often they come back: a turn of each, no more. */
static void who_comes_new_waits_for_one_turn_of_each(void **state)
{
    (void)state;
    struct userlines ls = {.most_of_one = 1};
    struct userlines_place a[MANY] = {0}, b[MANY] = {0}, mine = {0};
    for (size_t i = 0; i < MANY; i++) {
        userlines_join(&ls, &a[i], "a");
        userlines_join(&ls, &b[i], "b");
    }
    struct userlines_place *of_a = userlines_next(&ls, MOST), *of_b = userlines_next(&ls, MOST);
    assert_ptr_equal(of_a, &a[0]);
    assert_ptr_equal(of_b, &b[0]);
    userlines_join(&ls, &mine, "c");
    userlines_leave(&ls, of_a);
    userlines_join(&ls, of_a, "a");                     /* there is more to read */
    assert_ptr_equal(userlines_next(&ls, MOST), &a[1]); /* the turn of a, who was served before b */
    assert_null(userlines_next(&ls, MOST));
    userlines_leave(&ls, &a[1]);
    assert_ptr_equal(userlines_next(&ls, MOST), &mine);
    assert_null(userlines_next(&ls, MOST));
    userlines_leave(&ls, of_b);
    assert_ptr_equal(userlines_next(&ls, MOST), &b[1]);
    userlines_release(&ls);
    assert_null(ls.first);
}

/* A share is one's own: what another one does not use stays free. */
static void a_share_is_a_ceiling(void **state)
{
    (void)state;
    struct userlines ls = {.most_of_one = 2};
    struct userlines_place a[3] = {0}, b = {0};
    for (size_t i = 0; i < array_len(a); i++)
        userlines_join(&ls, &a[i], "a");
    assert_non_null(userlines_next(&ls, 4));
    assert_non_null(userlines_next(&ls, 4));
    assert_null(userlines_next(&ls, 4));
    userlines_join(&ls, &b, NULL);
    assert_ptr_equal(userlines_next(&ls, 4), &b);
    userlines_release(&ls);
}

/* From the middle and from the end, and who comes then is behind those that stayed. */
static void who_waits_may_leave(void **state)
{
    (void)state;
    struct userlines ls = {0};
    struct userlines_place v[4] = {0};
    for (size_t i = 0; i < 3; i++)
        userlines_join(&ls, &v[i], "a");
    userlines_leave(&ls, &v[1]);
    userlines_leave(&ls, &v[2]);
    userlines_join(&ls, &v[3], "a");
    assert_int_equal(userlines_waiting(&v[3]), 2);
    assert_ptr_equal(userlines_next(&ls, MOST), &v[0]);
    assert_ptr_equal(userlines_next(&ls, MOST), &v[3]);
    userlines_release(&ls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_in_order),
        cmocka_unit_test(who_comes_new_waits_for_one_turn_of_each),
        cmocka_unit_test(a_share_is_a_ceiling),
        cmocka_unit_test(who_waits_may_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

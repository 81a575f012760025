/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of turns.c: who goes on, who waits and who is refused. */
#include "argusd/ground/turns.h"

#include "base/unit.h"

enum { MOST = 2 };

static void join(struct turns *t, struct turn *mine, const char *user)
{
    *mine = (struct turn){.user = user};
    assert_true(turns_join(t, mine));
}

static void test_first_come(void **state)
{
    (void)state;
    struct turns t = {0};
    struct turn a, b, c, d;
    assert_null(turns_next(&t, MOST));
    join(&t, &a, "a");
    join(&t, &b, "b");
    join(&t, &c, "c");
    join(&t, &d, "d");
    assert_ptr_equal(turns_next(&t, MOST), &a);
    assert_ptr_equal(turns_next(&t, MOST), &b);
    assert_null(turns_next(&t, MOST));
    assert_true(a.goes_on && b.goes_on && !c.goes_on);
    turns_leave(&t, &c); /* it waits no more */
    turns_leave(&t, &a);
    assert_ptr_equal(turns_next(&t, MOST), &d);
    turns_leave(&t, &b);
    turns_leave(&t, &d);
    turns_leave(&t, &d); /* it has gone */
    assert_null(t.first);
}

/* Who searches already waits for those who do not, and nobody for ever. */
static void test_one_after_the_other(void **state)
{
    (void)state;
    struct turns t = {0};
    struct turn mine[4], b, c;
    for (int i = 0; i < 4; i++)
        join(&t, &mine[i], "a");
    assert_ptr_equal(turns_next(&t, MOST), &mine[0]);
    assert_ptr_equal(turns_next(&t, MOST), &mine[1]); /* nobody else is there */
    join(&t, &b, "b");
    join(&t, &c, "c");
    turns_leave(&t, &mine[0]);
    assert_ptr_equal(turns_next(&t, MOST), &b);
    turns_leave(&t, &mine[1]);
    assert_ptr_equal(turns_next(&t, MOST), &mine[2]); /* none of his goes on, and he came first */
    turns_leave(&t, &b);
    assert_ptr_equal(turns_next(&t, MOST), &c);
    turns_leave(&t, &c);
    assert_ptr_equal(turns_next(&t, MOST), &mine[3]);
}

static void test_full(void **state)
{
    (void)state;
    struct turns t = {0};
    struct turn all[TURNS_WAITING_MAX], more = {.user = "a"}, other = {.user = "x"};
    for (int i = 0; i < TURNS_WAITING_MAX; i++) {
        if (i == TURNS_WAITING_OF_ONE_MAX)
            assert_false(turns_join(&t, &more)); /* his share */
        join(&t, &all[i], i < TURNS_WAITING_OF_ONE_MAX ? "a" : i % 2 ? "b" : "c");
    }
    assert_false(turns_join(&t, &other));
    assert_ptr_equal(turns_next(&t, MOST), &all[0]); /* which waits no more */
    join(&t, &other, "x");
    turns_leave(&t, &other);
    join(&t, &more, "a");
}

/* Places that others could have stay free rather than that one has more than his share. */
static void test_a_bound_for_one(void **state)
{
    (void)state;
    struct turns t = {.most_of_one = 1};
    struct turn mine[2], b = {.user = "b"};
    for (int i = 0; i < 2; i++)
        join(&t, &mine[i], "a");
    assert_ptr_equal(turns_next(&t, MOST), &mine[0]);
    assert_null(turns_next(&t, MOST));
    turns_add(&t, &b);
    assert_ptr_equal(turns_next(&t, MOST), &b);
    turns_leave(&t, &mine[0]);
    assert_ptr_equal(turns_next(&t, MOST), &mine[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_come),
        cmocka_unit_test(test_one_after_the_other),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_a_bound_for_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

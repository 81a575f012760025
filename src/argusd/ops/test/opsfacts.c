/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of a plan: their hash, and what differs. */
#include "argusd/ops/opsfacts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

#include <cmocka.h>

static struct pairs facts_of(const char *const *v)
{
    struct pairs p = {0};
    for (; *v; v += 2)
        pairs_set(&p, v[0], v[1]);
    return p;
}
#define FACTS(...) facts_of((const char *const[]){__VA_ARGS__, NULL})

static bool hash_alike(struct pairs a, struct pairs b)
{
    char x[HASH_HEX], y[HASH_HEX];
    opsfacts_hash(&a, x);
    opsfacts_hash(&b, y);
    assert_int_equal(strlen(x), HASH_HEX - 1);
    pairs_release(&a);
    pairs_release(&b);
    return str_eq(x, y);
}

static void test_hash_knows_no_order(void **state)
{
    (void)state;
    assert_true(hash_alike(FACTS("node/a", "online", "job/x", "RUNNING"),
                           FACTS("job/x", "RUNNING", "node/a", "online")));
    assert_true(hash_alike((struct pairs){0}, (struct pairs){0}));
}

static void test_hash_tells_facts_apart(void **state)
{
    (void)state;
    assert_false(hash_alike(FACTS("node/a", "online"), FACTS("node/a", "offline")));
    assert_false(hash_alike(FACTS("node/a", "online"), (struct pairs){0}));
    /* where one name ends and its value begins is part of it */
    assert_false(hash_alike(FACTS("ab", "c"), FACTS("a", "bc")));
    assert_false(hash_alike(FACTS("a", "b", "c", "d"), FACTS("a", "bcd")));
}

static char *said(struct pairs planned, struct pairs now, size_t expected)
{
    struct field_list l;
    opsfacts_compare(&planned, &now, &l);
    assert_int_equal(l.n, expected);
    char *text = opsfacts_say(&l);
    opsfacts_release(&l);
    assert_null(l.v);
    pairs_release(&planned);
    pairs_release(&now);
    return text;
}

static void expect_said(char *text, const char *expected)
{
    assert_string_equal(text, expected);
    free(text);
}

static void test_difference(void **state)
{
    (void)state;
    expect_said(said(FACTS("a", "1", "b", "2"), FACTS("b", "2", "a", "1"), 0), "");
    expect_said(said(FACTS("node/a", "online", "job/x", "RUNNING"),
                     FACTS("node/a", "offline", "job/y", "QUEUED"), 3),
                "job/x: RUNNING -> none; job/y: none -> QUEUED; node/a: online -> offline");
    expect_said(said((struct pairs){0}, FACTS("z", "1"), 1), "z: none -> 1");
    expect_said(said(FACTS("z", "1"), (struct pairs){0}, 1), "z: 1 -> none");
}

static void test_a_long_difference_is_cut_where_it_is_said(void **state)
{
    struct pairs now = {0};
    (void)state;
    for (char name[] = "a"; *name <= 'h'; (*name)++)
        pairs_set(&now, name, "1");
    char *text = said((struct pairs){0}, now, 8);
    assert_true(str_starts(text, "a: none -> 1; b: none -> 1"));
    assert_non_null(strstr(text, "; …"));
    assert_null(strstr(text, "f: none"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hash_knows_no_order),
        cmocka_unit_test(test_hash_tells_facts_apart),
        cmocka_unit_test(test_difference),
        cmocka_unit_test(test_a_long_difference_is_cut_where_it_is_said),
    };
    hash_init();
    return cmocka_run_group_tests_name("argusd/opsfacts", tests, NULL, NULL);
}

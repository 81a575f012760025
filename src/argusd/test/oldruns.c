/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of oldruns.c: whose runs are forgotten. */
#include "argusd/trackers/oldruns.h"

#include <string.h>

#include "base/mem.h"
#include "base/unit.h"

static size_t oldruns_of(const struct oldrun *v, size_t n, const char *user)
{
    size_t his = 0;
    for (size_t i = 0; i < n; i++)
        his += !strcmp(v[i].user, user);
    return his;
}

static void the_oldest_of_who_has_most_go(void **state)
{
    struct oldrun v[] = {{"bob", 1, NULL},   {"alice", 9, NULL}, {"alice", 3, NULL},
                         {"alice", 7, NULL}, {"alice", 5, NULL}, {"bob", 2, NULL}};
    (void)state;
    assert_int_equal(oldruns_choose(v, array_len(v), 2), 2);
    assert_string_equal(v[0].user, "alice");
    assert_true(v[0].ended_at == 3 && v[1].ended_at == 5);
    assert_int_equal(oldruns_of(v + 2, 4, "alice"), 2);
    assert_int_equal(oldruns_of(v + 2, 4, "bob"), 2);
}

/* However many one has, the others keep what they have. */
static void a_flood_of_one_leaves_the_others(void **state)
{
    enum { MANY = 500, OTHERS = 40 };
    struct oldrun v[MANY + OTHERS];
    (void)state;
    for (size_t i = 0; i < array_len(v); i++)
        v[i] = (struct oldrun){i < MANY ? "alice" : "bob", MANY + OTHERS - i, NULL};
    assert_int_equal(oldruns_choose(v, array_len(v), 300), 300);
    assert_int_equal(oldruns_of(v, 300, "alice"), 300);
    assert_int_equal(oldruns_of(v + 300, array_len(v) - 300, "bob"), OTHERS);
    for (size_t i = 0; i < 300; i++)
        assert_true(v[i].ended_at <= OTHERS + 300); /* hers are OTHERS + 1 and on */
}

static void none_and_too_many(void **state)
{
    struct oldrun v[] = {{"a", 1, NULL}, {"b", 2, NULL}, {"c", 3, NULL}};
    (void)state;
    assert_int_equal(oldruns_choose(v, 0, 5), 0);
    assert_int_equal(oldruns_choose(v, array_len(v), 0), 0);
    assert_int_equal(oldruns_choose(v, array_len(v), 5), 3); /* more than there are */
    assert_int_equal(oldruns_choose(v, array_len(v), 1), 3); /* all have equally many */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oldest_of_who_has_most_go),
        cmocka_unit_test(a_flood_of_one_leaves_the_others),
        cmocka_unit_test(none_and_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

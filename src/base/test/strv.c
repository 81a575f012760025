/* SPDX-License-Identifier: Apache-2.0 */
/* Lists and pairs own copies. */
#include "base/strv.h"

#include <stdlib.h>

#include "base/unit.h"

static void test_strv(void **state)
{
    (void)state;
    struct strv a = {0}, b = {0};
    for (int i = 0; i < 20; i++)
        strv_addf(&a, "w%d", i);
    assert_null(a.v[20]);
    strv_copy(&b, &a);
    strv_release(&a);
    assert_true(strv_has(&b, "w19"));
    assert_false(strv_has(&b, "w20"));
    strv_release(&b);
}

static void test_sort_once(void **state)
{
    (void)state;
    struct strv a = {0};
    strv_sort_once(&a); /* an empty list */
    assert_null(a.v);
    const char *const words[] = {"b", "a", "b", "aa", "a", "b"};
    for (size_t i = 0; i < array_len(words); i++)
        strv_add(&a, words[i]);
    strv_sort_once(&a);
    char *all = strv_join(&a, ",");
    assert_string_equal(all, "a,aa,b");
    assert_null(a.v[3]);
    free(all);
    strv_release(&a);
}

static void test_pairs(void **state)
{
    (void)state;
    struct pairs p = {0}, q = {0};
    pairs_set(&p, "A", "1");
    pairs_set(&p, "B", "2");
    pairs_set(&p, "A", "3");
    pairs_copy(&q, &p);
    pairs_release(&p);
    assert_int_equal(q.n, 2);
    assert_string_equal(pairs_find(&q, "A"), "3");
    assert_null(pairs_find(&q, "C"));
    pairs_release(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_strv),
                                       cmocka_unit_test(test_sort_once),
                                       cmocka_unit_test(test_pairs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

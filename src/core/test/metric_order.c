/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of metric_order.h. */
#include "core/metric/metric_order.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/unit.h"

struct named {
    char *name;
    double more;
};

static bool named_find(const struct metric_order *o,
                       const struct named *v,
                       const char *name,
                       size_t *ret_rank)
{
    return metric_order_find(o, v, sizeof(*v), name, strlen(name), ret_rank);
}

static void names_that_begin_alike(void **state)
{
    static const char *const names[] = {"b", "ab", "a", "abc", "\xff", "A", "a/", "\xe4\xb8\xad"};
    struct named v[8];
    struct metric_order o = {0};
    size_t rank;
    (void)state;
    for (size_t i = 0; i < array_len(names); i++) {
        v[i] = (struct named){.name = xstrdup(names[i])};
        assert_false(named_find(&o, v, names[i], &rank));
        metric_order_insert(&o, rank, i);
    }
    for (size_t i = 0; i < array_len(names); i++) {
        assert_true(named_find(&o, v, names[i], &rank));
        assert_int_equal(o.places[rank], i);
    }
    assert_true(metric_order_find(&o, v, sizeof(*v), "abcd", 3, &rank)); /* of len bytes alone */
    assert_int_equal(o.places[rank], 3);
    assert_false(named_find(&o, v, "abcd", &rank));
    assert_false(named_find(&o, v, "", &rank));
    assert_int_equal(rank, 0);
    for (size_t i = 0; i < array_len(names); i++)
        free(v[i].name);
    metric_order_release(&o);
    assert_int_equal(o.n, 0);
}

/* Upwards, downwards, and in no order. */
static void any_order_is_the_same_order(void **state)
{
    enum { NAMES = 1009 };
    static const size_t strides[] = {1, NAMES - 1, 400};
    struct named *v = xcalloc(NAMES, sizeof(*v));
    (void)state;
    for (size_t way = 0; way < array_len(strides); way++) {
        struct metric_order o = {0};
        size_t rank;
        for (size_t i = 0; i < NAMES; i++) {
            v[i] = (struct named){.name = xasprintf("k%04zu", i * strides[way] % NAMES)};
            assert_false(named_find(&o, v, v[i].name, &rank));
            metric_order_insert(&o, rank, i);
        }
        assert_int_equal(o.n, NAMES);
        for (size_t i = 1; i < NAMES; i++)
            assert_true(strcmp(v[o.places[i - 1]].name, v[o.places[i]].name) < 0);
        for (size_t i = 0; i < NAMES; i++) {
            assert_true(named_find(&o, v, v[i].name, &rank));
            assert_int_equal(o.places[rank], i);
        }
        for (size_t i = 0; i < NAMES; i++)
            free(v[i].name);
        metric_order_release(&o);
    }
    free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_that_begin_alike),
        cmocka_unit_test(any_order_is_the_same_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

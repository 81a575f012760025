/* SPDX-License-Identifier: Apache-2.0 */
/* A random walk of the heap against a plain array. */
#include "base/order/heap.h"

#include "base/unit.h"

enum { ITEMS = 200, STEPS = 20000 };

static void check_heap(const struct heap *h)
{
    for (size_t i = 0; i < h->n; i++) {
        assert_int_equal(h->v[i]->pos, i + 1);
        assert_true(i == 0 || h->v[(i - 1) / 2]->at <= h->v[i]->at);
    }
}

/* The earliest of those that are in. */
static usec_t earliest(const struct heap_item *items, size_t *ret_n)
{
    usec_t at = 0;
    *ret_n = 0;
    for (size_t i = 0; i < ITEMS; i++)
        if (items[i].pos) {
            at = !*ret_n || items[i].at < at ? items[i].at : at;
            ++*ret_n;
        }
    return at;
}

static void test_random_walk(void **state)
{
    (void)state;
    static struct heap_item items[ITEMS];
    struct heap h = {0};
    unsigned rng = 4711;
    for (int step = 0; step < STEPS; step++) {
        rng = rng * 1664525 + 1013904223;
        struct heap_item *item = &items[(rng >> 8) % ITEMS];
        if (rng >> 30 == 0)
            heap_remove(&h, item);
        else
            heap_set(&h, item, 1 + (rng >> 4) % 1000);
        size_t n;
        usec_t at = earliest(items, &n);
        check_heap(&h);
        assert_int_equal(h.n, n);
        assert_true(!n || (!heap_due(&h, at - 1) && heap_due(&h, at)->at == at));
    }
    heap_release(&h);
}

static void test_order(void **state)
{
    (void)state;
    struct heap_item items[5] = {0};
    static const usec_t times[] = {30, 10, 50, 20, 40};
    struct heap h = {0};
    assert_null(heap_due(&h, 1000));
    for (size_t i = 0; i < 5; i++)
        heap_set(&h, &items[i], times[i]);
    heap_set(&h, &items[2], 15); /* moved */
    heap_remove(&h, &items[4]);
    heap_remove(&h, &items[4]); /* is in no heap: nothing */
    assert_null(heap_due(&h, 9));
    static const size_t order[] = {1, 2, 3, 0};
    for (size_t i = 0; i < 4; i++) {
        struct heap_item *first = heap_due(&h, 100);
        assert_ptr_equal(first, &items[order[i]]);
        heap_remove(&h, first);
    }
    assert_null(heap_due(&h, 1000));
    heap_release(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_random_walk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

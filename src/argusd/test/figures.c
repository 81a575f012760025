/* SPDX-License-Identifier: Apache-2.0 */
/* Samples in memory: each column keeps what its figure can be in as few bytes as that takes, and no
 * sample touches another one. */
#include <math.h>
#include <stdlib.h>

#include "argusd/figures/figures_state.h"
#include "base/unit.h"

enum { GPUS = 3, FIRST = 1000 };

/* The most that each figure of a GPU is expected to be, in its steps. */
static const int64_t most_of[] = {
    [FIGURE_GPU_UTIL] = 100,          [FIGURE_GPU_MEM_USED] = 4 << 20, /* MiB */
    [FIGURE_GPU_MEM_TOTAL] = 4 << 20, [FIGURE_GPU_POWER] = 20000,
    [FIGURE_GPU_TEMPERATURE] = 200,   [FIGURE_GPU_XID] = 9999,
    [FIGURE_GPU_ECC] = 1 << 20,
};

static int64_t value_of(size_t column, int64_t slot)
{
    int64_t most = column < FIGURE_NODE_FIGURES ? INT32_MAX : most_of[figure_of_column(column)];
    return slot % 3 == 0 ? most : (int64_t)(column * 31 + (size_t)slot * 7) % (most + 1);
}

static void fill_slots(struct figures_node *n, int gpus, int64_t from, int64_t to)
{
    for (int64_t slot = from; slot < to; slot++) {
        figures_make_room(n, gpus, slot);
        for (size_t c = 0; c < figure_columns(gpus); c++)
            figures_set(n, c, slot, value_of(c, slot));
    }
}

static void check_slots(const struct figures_node *n, int gpus, int64_t from, int64_t to)
{
    for (int64_t slot = from; slot < to; slot++)
        for (size_t c = 0; c < figure_columns(gpus); c++)
            assert_int_equal(figures_cell(n, c, slot), value_of(c, slot));
}

static void test_each_keeps_what_it_can_be(void **state)
{
    struct figures_node *n = xcalloc(1, sizeof(*n));
    (void)state;
    fill_slots(n, GPUS, FIRST, FIRST + FIGURES_SHORT);
    check_slots(n, GPUS, FIRST, FIRST + FIGURES_SHORT);
    fill_slots(n, GPUS, FIRST + FIGURES_SHORT, FIRST + FIGURES_SHORT + 5); /* over the oldest */
    check_slots(n, GPUS, FIRST + 5, FIRST + FIGURES_SHORT + 5);
    figures_node_free(n);
}

static void test_a_gpu_more_leaves_the_others(void **state)
{
    struct figures_node *n = xcalloc(1, sizeof(*n));
    (void)state;
    fill_slots(n, 1, FIRST, FIRST + 10);
    fill_slots(n, GPUS, FIRST + 10, FIRST + 11);
    check_slots(n, 1, FIRST, FIRST + 10);
    check_slots(n, GPUS, FIRST + 10, FIRST + 11);
    for (size_t c = figure_columns(1); c < figure_columns(GPUS); c++)
        assert_int_equal(figures_cell(n, c, FIRST + 9), FIGURE_UNTOLD);
    figures_node_free(n);
}

static void test_what_does_not_fit_is_untold(void **state)
{
    struct figures_node *n = xcalloc(1, sizeof(*n));
    static const int64_t odd[] = {FIGURE_NONE, INT64_MAX, INT64_C(1) << 40, -(INT64_C(1) << 40)};
    (void)state;
    figures_make_room(n, GPUS, FIRST);
    for (size_t c = 0; c < figure_columns(GPUS); c++) {
        for (size_t i = 0; i < array_len(odd); i++) {
            figures_set(n, c, FIRST, odd[i]);
            assert_int_equal(figures_cell(n, c, FIRST), FIGURE_UNTOLD);
        }
        figures_set(n, c, FIRST, -1);
        assert_int_equal(figures_cell(n, c, FIRST), -1);
    }
    figures_node_free(n);
}

/* Ray's page, which comes at the same time and says nothing of RDMA, takes nothing back. */
static void test_rdma_stays_beside_a_page(void **state)
{
    static const unsigned char seed[16];
    struct figures fs = {.nodes = map_new(seed)};
    struct figures_node *n = xcalloc(1, sizeof(*n));
    struct figure_page *page = xcalloc(1, sizeof(*page));
    const struct rdma_rate rate = {.received = 100 * 65536.0, .sent = 0};
    (void)state;
    (void)map_set(fs.nodes, "n1", n); /* there was none */
    assert_true(isnan(figures_now(&fs, "n1", FIGURE_RDMA_RECEIVED, -1)));
    figures_put_rdma(&fs, "n1", &rate);
    figures_put_rdma(&fs, "n2", &rate); /* nobody knows it */
    figure_page_init(page);
    page->v[FIGURE_NET_SENT] = 5;
    figures_put(n, figure_slot(clock_wall()), page);
    assert_true(figures_now(&fs, "n1", FIGURE_RDMA_RECEIVED, -1) == rate.received);
    assert_true(figures_now(&fs, "n1", FIGURE_RDMA_SENT, -1) == 0);
    assert_true(figures_now(&fs, "n1", FIGURE_NET_SENT, -1) == 5 * 65536.0);
    assert_true(isnan(figures_now(&fs, "n1", FIGURE_NET_RECEIVED, -1)));
    free(page);
    figures_node_free(n);
    map_free(fs.nodes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_keeps_what_it_can_be),
        cmocka_unit_test(test_a_gpu_more_leaves_the_others),
        cmocka_unit_test(test_what_does_not_fit_is_untold),
        cmocka_unit_test(test_rdma_stays_beside_a_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

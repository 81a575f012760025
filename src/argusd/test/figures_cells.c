/* SPDX-License-Identifier: Apache-2.0 */
/* The table of samples beside a plain one: what is read is the same however few bytes it takes, and
 * columns become narrow again. */
#include "argusd/figures/figures_cells.h"

#include <stdlib.h>

#include "base/unit.h"

enum { CELLS_GPUS = 4, CELLS_SLOTS = 600, CELLS_ROUNDS = 5 };

/* What was put, by column and slot. */
struct cells_plain {
    int32_t v[FIGURE_COLUMNS_MAX][CELLS_SLOTS];
};

static void put_both(struct figures_cells *t,
                     struct cells_plain *plain,
                     size_t column,
                     int64_t slot,
                     int64_t steps)
{
    figures_cells_put(t, column, slot, steps);
    plain->v[column][slot] = steps == FIGURE_NONE ? FIGURE_UNTOLD : (int32_t)steps;
}

static void check_both(const struct figures_cells *t, const struct cells_plain *plain, int64_t last)
{
    for (size_t c = 0; c < t->n_columns; c++) {
        int64_t from = last - figures_cells_depth(c) + 1;
        for (int64_t slot = from < 0 ? 0 : from; slot <= last; slot++)
            assert_int_equal(figures_cells_get(t, c, slot), plain->v[c][slot]);
    }
}

static int64_t dice(int64_t sides)
{
    static uint32_t state = 2463534242;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state % sides;
}

/* Still, near a value, anywhere, untold; a column changes its ways now and then. */
static int64_t any_steps(size_t column, int64_t slot)
{
    int64_t large = column < FIGURE_NODE_FIGURES ? INT32_MAX : 127, still = large / 3;
    switch ((column * 7 + (size_t)slot / 37) % 5) {
    case 0:
        return still;
    case 1:
        return still + dice(50) - 25;
    case 2:
        return dice(2) ? FIGURE_NONE : still;
    case 3:
        return dice(3) ? -large + dice(9) : large - dice(9);
    default:
        return FIGURE_NONE;
    }
}

static void test_reads_what_was_put(void **state)
{
    struct cells_plain *plain = xcalloc(1, sizeof(*plain));
    (void)state;
    for (int round = 0; round < CELLS_ROUNDS; round++) {
        struct figures_cells t = {0};
        for (size_t c = 0; c < FIGURE_COLUMNS_MAX; c++)
            for (int64_t slot = 0; slot < CELLS_SLOTS; slot++)
                plain->v[c][slot] = FIGURE_UNTOLD;
        for (int64_t slot = 0; slot < CELLS_SLOTS; slot++) {
            figures_cells_grow(&t, slot < 50 ? 0 : slot < 90 ? 1 : CELLS_GPUS);
            for (size_t c = 0; c < t.n_columns; c++)
                put_both(&t, plain, c, slot, FIGURE_NONE); /* as a new slot begins */
            for (size_t c = 0; c < t.n_columns; c++)
                put_both(&t, plain, c, slot, any_steps(c + (size_t)round, slot));
            if (slot % FIGURE_ROLL == 0)
                figures_cells_pack(&t);
            if (slot % 7 == 0)
                check_both(&t, plain, slot);
        }
        check_both(&t, plain, CELLS_SLOTS - 1);
        figures_cells_release(&t);
    }
    free(plain);
}

static void fill_all(struct figures_cells *t,
                     int64_t from,
                     int64_t (*steps)(size_t c, int64_t slot))
{
    for (int64_t slot = from; slot < from + FIGURES_LONG; slot++)
        for (size_t c = 0; c < t->n_columns; c++)
            figures_cells_put(t, c, slot, steps(c, slot));
}

static int64_t stands_still(size_t column, int64_t slot)
{
    (void)slot;
    return (int64_t)column;
}

static int64_t moves_a_little(size_t column, int64_t slot)
{
    return (int64_t)column + slot % 60;
}

static int64_t moves_much(size_t column, int64_t slot)
{
    return slot % 2 * (column < FIGURE_NODE_FIGURES ? 1 << 20 : 100);
}

static void test_takes_as_few_bytes_as_it_can(void **state)
{
    struct figures_cells t = {0};
    (void)state;
    figures_cells_grow(&t, 8);
    size_t untold = t.n;
    fill_all(&t, 0, stands_still);
    assert_int_equal(t.n, untold);
    fill_all(&t, FIGURES_LONG, moves_a_little);
    size_t near = t.n;
    assert_true(near > untold);
    fill_all(&t, 2 * FIGURES_LONG, moves_much);
    size_t whole = t.n;
    assert_true(whole > near);
    fill_all(&t, 3 * FIGURES_LONG, moves_a_little);
    assert_int_equal(t.n, whole); /* until it is packed */
    figures_cells_pack(&t);
    assert_int_equal(t.n, near);
    fill_all(&t, 4 * FIGURES_LONG, stands_still);
    figures_cells_pack(&t);
    assert_int_equal(t.n, untold);
    for (size_t c = 0; c < t.n_columns; c++)
        assert_int_equal(figures_cells_get(&t, c, 5 * FIGURES_LONG - 1), (int32_t)c);
    figures_cells_release(&t);
}

static int64_t farthest(size_t column, int64_t slot)
{
    int64_t most = figure_of_column(column) == FIGURE_GPU_UTIL ? 127 : 30000;
    return slot % 2 ? most : -most;
}

/* A whole table of 64 GPUs is within reach of a column's start. */
static void test_the_largest_node(void **state)
{
    struct figures_cells t = {0};
    (void)state;
    figures_cells_grow(&t, FIGURE_GPUS_MAX);
    for (int64_t slot = 0; slot < FIGURES_LONG; slot++)
        for (size_t c = 0; c < t.n_columns; c++)
            figures_cells_put(&t, c, slot, farthest(c, slot));
    assert_true(t.n > 64 * FIGURES_LONG && t.n < UINT16_MAX);
    for (int64_t slot = FIGURES_LONG - FIGURES_SHORT; slot < FIGURES_LONG; slot++)
        for (size_t c = 0; c < t.n_columns; c++)
            assert_int_equal(figures_cells_get(&t, c, slot), farthest(c, slot));
    figures_cells_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_what_was_put),
        cmocka_unit_test(test_takes_as_few_bytes_as_it_can),
        cmocka_unit_test(test_the_largest_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

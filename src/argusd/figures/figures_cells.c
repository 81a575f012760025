/* SPDX-License-Identifier: Apache-2.0 */
/* figures_cells.c - see figures_cells.h.
 *
 * A column is kept in one of three ways, the narrowest that its samples allow:
 *
 *   SAME   a bit per slot: told or not; what was told is `base`
 *   NEAR   a byte per slot: how far it is from `base`
 *   WHOLE  1 to 4 bytes per slot, as many as its figure can need; `base` is 0
 *
 * In bytes the least number stands for what nobody told. One block holds all columns, so that a
 * node costs two allocations: when a column becomes wider, those behind it are moved. */
#include "argusd/figures/figures_cells.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum cells_kind { CELLS_SAME, CELLS_NEAR, CELLS_WHOLE };

struct figures_column {
    int32_t base;
    uint16_t start; /* of its samples in the block: 64 GPUs are 37 kB at most */
    uint8_t kind;
};

enum {
    CELLS_STEP = 256,     /* the block grows by so many bytes */
    CELLS_NEAR_MAX = 127, /* from base */
    CELLS_PACK_MAX = 127, /* between the least and the most: then a column has room to move */
};

/* ---- how a column is kept ---- */

int64_t figures_cells_depth(size_t column)
{
    return figure_of_column(column) == FIGURE_GPU_UTIL ? FIGURES_LONG : FIGURES_SHORT;
}

/* Bytes of a sample: what a figure of a GPU can be, in its steps, fits. */
static size_t cells_width(size_t column)
{
    static const unsigned char of_gpu[] = {
        [FIGURE_GPU_UTIL] = 1,  [FIGURE_GPU_MEM_USED] = 3,    [FIGURE_GPU_MEM_TOTAL] = 3,
        [FIGURE_GPU_POWER] = 2, [FIGURE_GPU_TEMPERATURE] = 2, [FIGURE_GPU_XID] = 2,
        [FIGURE_GPU_ECC] = 3};
    return column < FIGURE_NODE_FIGURES ? sizeof(int32_t) : of_gpu[figure_of_column(column)];
}

static size_t cells_width_as(size_t column, enum cells_kind kind)
{
    return kind == CELLS_NEAR ? 1 : cells_width(column);
}

static size_t cells_size(size_t column, enum cells_kind kind)
{
    size_t depth = (size_t)figures_cells_depth(column);
    return kind == CELLS_SAME ? (depth + 7) / 8 : depth * cells_width_as(column, kind);
}

static size_t cells_place(size_t column, int64_t slot)
{
    return (size_t)(slot % figures_cells_depth(column));
}

/* ---- one sample ---- */

static void cells_write(unsigned char *at, size_t width, int32_t v)
{
    uint32_t bits = v == FIGURE_UNTOLD ? 1U << (8 * width - 1) : (uint32_t)v;
    for (size_t i = 0; i < width; i++)
        at[i] = (unsigned char)(bits >> (8 * i));
}

static int32_t cells_read(const unsigned char *at, size_t width, int32_t base)
{
    uint32_t v = 0, sign = 1U << (8 * width - 1);
    for (size_t i = 0; i < width; i++)
        v |= (uint32_t)at[i] << (8 * i);
    return v == sign ? FIGURE_UNTOLD : base + (int32_t)((v ^ sign) - sign);
}

int32_t figures_cells_get(const struct figures_cells *t, size_t column, int64_t slot)
{
    const struct figures_column *c = &t->columns[column];
    const unsigned char *from = &t->bytes[c->start];
    size_t place = cells_place(column, slot);
    if (c->kind == CELLS_SAME)
        return from[place / 8] >> place % 8 & 1 ? c->base : FIGURE_UNTOLD;
    size_t width = cells_width_as(column, (enum cells_kind)c->kind);
    return cells_read(&from[place * width], width, c->base);
}

/* The column suits v. */
static void cells_store(struct figures_cells *t, size_t column, int64_t slot, int32_t v)
{
    const struct figures_column *c = &t->columns[column];
    unsigned char *to = &t->bytes[c->start];
    size_t place = cells_place(column, slot);
    unsigned bit = 1U << place % 8;
    if (c->kind == CELLS_SAME) {
        to[place / 8] =
            (unsigned char)(v == FIGURE_UNTOLD ? to[place / 8] & ~bit : to[place / 8] | bit);
        return;
    }
    size_t width = cells_width_as(column, (enum cells_kind)c->kind);
    cells_write(&to[place * width], width, v == FIGURE_UNTOLD ? v : v - c->base);
}

static bool cells_suits(const struct figures_column *c, int32_t v)
{
    int64_t away = (int64_t)v - c->base;
    if (v == FIGURE_UNTOLD || c->kind == CELLS_WHOLE)
        return true;
    return c->kind == CELLS_SAME ? away == 0 : away >= -CELLS_NEAR_MAX && away <= CELLS_NEAR_MAX;
}

/* ---- wider and narrower ---- */

static void cells_reserve(struct figures_cells *t, size_t n)
{
    size_t cap = (n + CELLS_STEP - 1) / CELLS_STEP * CELLS_STEP;
    if (cap == t->cap)
        return;
    t->bytes = xrealloc(t->bytes, cap, sizeof(*t->bytes));
    t->cap = cap;
}

/* The column has `size` bytes from now on, which are 0. */
static void cells_resize(struct figures_cells *t, size_t column, size_t size)
{
    struct figures_column *c = &t->columns[column];
    size_t had = cells_size(column, (enum cells_kind)c->kind), start = c->start;
    size_t behind = t->n - start - had, n = t->n - had + size;
    if (n > t->cap)
        cells_reserve(t, n);
    memmove(&t->bytes[start + size], &t->bytes[start + had], behind);
    memset(&t->bytes[start], 0, size);
    for (size_t i = column + 1; i < t->n_columns; i++)
        t->columns[i].start = (uint16_t)(t->columns[i].start - had + size);
    t->n = n;
}

static void cells_recode(struct figures_cells *t, size_t column, enum cells_kind kind, int32_t base)
{
    int32_t v[FIGURES_LONG];
    struct figures_column *c = &t->columns[column];
    int64_t depth = figures_cells_depth(column);
    for (int64_t slot = 0; slot < depth; slot++)
        v[slot] = figures_cells_get(t, column, slot);
    cells_resize(t, column, cells_size(column, kind));
    c->kind = (uint8_t)kind;
    c->base = base;
    for (int64_t slot = 0; slot < depth; slot++)
        cells_store(t, column, slot, v[slot]);
}

struct cells_range {
    int32_t least, most; /* least > most: nobody told */
};

static void cells_range_add(struct cells_range *r, int32_t v)
{
    if (v == FIGURE_UNTOLD)
        return;
    r->least = v < r->least ? v : r->least;
    r->most = v > r->most ? v : r->most;
}

static struct cells_range cells_range_of(const struct figures_cells *t, size_t column)
{
    struct cells_range r = {.least = INT32_MAX, .most = INT32_MIN};
    for (int64_t slot = 0; slot < figures_cells_depth(column); slot++)
        cells_range_add(&r, figures_cells_get(t, column, slot));
    return r;
}

/* The narrowest way to keep what is in the range; apart: the most that may be between the least and
 * the most where bytes are kept near a base. */
static enum cells_kind cells_kind_for(size_t column, const struct cells_range *r, int64_t apart)
{
    int64_t between = (int64_t)r->most - r->least;
    if (between <= 0)
        return CELLS_SAME;
    return between <= apart && cells_width(column) > 1 ? CELLS_NEAR : CELLS_WHOLE;
}

static void cells_recode_as(struct figures_cells *t,
                            size_t column,
                            enum cells_kind kind,
                            const struct cells_range *r)
{
    bool is_told = r->least <= r->most;
    int64_t middle = r->least + ((int64_t)r->most - r->least) / 2;
    cells_recode(t, column, kind, kind == CELLS_WHOLE || !is_told ? 0 : (int32_t)middle);
}

/* ---- the table ---- */

void figures_cells_release(struct figures_cells *t)
{
    free(t->columns);
    free(t->bytes);
    *t = (struct figures_cells){0};
}

void figures_cells_grow(struct figures_cells *t, int n_gpus)
{
    size_t columns = figure_columns(n_gpus), n = t->n;
    if (columns <= t->n_columns)
        return;
    t->columns = xrealloc(t->columns, columns, sizeof(*t->columns));
    for (size_t c = t->n_columns; c < columns; c++) {
        t->columns[c] = (struct figures_column){.start = (uint16_t)n, .kind = CELLS_SAME};
        n += cells_size(c, CELLS_SAME);
    }
    cells_reserve(t, n);
    memset(&t->bytes[t->n], 0, n - t->n);
    t->n = n;
    t->n_columns = columns;
}

void figures_cells_put(struct figures_cells *t, size_t column, int64_t slot, int64_t steps)
{
    int64_t most = (INT64_C(1) << (8 * cells_width(column) - 1)) - 1;
    int32_t v = steps < -most || steps > most ? FIGURE_UNTOLD : (int32_t)steps;
    if (!cells_suits(&t->columns[column], v)) {
        cells_store(t, column, slot, FIGURE_UNTOLD); /* what stood there counts no more */
        struct cells_range r = cells_range_of(t, column);
        cells_range_add(&r, v);
        cells_recode_as(t, column, cells_kind_for(column, &r, 2 * CELLS_NEAR_MAX), &r);
    }
    cells_store(t, column, slot, v);
}

void figures_cells_pack(struct figures_cells *t)
{
    for (size_t c = 0; c < t->n_columns; c++) {
        struct cells_range r = cells_range_of(t, c);
        enum cells_kind kind = cells_kind_for(c, &r, CELLS_PACK_MAX);
        if (kind < t->columns[c].kind)
            cells_recode_as(t, c, kind, &r);
    }
    cells_reserve(t, t->n);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* figures_cells.h - the samples of one node in memory: a table of columns (core/figure/
 * figure_block.h) by slots, in few bytes. Pure.
 *
 * Of each column the last figures_cells_depth() slots are there. Most columns stand still for
 * minutes (a GPU's memory in all, its errors, what nobody tells) or move a little (its
 * temperature), so a column begins with a bit per slot and is made wider when a sample asks for
 * it; figures_cells_pack() makes it narrow again. What is read is the same however it is kept. */
#pragma once
#include "core/figure/figure_block.h"

enum {
    FIGURES_LONG = 128, /* slots of a GPU's use: 32 minutes, of which hangs are judged */
    FIGURES_SHORT = FIGURE_ROLL + 8, /* of all else: a rollup, and until it is written */
};

struct figures_column;

/* Zeroed: no columns. */
struct figures_cells {
    size_t n_columns;
    struct figures_column *columns;
    unsigned char *bytes; /* n of them: the samples of the first column, of the second, … */
    size_t n, cap;
};

void figures_cells_release(struct figures_cells *t);
/* Slots that are kept of a column. */
int64_t figures_cells_depth(size_t column);
/* Room for the columns of so many GPUs, untold; there are never fewer than before. */
void figures_cells_grow(struct figures_cells *t, int n_gpus);
/* steps: FIGURE_NONE, and what is larger than its figure can be, are untold. A slot takes the place
 * of the one that is a depth before it. */
void figures_cells_put(struct figures_cells *t, size_t column, int64_t slot, int64_t steps);
/* FIGURE_UNTOLD where nobody told. The column is there. */
int32_t figures_cells_get(const struct figures_cells *t, size_t column, int64_t slot);
/* As few bytes as what is there needs. */
void figures_cells_pack(struct figures_cells *t);

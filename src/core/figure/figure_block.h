/* SPDX-License-Identifier: Apache-2.0 */
/* figure_block.h - the samples and rollups of one node as bytes for a file. Pure.
 *
 * A file is a row of records. Each holds FIGURE_ROLL samples, or one rollup, of all figures of a
 * node: its length, the CRC-32 of what follows, and the differences to what stands before. After
 * Pelkonen et al., "Gorilla: A Fast, Scalable, In-Memory Time Series Database" (VLDB 2015), times
 * on a grid need no bytes, and what does not change needs next to none; since our values are whole
 * steps, differences of whole numbers take the place of Gorilla's XOR of doubles. A run of values
 * that do not change, or that nobody told, is one number, over the borders of figures.
 *
 * A record that was cut off, or whose sum is wrong, ends the file: what follows would build on it.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/figure/figure.h"

enum {
    FIGURE_COLUMNS_MAX = FIGURE_NODE_FIGURES + FIGURE_GPUS_MAX * FIGURE_GPU_FIGURES,
    FIGURE_RECORD_MAX = 512 * 1024, /* bytes */
};
#define FIGURE_UNTOLD INT32_MIN /* a cell that nobody told */

/* Node's figures first, then those of GPU 0, 1, … */
static inline size_t figure_columns(int n_gpus)
{
    return (size_t)FIGURE_NODE_FIGURES + (size_t)n_gpus * FIGURE_GPU_FIGURES;
}
static inline size_t figure_column(enum figure f, int gpu)
{
    return gpu < 0 ? (size_t)f
                   : (size_t)FIGURE_NODE_FIGURES + (size_t)gpu * FIGURE_GPU_FIGURES +
                         ((size_t)f - FIGURE_GPU_UTIL);
}
static inline enum figure figure_of_column(size_t column)
{
    size_t of_gpus = column < FIGURE_NODE_FIGURES ? 0 : column - FIGURE_NODE_FIGURES;
    return (enum figure)(column - of_gpus + of_gpus % FIGURE_GPU_FIGURES);
}

struct figure_roll {
    int32_t mean, max, min; /* UNTOLD all three, with n 0, when there was no sample */
    int32_t n;
};

/* What a record builds on; zeroed at the start of a file, released at its end. */
struct figure_before {
    bool is_begun;
    int n_gpus;
    int32_t *last; /* per column */
};
void figure_before_release(struct figure_before *before);

/* One record. */
struct figure_record {
    bool is_rollup;
    int64_t slot; /* its first sample: a multiple of FIGURE_ROLL */
    int n_gpus;
    union {
        int32_t samples[FIGURE_COLUMNS_MAX][FIGURE_ROLL];
        struct figure_roll rolls[FIGURE_COLUMNS_MAX];
    };
};

/* Appends r. Another number of GPUs than before begins anew by itself. -EMSGSIZE: out is full. */
must_check int figure_record_put(const struct figure_record *r,
                                 struct figure_before *before,
                                 struct buf *out);
/* The record at *at of the n bytes; *at moves on. 1, 0 at the end, -EBADMSG for one that is cut off
 * or damaged (*at stays: a file is good up to there). */
must_check int figure_record_get(const unsigned char *p,
                                 size_t n,
                                 size_t *at,
                                 struct figure_before *before,
                                 struct figure_record *ret);

/* Mean (rounded), max, min and number of a column's samples. */
struct figure_roll figure_roll_of(const int32_t *v, size_t n);

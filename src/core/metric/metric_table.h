/* SPDX-License-Identifier: Apache-2.0 */
/* metric_table.h - the values of many metrics over the steps, in bounded memory.
 *
 * A point covers one step at first. When the table is full each two neighbours become one that
 * keeps the smallest, the greatest and the last value, and so on: the whole run always fits, and
 * no peak is lost. Records come in the order of their steps; one whose step has a point already
 * is merged into it, value by value, the last one wins. Pure: no clock, no I/O.
 *
 * Memory grows with the points that are there. Up to METRIC_KEYS_WHOLE keys have as many points as
 * the table was made with; each time that more keys would need more memory than those, all of them
 * have half as many points from then on, but at least two. A key is found in the same time whatever
 * order the names came in. */
#pragma once
#include "core/metric/metric.h"

enum { METRIC_KEYS_MAX = 2048, METRIC_KEYS_WHOLE = 512 };

struct metric_table;

struct metric_point {
    int64_t first, last; /* steps that it covers */
    double min, max, value;
    usec_t at; /* of the newest record in it; 0 = no record told */
};

/* points: at least 2. */
struct metric_table *metric_table_new(size_t points);
void metric_table_free(struct metric_table *t); /* NULL is fine */
void metric_table_add(struct metric_table *t, const struct metric_record *r);

size_t metric_table_points(const struct metric_table *t);
size_t metric_table_keys(const struct metric_table *t);
size_t metric_table_left_out(const struct metric_table *t); /* values of keys past the ceiling */
const char *metric_table_key(const struct metric_table *t, size_t key); /* borrowed */
/* The number of the key; metric_table_keys() if there is none. */
size_t metric_table_find(const struct metric_table *t, const char *name);
/* The newest value of a key, NaN included, and its step. */
double metric_table_latest(const struct metric_table *t, size_t key, int64_t *ret_step);

/* The first point whose last step is after this one. */
size_t metric_table_after(const struct metric_table *t, int64_t step);
/* Points from <= i < to as one. False: this key has no finite value there (its steps are set). */
bool metric_table_range(const struct metric_table *t,
                        size_t key,
                        size_t from,
                        size_t to,
                        struct metric_point *ret);
/* NULL, or what is wrong with it (for tests). */
const char *metric_table_check(const struct metric_table *t);

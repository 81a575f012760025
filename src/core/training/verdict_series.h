/* SPDX-License-Identifier: Apache-2.0 */
/* verdict_series.h - the newest values of one figure, and the first ones as its baseline. Pure, in
 * fixed memory. `back` counts from the newest value, which is 0. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SERIES_KEPT = 64, SERIES_BASE = 10 };

struct verdict_series {
    double v[SERIES_KEPT], base[SERIES_BASE];
    int64_t step[SERIES_KEPT], first; /* the step of the first one that ever came */
    size_t n;                         /* values that ever came */
};

/* A finite value. */
void series_add(struct verdict_series *s, int64_t step, double value);
size_t series_count(const struct verdict_series *s); /* that are kept */
double series_at(const struct verdict_series *s, size_t back);
int64_t series_step(const struct verdict_series *s, size_t back);

/* The median of n numbers, which it sorts; NaN of none. */
double series_median_of(double *v, size_t n);
/* The median of `count` values from `back` on, of those that are there; NaN: none. */
double series_median(const struct verdict_series *s, size_t back, size_t count);
/* Their spread about it as a standard deviation would be, by the median of the distances. */
double series_spread(const struct verdict_series *s, size_t back, size_t count);
double series_mean(const struct verdict_series *s, size_t back, size_t count);
/* The spread from one value to the next, as one value's: no trend is in it. NaN: too few. */
double series_noise(const struct verdict_series *s, size_t count);

/* The median of the first values that ever came; NaN until all of them are there. */
double series_baseline(const struct verdict_series *s);
/* Their spread about it, as series_spread(). */
double series_base_spread(const struct verdict_series *s);

/* Where the kept values begin to be others than before: two straight lines that fit them best, in
 * the logarithm where all values are above 0. The step at which the second one begins. */
int64_t series_turn(const struct verdict_series *s);

struct series_line {
    double slope; /* a step */
    double fit;   /* the share of the variance that the line explains, from 0 to 1 */
};
/* The straight line through the newest `count` values. */
struct series_line series_line(const struct verdict_series *s, size_t count);

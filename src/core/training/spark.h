/* SPDX-License-Identifier: Apache-2.0 */
/* spark.h - a curve that fits in a line of text: "▁▂▃▅▇". It spans all values that it was given;
 * when it is full every second point goes. Pure and bounded. */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { SPARK_POINTS = 32, SPARK_TEXT_MAX = (SPARK_POINTS + 1) * 3 + 1 };

struct spark { /* zeroed: no value yet */
    double v[SPARK_POINTS];
    uint32_t n, stride; /* every stride-th value is a point */
    uint64_t seen;
    double newest;
};
void spark_add(struct spark *s, double value);
/* Its points, the newest last; returns how many they are: 0 of no value. */
size_t spark_points(const struct spark *s, double out[static SPARK_POINTS + 1]);
/* From the least to the greatest value in eight levels, the newest last; what is no number is "×".
 * "" of fewer than two values: a point is no curve. Returns out. */
const char *spark_text(const struct spark *s, char out[static SPARK_TEXT_MAX]);

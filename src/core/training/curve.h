/* SPDX-License-Identifier: Apache-2.0 */
/* curve.h - the curve of one metric on its way into a message: as a line of text, which is a fact
 * of an alert, and as a picture, for those who can see one.
 *
 * The points are those of spark.h. A line is "0.5 1 1 0.25: actor/entropy": the limit, the values,
 * the metric; "nan" stands for what is no number, and for no limit. The picture is a PNG of four
 * colours with nothing in it but the curve, the limit in red, and the least and greatest number.
 * Pure and bounded. */
#pragma once
#include "base/buf.h"
#include "base/json.h"
#include "core/training/spark.h"

enum {
    CURVE_POINTS = SPARK_POINTS + 1,
    CURVE_TEXT_MAX = 1024,
    CURVE_WIDTH = 400,
    CURVE_HEIGHT = 120,
    CURVE_PNG_MAX = 16 << 10
};

struct curve {
    const char *metric; /* borrowed */
    double limit;       /* that it is held against; NaN: none */
    double v[CURVE_POINTS];
    size_t n;
};

/* Past the ceiling of out, failed is set. */
void curve_to_text(const struct curve *c, struct buf *out);
/* False: text is none, or has no two points. The metric is borrowed from text. */
bool curve_from_text(const char *text, struct curve *ret);

/* Reads an object with "metric", "limit" and "points", where null is no number. False: it has no
 * two points. The metric is borrowed from it. */
bool curve_from_json(const json_t *o, struct curve *ret);

/* Appends a PNG of CURVE_WIDTH by CURVE_HEIGHT, the same bytes for the same curve. */
void curve_picture(const struct curve *c, struct buf *out);

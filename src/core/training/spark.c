/* SPDX-License-Identifier: Apache-2.0 */
/* spark.c - the points of a curve in a line, thinned as they come, and their marks; see spark.h. */
#include "core/training/spark.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { SPARK_LEVELS = 8 };

void spark_add(struct spark *s, double value)
{
    if (!s->stride)
        s->stride = 1;
    s->newest = value;
    if (s->seen++ % s->stride)
        return;
    if (s->n == SPARK_POINTS) {
        for (uint32_t i = 0; i < SPARK_POINTS / 2; i++)
            s->v[i] = s->v[2 * (size_t)i];
        s->n = SPARK_POINTS / 2;
        s->stride *= 2; /* this one is of the new stride, too: SPARK_POINTS is even */
    }
    s->v[s->n++] = value;
}

size_t spark_points(const struct spark *s, double out[static SPARK_POINTS + 1])
{
    size_t n = 0;
    for (; n < s->n; n++)
        out[n] = s->v[n];
    if (s->n && (s->seen - 1) % s->stride)
        out[n++] = s->newest; /* it is no point itself */
    return n;
}

static const char *spark_mark(double value, double least, double most)
{
    static const char *const levels[SPARK_LEVELS] = {"\xe2\x96\x81", "\xe2\x96\x82", "\xe2\x96\x83",
                                                     "\xe2\x96\x84", "\xe2\x96\x85", "\xe2\x96\x86",
                                                     "\xe2\x96\x87", "\xe2\x96\x88"};
    if (!isfinite(value))
        return "\xc3\x97";
    double share = (value / 2 - least / 2) / (most / 2 - least / 2); /* halves: none overflows */
    if (!isfinite(share))                                            /* all are the same */
        share = 0;
    return levels[(int)(share * (SPARK_LEVELS - 1) + 0.5)];
}

const char *spark_text(const struct spark *s, char out[static SPARK_TEXT_MAX])
{
    double v[SPARK_POINTS + 1], least = INFINITY, most = -INFINITY;
    size_t len = 0, n = spark_points(s, v);
    out[0] = '\0';
    if (n < 2)
        return out;
    for (size_t i = 0; i < n; i++) {
        least = isfinite(v[i]) && v[i] < least ? v[i] : least;
        most = isfinite(v[i]) && v[i] > most ? v[i] : most;
    }
    for (size_t i = 0; i < n; i++) {
        const char *mark = spark_mark(v[i], least, most);
        size_t size = strlen(mark); /* three bytes at most, and n is SPARK_POINTS + 1 at most */
        memcpy(out + len, mark, size + 1);
        len += size;
    }
    return out;
}

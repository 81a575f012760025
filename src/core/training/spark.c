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
    s->newest = (float)value;
    if (s->seen++ % s->stride)
        return;
    if (s->n == SPARK_POINTS) {
        for (uint32_t i = 0; i < SPARK_POINTS / 2; i++)
            s->v[i] = s->v[2 * (size_t)i];
        s->n = SPARK_POINTS / 2;
        s->stride *= 2; /* this one is of the new stride, too: SPARK_POINTS is even */
    }
    s->v[s->n++] = (float)value;
}

static const char *spark_mark(float value, float least, float most)
{
    static const char *const levels[SPARK_LEVELS] = {"\xe2\x96\x81", "\xe2\x96\x82", "\xe2\x96\x83",
                                                     "\xe2\x96\x84", "\xe2\x96\x85", "\xe2\x96\x86",
                                                     "\xe2\x96\x87", "\xe2\x96\x88"};
    if (!isfinite(value))
        return "\xc3\x97";
    float share = most > least ? (value - least) / (most - least) : 0;
    return levels[(int)(share * (SPARK_LEVELS - 1) + 0.5F)];
}

const char *spark_text(const struct spark *s, char out[static SPARK_TEXT_MAX])
{
    float least = INFINITY, most = -INFINITY;
    size_t len = 0;
    out[0] = '\0';
    if (s->seen < 2)
        return out;
    bool newest_is_point = (s->seen - 1) % s->stride == 0;
    uint32_t n = s->n + !newest_is_point;
    for (uint32_t i = 0; i < n; i++) {
        float v = i < s->n ? s->v[i] : s->newest;
        least = isfinite(v) && v < least ? v : least;
        most = isfinite(v) && v > most ? v : most;
    }
    for (uint32_t i = 0; i < n; i++) {
        const char *mark = spark_mark(i < s->n ? s->v[i] : s->newest, least, most);
        size_t size = strlen(mark); /* three bytes at most, and n is SPARK_POINTS + 1 at most */
        memcpy(out + len, mark, size + 1);
        len += size;
    }
    return out;
}

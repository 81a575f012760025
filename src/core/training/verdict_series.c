/* SPDX-License-Identifier: Apache-2.0 */
/* verdict_series.c - a ring of values; medians, and lines by sums over it; see verdict_series.h.
 * All is made anew when it is asked for: a ring is short, and most rules end at their first look.
 */
#include "core/training/verdict_series.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

static const double SIGMA = 1.4826; /* of a normal spread, by the median distance */
enum { TURN_BEFORE = 4, TURN_AFTER = 2 };

void series_add(struct verdict_series *s, int64_t step, double value)
{
    if (!s->n)
        s->first = step;
    if (s->n < SERIES_BASE)
        s->base[s->n] = value;
    s->v[s->n % SERIES_KEPT] = value;
    s->step[s->n++ % SERIES_KEPT] = step;
}

size_t series_count(const struct verdict_series *s)
{
    return s->n < SERIES_KEPT ? s->n : SERIES_KEPT;
}

double series_at(const struct verdict_series *s, size_t back)
{
    return s->v[(s->n - 1 - back) % SERIES_KEPT];
}

int64_t series_step(const struct verdict_series *s, size_t back)
{
    return s->step[(s->n - 1 - back) % SERIES_KEPT];
}

/* ---- the middle and the spread ---- */

static int by_number(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double series_median_of(double *v, size_t n)
{
    xsort(v, n, sizeof(*v), by_number);
    if (!n)
        return NAN;
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static size_t series_copy(const struct verdict_series *s, size_t back, size_t count, double *ret)
{
    size_t n = 0;
    for (size_t i = back; i < series_count(s) && n < count; i++)
        ret[n++] = series_at(s, i);
    return n;
}

double series_median(const struct verdict_series *s, size_t back, size_t count)
{
    double v[SERIES_KEPT];
    return series_median_of(v, series_copy(s, back, count, v));
}

/* How far they lie from their median; v is the caller's to spoil. */
static double spread_of(double *v, size_t n)
{
    double middle = series_median_of(v, n);
    for (size_t i = 0; i < n; i++)
        v[i] = fabs(v[i] - middle);
    return SIGMA * series_median_of(v, n);
}

double series_spread(const struct verdict_series *s, size_t back, size_t count)
{
    double v[SERIES_KEPT];
    return spread_of(v, series_copy(s, back, count, v));
}

double series_mean(const struct verdict_series *s, size_t back, size_t count)
{
    double v[SERIES_KEPT], sum = 0;
    size_t n = series_copy(s, back, count, v);
    for (size_t i = 0; i < n; i++)
        sum += v[i];
    return sum / (double)n; /* NaN of none */
}

double series_noise(const struct verdict_series *s, size_t count)
{
    double v[SERIES_KEPT];
    size_t n = series_copy(s, 0, count, v);
    for (size_t i = 0; i + 1 < n; i++)
        v[i] = fabs(v[i] - v[i + 1]);
    return n > 1 ? SIGMA * series_median_of(v, n - 1) / sqrt(2) : (double)NAN;
}

double series_baseline(const struct verdict_series *s)
{
    double v[SERIES_BASE];
    if (s->n < SERIES_BASE)
        return NAN;
    memcpy(v, s->base, sizeof(v));
    return series_median_of(v, SERIES_BASE);
}

double series_base_spread(const struct verdict_series *s)
{
    double v[SERIES_BASE];
    if (s->n < SERIES_BASE)
        return NAN;
    memcpy(v, s->base, sizeof(v));
    return spread_of(v, SERIES_BASE);
}

/* ---- lines ---- */

/* Sums over points, from which a line and what it leaves unexplained follow. */
struct line_sums {
    double n, x, y, xx, xy, yy;
};

static void line_add(struct line_sums *s, double x, double y, double sign)
{
    s->n += sign;
    s->x += sign * x;
    s->y += sign * y;
    s->xx += sign * x * x;
    s->xy += sign * x * y;
    s->yy += sign * y * y;
}

/* The squares that no line explains. */
static double line_rest(const struct line_sums *s)
{
    double xx = s->xx - s->x * s->x / s->n, xy = s->xy - s->x * s->y / s->n;
    double yy = s->yy - s->y * s->y / s->n, rest = xx > 0 ? yy - xy * xy / xx : yy;
    return rest > 0 ? rest : 0;
}

static size_t oldest_first(const struct verdict_series *s, double *ret)
{
    size_t n = series_count(s);
    bool above = true;
    for (size_t i = 0; i < n; i++) {
        ret[i] = series_at(s, n - 1 - i);
        above = above && ret[i] > 0;
    }
    for (size_t i = 0; above && i < n; i++)
        ret[i] = log(ret[i]);
    return n;
}

int64_t series_turn(const struct verdict_series *s)
{
    double v[SERIES_KEPT], least = INFINITY;
    size_t n = oldest_first(s, v), at = 0;
    struct line_sums before = {0}, after = {0};
    for (size_t i = 0; i < n; i++)
        line_add(&after, (double)i, v[i], 1);
    for (size_t i = 0; i + TURN_AFTER < n; i++) {
        line_add(&before, (double)i, v[i], 1);
        line_add(&after, (double)i, v[i], -1);
        double rest = line_rest(&before) + line_rest(&after);
        if (i + 1 >= TURN_BEFORE && rest < least) {
            least = rest;
            at = i + 1;
        }
    }
    return n ? series_step(s, n - 1 - at) : 0;
}

struct series_line series_line(const struct verdict_series *s, size_t count)
{
    struct line_sums sums = {0};
    size_t n = series_count(s) < count ? series_count(s) : count;
    double first = n ? (double)series_step(s, n - 1) : 0;
    for (size_t i = 0; i < n; i++)
        line_add(&sums, (double)series_step(s, i) - first, series_at(s, i), 1);
    double xx = sums.xx - sums.x * sums.x / sums.n, xy = sums.xy - sums.x * sums.y / sums.n;
    double yy = sums.yy - sums.y * sums.y / sums.n;
    if (n < 3 || xx <= 0 || yy <= 0)
        return (struct series_line){.slope = n < 3 || xx <= 0 ? (double)NAN : 0};
    return (struct series_line){.slope = xy / xx, .fit = 1 - line_rest(&sums) / yy};
}

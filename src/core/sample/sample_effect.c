/* SPDX-License-Identifier: Apache-2.0 */
/* sample_effect.c - the sums about the means of groups, and the two shares made of them; see
 * sample_effect.h. */
#include "core/sample/sample_effect.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum {
    CLASSES = SAMPLE_TRAITS, /* of bytes */
    LEAST_LEFT = 8,          /* degrees of freedom that a spread is measured with */
};
static const double OF_A_DOUBLING = 16; /* steps of a length */
static const double SAME = 1e-9;        /* a spread of rounding alone */

/* The class of a byte: what rewards look at, be it by chance. The last one's share follows from the
 * others. */
static size_t effect_class(unsigned char c)
{
    if (c >= 0x80)
        return 0;
    if (c >= '0' && c <= '9')
        return 1;
    if (c <= ' ')
        return 2;
    if (c >= 'A' && c <= 'Z')
        return 3;
    if (c < 'a' || c > 'z')
        return 4;
    if (strchr("aeiou", c))
        return 5;
    return c < 'n' ? 6 : 7;
}

void sample_traits(const char *text, size_t n, uint8_t ret[static SAMPLE_TRAITS])
{
    size_t of[CLASSES] = {0};
    for (size_t i = 0; i < n; i++)
        of[effect_class((unsigned char)text[i])]++;
    ret[0] = (uint8_t)fmin(255, OF_A_DOUBLING * log2(1 + (double)n));
    for (size_t i = 1; i < SAMPLE_TRAITS; i++)
        ret[i] = (uint8_t)(n ? of[i - 1] * 255 / n : 0);
}

/* ---- sums ---- */

/* About the means of the groups: of the scores, of the traits, and of both together. */
struct effect_sums {
    size_t n, groups; /* of groups with two scored answers and more */
    double within, between, mean;
    double xx[SAMPLE_TRAITS][SAMPLE_TRAITS], xy[SAMPLE_TRAITS];
};

static double effect_mean(const struct sample_place *v, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += v[i].score;
    return sum / (double)n;
}

static void effect_add_group(struct effect_sums *s, const struct sample_place *v, size_t n)
{
    double mean = effect_mean(v, n), at[SAMPLE_TRAITS] = {0}, x[SAMPLE_TRAITS];
    for (size_t i = 0; i < n; i++)
        for (size_t a = 0; a < SAMPLE_TRAITS; a++)
            at[a] += (double)v[i].traits[a] / (double)n;
    for (size_t i = 0; i < n; i++) {
        double y = v[i].score - mean;
        s->within += y * y;
        for (size_t a = 0; a < SAMPLE_TRAITS; a++)
            x[a] = (double)v[i].traits[a] - at[a];
        for (size_t a = 0; a < SAMPLE_TRAITS; a++) {
            s->xy[a] += x[a] * y;
            for (size_t b = 0; b <= a; b++)
                s->xx[a][b] += x[a] * x[b];
        }
    }
    /* The spread of the means about the mean of all, one group after the other (Welford). */
    double d = mean - s->mean, all = (double)(s->n + n);
    s->between += d * d * (double)s->n * (double)n / all;
    s->mean += d * (double)n / all;
    s->n += n;
    s->groups++;
}

/* ---- the two shares ---- */

static double effect_by_prompt(const struct effect_sums *s)
{
    double k = (double)s->groups - 1, left = (double)(s->n - s->groups), noise = s->within / left;
    return s->groups < 2 ? (double)NAN
                         : (s->between - k * noise) / (s->between + s->within + noise);
}

/* The part of `within` that the traits explain, by a Cholesky decomposition of xx; a trait that
 * follows from those before it is left out. *ret_rank: how many were used. */
static double effect_explained(struct effect_sums *s, size_t *ret_rank)
{
    double explained = 0;
    *ret_rank = 0;
    for (size_t a = 0; a < SAMPLE_TRAITS; a++) {
        double whole = s->xx[a][a], y = s->xy[a];
        for (size_t b = 0; b < a; b++) {
            double l = s->xx[a][b];
            for (size_t c = 0; c < b; c++)
                l -= s->xx[a][c] * s->xx[b][c];
            s->xx[a][b] = s->xx[b][b] > 0 ? l / s->xx[b][b] : 0;
            s->xx[a][a] -= s->xx[a][b] * s->xx[a][b];
            y -= s->xx[a][b] * s->xy[b];
        }
        bool is_new = s->xx[a][a] > 1e-6 * whole && whole > 0;
        s->xx[a][a] = is_new ? sqrt(s->xx[a][a]) : 0;
        s->xy[a] = is_new ? y / s->xx[a][a] : 0;
        explained += s->xy[a] * s->xy[a];
        *ret_rank += is_new ? 1 : 0;
    }
    return explained;
}

static double effect_by_answer(struct effect_sums *s)
{
    size_t rank, left = s->n - s->groups;
    double explained = effect_explained(s, &rank);
    if (left < rank + LEAST_LEFT)
        return (double)NAN;
    double rest = fmax(s->within - explained, 0) / (double)(left - rank);
    return 1 - rest / (s->within / (double)left);
}

void sample_effect(const struct sample_place *v, size_t n, struct sample_effect *ret)
{
    struct effect_sums s = {0};
    *ret = (struct sample_effect){NAN, NAN};
    for (size_t i = 0, step, scored; i < n; i += step) {
        step = sample_order_group(v, i, n, &scored);
        if (scored >= 2)
            effect_add_group(&s, v + i, scored);
    }
    if (s.n < s.groups + LEAST_LEFT || s.within <= SAME * (1 + s.mean * s.mean) * (double)s.n)
        return;
    ret->by_prompt = effect_by_prompt(&s);
    ret->by_answer = effect_by_answer(&s);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* sample_order.c - see sample_order.h. Orders are total, so that a page goes on where the one
 * before it ended: what compares equal stands as it was dumped. */
#include "core/sample/sample_order.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

const char *const sample_order_names[] = {
#define X(e, word) word,
    SAMPLE_ORDER_TABLE(X)
#undef X
        NULL};
_Static_assert(array_len(sample_order_names) == SAMPLE_ORDERS + 1, "each order has its word");

/* ---- comparing ---- */

static int sample_by_offset(const void *a, const void *b)
{
    const struct sample_place *x = a, *y = b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* NaN last. */
static int sample_by_number(double x, double y)
{
    if (isnan(x) || isnan(y))
        return (int)isnan(x) - (int)isnan(y);
    return x < y ? -1 : x > y;
}

static int sample_by_worst(const void *a, const void *b)
{
    const struct sample_place *x = a, *y = b;
    int r = sample_by_number(x->score, y->score);
    return r ? r : sample_by_offset(a, b);
}

static int sample_by_best(const void *a, const void *b)
{
    const struct sample_place *x = a, *y = b;
    int r = sample_by_number(-x->score, -y->score);
    return r ? r : sample_by_offset(a, b);
}

static int sample_by_change(const void *a, const void *b)
{
    const struct sample_place *x = a, *y = b;
    int r = sample_by_number(-fabs(x->change), -fabs(y->change));
    return r ? r : sample_by_offset(a, b);
}

static int sample_by_prompt(const void *a, const void *b)
{
    const struct sample_place *x = a, *y = b;
    return x->prompt < y->prompt ? -1 : x->prompt > y->prompt;
}

/* By group, and by score within it. */
static int sample_by_group(const void *a, const void *b)
{
    const struct sample_place *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return sample_by_number(x->score, y->score);
}

/* ---- sums ---- */

void sample_order_by_group(struct sample_place *v, size_t n)
{
    xsort(v, n, sizeof(*v), sample_by_group);
}

size_t sample_order_group(const struct sample_place *v, size_t i, size_t n, size_t *ret_scored)
{
    size_t end = i, scored = 0;
    for (; end < n && v[end].group == v[i].group; end++)
        scored += isnan(v[end].score) ? 0 : 1;
    *ret_scored = scored;
    return end - i;
}

void sample_order_sum(const struct sample_place *v, size_t n, struct sample_sum *ret)
{
    struct sample_sum sum = {.mean = NAN, .least = NAN, .most = NAN};
    struct sample_place *copy = xcalloc(n + 1, sizeof(*copy));
    double total = 0;
    if (n)
        memcpy(copy, v, n * sizeof(*copy));
    sample_order_by_group(copy, n);
    for (size_t i = 0, step, scored; i < n; i += step) {
        step = sample_order_group(copy, i, n, &scored);
        if (!scored)
            continue;
        double low = copy[i].score, high = copy[i + scored - 1].score;
        sum.least = sum.scored ? fmin(sum.least, low) : low;
        sum.most = sum.scored ? fmax(sum.most, high) : high;
        sum.scored += scored;
        sum.groups += scored > 1;
        sum.flat += scored > 1 && high <= low;
        for (size_t k = i; k < i + scored; k++)
            total += copy[k].score;
    }
    if (sum.scored)
        sum.mean = total / (double)sum.scored;
    free(copy);
    *ret = sum;
}

void sample_order_by_prompt(struct sample_place *v, size_t n)
{
    xsort(v, n, sizeof(*v), sample_by_prompt);
}

size_t sample_order_prompt(const struct sample_place *v, size_t n, uint64_t prompt)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (v[mid].prompt < prompt)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* The mean score of the prompt in v, which is sorted by prompt; NaN: it has none. */
static double sample_prompt_mean(const struct sample_place *v, size_t n, uint64_t prompt)
{
    size_t scored = 0;
    double total = 0;
    for (size_t i = sample_order_prompt(v, n, prompt); i < n && v[i].prompt == prompt; i++)
        if (!isnan(v[i].score)) {
            total += v[i].score;
            scored++;
        }
    return scored ? total / (double)scored : (double)NAN;
}

void sample_order_compare(struct sample_place *v,
                          size_t n,
                          struct sample_place *before,
                          size_t n_before)
{
    sample_order_by_prompt(v, n);
    sample_order_by_prompt(before, n_before);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && v[end].prompt == v[i].prompt;)
            end++;
        double change = sample_prompt_mean(v + i, end - i, v[i].prompt) -
                        sample_prompt_mean(before, n_before, v[i].prompt);
        for (size_t k = i; k < end; k++)
            v[k].change = change;
    }
}

size_t sample_order_sort(enum sample_order order, struct sample_place *v, size_t n)
{
    static int (*const by[])(const void *, const void *) = {
        [SAMPLE_AS_DUMPED] = sample_by_offset,
        [SAMPLE_WORST] = sample_by_worst,
        [SAMPLE_BEST] = sample_by_best,
        [SAMPLE_CHANGED] = sample_by_change,
    };
    size_t stays = 0;
    xsort(v, n, sizeof(*v), by[order]);
    if (order == SAMPLE_AS_DUMPED)
        return n;
    while (stays < n && !isnan(order == SAMPLE_CHANGED ? v[stays].change : v[stays].score))
        stays++;
    return stays;
}

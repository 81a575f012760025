/* SPDX-License-Identifier: Apache-2.0 */
/* replay_tally.c - the integrals and lists behind replay_tally.h.
 *
 * Invariant: `last` is the time up to which everything is integrated; what runs and waits since
 * then is in used, held, queue and sizes. */
#include "core/past/replay_tally.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct list {
    double *v;
    size_t n, cap;
};

struct tally {
    usec_t start, end, last, last_end;
    /* now */
    int capacity, used, held;
    size_t queue;
    unsigned *sizes; /* waiting jobs by what they would hold, up to capacity */
    int least;       /* no waiting job holds less; capacity + 1 = none waits */
    /* sums */
    double offered, used_sum, stuck_sum, loaded, loaded_used, slowdown_sum;
    double used_in[TALLY_BUCKETS], queue_in[TALLY_BUCKETS];
    struct list waits[TALLY_CLASSES], errors;
    size_t never, forecasts, covered, unforeseen, broken, preempted, set_backs;
    double wasted, away;
};

static const struct {
    const char *name;
    int most;
} CLASSES[TALLY_CLASSES] = {{"1", 1}, {"2-4", 4}, {"5-8", 8}, {"9-16", 16}, {">16", INT32_MAX}};

const char *tally_class_name(size_t i)
{
    return CLASSES[i].name;
}

size_t tally_class_of(int gpus)
{
    size_t i = 0;
    while (gpus > CLASSES[i].most)
        i++;
    return i;
}

static void list_add(struct list *l, double v)
{
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 64;
        l->v = xrealloc(l->v, l->cap, sizeof(*l->v));
    }
    l->v[l->n++] = v;
}

struct tally *tally_new(usec_t window_start, usec_t window_span)
{
    struct tally *t = xcalloc(1, sizeof(*t));
    t->start = t->last = t->last_end = window_start;
    t->end = window_start + (window_span ? window_span : 1);
    return t;
}

void tally_free(struct tally *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < TALLY_CLASSES; i++)
        free(t->waits[i].v);
    free(t->errors.v);
    free(t->sizes);
    free(t);
}

void tally_capacity(struct tally *t, int gpus)
{
    t->capacity = gpus;
    t->least = gpus + 1;
    t->sizes = xcalloc((size_t)gpus + 2, sizeof(*t->sizes));
    t->offered = (double)gpus * (double)(t->end - t->start) / 1e6;
}

/* ---- time ---- */

static void fill_buckets(struct tally *t, usec_t from, usec_t to)
{
    usec_t width = tally_bucket(t);
    while (from < to) {
        size_t i = (size_t)((from - t->start) / width);
        i = i < TALLY_BUCKETS ? i : TALLY_BUCKETS - 1;
        usec_t edge = i + 1 < TALLY_BUCKETS ? t->start + (i + 1) * width : t->end;
        usec_t until = edge < to ? edge : to;
        double part = (double)(until - from) / (double)width;
        t->used_in[i] += part * t->used;
        t->queue_in[i] += part * (double)t->queue;
        from = until;
    }
}

void tally_advance(struct tally *t, usec_t now)
{
    usec_t from = t->last > t->start ? t->last : t->start;
    usec_t to = now < t->end ? now : t->end;
    if (from < to) {
        double seconds = (double)(to - from) / 1e6;
        t->used_sum += seconds * t->used;
        if (t->queue) {
            t->loaded += seconds * t->capacity;
            t->loaded_used += seconds * t->used;
        }
        if (t->least <= t->capacity - t->held)
            t->stuck_sum += seconds * (t->capacity - t->held);
        if (t->used || t->queue)
            fill_buckets(t, from, to);
    }
    t->last = now > t->last ? now : t->last;
}

/* A gang larger than the pool waits, but no GPU is free for it. */
void tally_waiting(struct tally *t, int held, bool joins)
{
    t->queue += joins ? 1 : (size_t)-1;
    if (held > t->capacity)
        return;
    t->sizes[held] += joins ? 1U : -1U;
    if (joins && held < t->least)
        t->least = held;
    while (t->least <= t->capacity && !t->sizes[t->least])
        t->least++;
}

void tally_running(struct tally *t, int gpus, int held, bool starts)
{
    t->used += starts ? gpus : -gpus;
    t->held += starts ? held : -held;
    if (!starts)
        t->last_end = t->last;
}

/* ---- jobs ---- */

void tally_started(struct tally *t, int gpus, usec_t waited, usec_t ran)
{
    double wait = (double)waited / 1e6, run = (double)ran / 1e6;
    double slowdown = (wait + run) / (run > 10 ? run : 10);
    list_add(&t->waits[tally_class_of(gpus)], wait);
    t->slowdown_sum += slowdown > 1 ? slowdown : 1;
}

void tally_never(struct tally *t)
{
    t->never++;
}

void tally_forecast(struct tally *t, usec_t p50, usec_t p90, usec_t waited)
{
    t->forecasts++;
    t->covered += waited <= p90;
    list_add(&t->errors, (double)(waited > p50 ? waited - p50 : p50 - waited) / 1e6);
}

void tally_unforeseen(struct tally *t)
{
    t->unforeseen++;
}

void tally_broken(struct tally *t)
{
    t->broken++;
}

void tally_preempted(struct tally *t)
{
    t->preempted++;
}

void tally_wasted(struct tally *t, int gpus, usec_t span)
{
    if (t->last < t->start || t->last >= t->end)
        return;
    t->wasted += (double)gpus * (double)span / 1e6;
}

void tally_again(struct tally *t, int gpus, usec_t lost, usec_t away)
{
    double span = (double)away / 1e6;
    tally_wasted(t, gpus, lost);
    t->away = span > t->away ? span : t->away;
}

void tally_set_backs(struct tally *t, size_t n)
{
    t->set_backs = n > t->set_backs ? n : t->set_backs;
}

static void list_append(struct list *sum, const struct list *more)
{
    for (size_t i = 0; i < more->n; i++)
        list_add(sum, more->v[i]);
}

void tally_join(struct tally *sum, const struct tally *pool)
{
    assert(sum->start == pool->start && sum->end == pool->end);
    sum->capacity += pool->capacity;
    sum->last_end = pool->last_end > sum->last_end ? pool->last_end : sum->last_end;
    sum->offered += pool->offered;
    sum->used_sum += pool->used_sum;
    sum->stuck_sum += pool->stuck_sum;
    sum->loaded += pool->loaded;
    sum->loaded_used += pool->loaded_used;
    sum->slowdown_sum += pool->slowdown_sum;
    for (size_t i = 0; i < TALLY_BUCKETS; i++) {
        sum->used_in[i] += pool->used_in[i];
        sum->queue_in[i] += pool->queue_in[i];
    }
    for (size_t i = 0; i < TALLY_CLASSES; i++)
        list_append(&sum->waits[i], &pool->waits[i]);
    list_append(&sum->errors, &pool->errors);
    sum->never += pool->never;
    sum->forecasts += pool->forecasts;
    sum->covered += pool->covered;
    sum->unforeseen += pool->unforeseen;
    sum->broken += pool->broken;
    sum->preempted += pool->preempted;
    sum->wasted += pool->wasted;
    tally_set_backs(sum, pool->set_backs);
    sum->away = pool->away > sum->away ? pool->away : sum->away;
}

/* ---- the result ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double rank(const struct list *l, double q)
{
    size_t i = (size_t)ceil(q * (double)l->n);
    return l->n ? l->v[i ? i - 1 : 0] : 0;
}

static void waits_of(struct list *l, struct tally_waits *ret)
{
    double sum = 0;
    xsort(l->v, l->n, sizeof(*l->v), by_value);
    for (size_t i = 0; i < l->n; i++)
        sum += l->v[i];
    *ret = (struct tally_waits){.jobs = l->n,
                                .mean = l->n ? sum / (double)l->n : 0,
                                .p50 = rank(l, 0.5),
                                .p95 = rank(l, 0.95),
                                .max = rank(l, 1)};
}

void tally_report(struct tally *t, usec_t bound, struct tally_report *ret)
{
    struct list all = {0};
    *ret = (struct tally_report){.gpus = t->capacity,
                                 .never = t->never,
                                 .last_end = (double)(t->last_end - t->start) / 1e6,
                                 .forecasts = t->forecasts,
                                 .unforeseen = t->unforeseen,
                                 .broken = t->broken,
                                 .preempted = t->preempted,
                                 .set_backs = t->set_backs,
                                 .away = t->away};
    for (size_t i = 0; i < TALLY_CLASSES; i++) {
        waits_of(&t->waits[i], &ret->classes[i]);
        list_append(&all, &t->waits[i]);
    }
    waits_of(&all, &ret->wait);
    for (size_t i = all.n; i && all.v[i - 1] > (double)bound / 1e6; i--)
        ret->beyond++;
    ret->jobs = all.n + t->never;
    ret->utilisation = t->offered > 0 ? (t->used_sum - t->wasted) / t->offered : 0;
    ret->wasted = t->used_sum > 0 ? t->wasted / t->used_sum : 0;
    ret->fragmentation = t->offered > 0 ? t->stuck_sum / t->offered : 0;
    ret->under_load = t->loaded > 0 ? t->loaded_used / t->loaded : (double)NAN;
    ret->slowdown = all.n ? t->slowdown_sum / (double)all.n : 1;
    ret->covered = t->forecasts ? (double)t->covered / (double)t->forecasts : (double)NAN;
    xsort(t->errors.v, t->errors.n, sizeof(*t->errors.v), by_value);
    ret->error = rank(&t->errors, 0.5);
    free(all.v);
}

const double *tally_used(const struct tally *t)
{
    return t->used_in;
}

const double *tally_queue(const struct tally *t)
{
    return t->queue_in;
}

usec_t tally_bucket(const struct tally *t)
{
    usec_t width = (t->end - t->start) / TALLY_BUCKETS;
    return width ? width : 1;
}

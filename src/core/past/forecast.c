/* SPDX-License-Identifier: Apache-2.0 */
/* forecast.c - the run ahead, and the correction by experience; see forecast.h.
 *
 * The correction: for each order of magnitude of the wait that was seen ahead, the newest real
 * waits as multiples of it, kept sorted. P50 and P90 are quantiles of those. A thousand jobs that
 * were submitted together err together: they teach one thing, and of them few count. */
#include "core/past/forecast.h"

#include <stdlib.h>
#include <string.h>

enum { CLASSES = 6, SUPPOSED = 12, TOGETHER = 4 };
static const double SLACK = 60e6; /* added to both sides of a ratio: a second's wait is no error */
/* Before anything is known: waits up to so many times what was seen ahead, evenly. */
static const double MOST_SUPPOSED = 4;
static const double RATE = 0.01, LEAST_ASK = 0.75, MOST_ASK = 1.5;
static const double ASK50 = 0.5, ASK90 = 0.9;

struct ratios {
    float ring[FORECAST_SEEN], sorted[FORECAST_SEEN];
    int n, next;
};

/* Jobs that were told at about one time. */
struct batch {
    usec_t end; /* of the times of telling */
    unsigned n;
};

struct forecast_error {
    struct ratios of50[CLASSES], of90[CLASSES];
    struct batch batch[CLASSES]; /* the latest */
    double ask[CLASSES];         /* the quantile of of90 that is told as P90 */
};

static int place_in(const struct ratios *r, int n, float v)
{
    int low = 0, high = n;
    while (low < high) {
        int mid = (low + high) / 2;
        if (r->sorted[mid] < v)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void ratios_add(struct ratios *r, float v)
{
    int n = r->n;
    if (n == FORECAST_SEEN) {
        int old = place_in(r, n--, r->ring[r->next]);
        memmove(&r->sorted[old], &r->sorted[old + 1], (size_t)(n - old) * sizeof(v));
    }
    int at = place_in(r, n, v);
    memmove(&r->sorted[at + 1], &r->sorted[at], (size_t)(n - at) * sizeof(v));
    r->sorted[at] = v;
    r->ring[r->next] = v;
    r->next = (r->next + 1) % FORECAST_SEEN;
    r->n = n + 1;
}

struct forecast_error *forecast_error_new(void)
{
    struct forecast_error *e = xcalloc(1, sizeof(*e));
    for (int c = 0; c < CLASSES; c++) {
        e->ask[c] = ASK90;
        for (int i = 1; i <= SUPPOSED; i++) {
            ratios_add(&e->of50[c], 1);
            ratios_add(&e->of90[c], (float)(MOST_SUPPOSED * i / SUPPOSED));
        }
    }
    return e;
}

void forecast_error_free(struct forecast_error *e)
{
    free(e);
}

struct forecast_error *forecast_error_copy(const struct forecast_error *e)
{
    struct forecast_error *copy = forecast_error_new();
    *copy = *e;
    return copy;
}

/* Up to a minute, ten minutes, an hour, six hours, two days, more. */
static int forecast_class_of(usec_t raw50)
{
    static const usec_t ends[CLASSES - 1] = {USEC_MIN, 10 * USEC_MIN, USEC_HOUR, 6 * USEC_HOUR,
                                             2 * USEC_DAY};
    int c = 0;
    while (c < CLASSES - 1 && raw50 > ends[c])
        c++;
    return c;
}

/* True for all of the first few forecasts of one batch, then for every second, every fourth, … */
static bool forecast_counts(struct batch *b, usec_t told_at, usec_t raw50)
{
    unsigned every = 1;
    if (told_at >= b->end)
        *b = (struct batch){.end = told_at + raw50 / TOGETHER + (usec_t)SLACK};
    while (every * FORECAST_OF_ONE <= b->n)
        every *= 2;
    return b->n++ % every == 0;
}

void forecast_error_add(struct forecast_error *e,
                        const struct forecast_row *row,
                        usec_t told_at,
                        usec_t waited)
{
    int c = forecast_class_of(row->raw50);
    bool late = told_at + waited > row->p90;
    if (!row->p90 || !forecast_counts(&e->batch[c], told_at, row->raw50))
        return;
    ratios_add(&e->of50[c], (float)(((double)waited + SLACK) / ((double)row->raw50 + SLACK)));
    ratios_add(&e->of90[c], (float)(((double)waited + SLACK) / ((double)row->raw90 + SLACK)));
    double ask = e->ask[c] + (late ? 0.9 : -0.1) * RATE;
    e->ask[c] = ask < LEAST_ASK ? LEAST_ASK : ask > MOST_ASK ? MOST_ASK : ask;
}

bool forecast_error_late(struct forecast_error *e,
                         const struct forecast_row *row,
                         usec_t told_at,
                         usec_t now)
{
    if (!row->p90 || now <= row->p90)
        return false;
    forecast_error_add(e, row, told_at, (now - told_at) / 2 * 3); /* it has to wait on */
    return true;
}

static usec_t corrected(const struct ratios *r, usec_t raw, double q)
{
    int i = (int)(q * (r->n + 1));
    double v = ((double)raw + SLACK) * (double)r->sorted[i < r->n ? i : r->n - 1] - SLACK;
    v = q > 1 ? v * q : v;
    return v < 0 ? 0 : v > 1e18 ? (usec_t)1e18 : (usec_t)v;
}

/* ---- what is left of a span ---- */

/* The share of spans that have ended by x: straight between (0, 0), (p50, .5), (p90, .9) and
 * (end, 1). */
static double ended_by(double x, double p50, double p90, double end)
{
    if (x < p50)
        return 0.5 * x / p50;
    if (x < p90)
        return 0.5 + 0.4 * (x - p50) / (p90 - p50);
    return x < end ? 0.9 + 0.1 * (x - p90) / (end - p90) : 1;
}

static double span_at(double share, double p50, double p90, double end)
{
    if (share < 0.5)
        return p50 * share / 0.5;
    if (share < 0.9)
        return p50 + (p90 - p50) * (share - 0.5) / 0.4;
    return p90 + (end - p90) * (share - 0.9) / 0.1;
}

usec_t forecast_left(usec_t ran, usec_t p50, usec_t p90, usec_t limit, double q)
{
    double x = (double)ran, middle = (double)p50, high = (double)p90;
    if (!p50 && !limit)
        return UINT64_MAX;
    if (!p50) { /* as users guess: half of what they ask for, or nearly all of it */
        middle = (double)limit / 2;
        high = (double)limit * 0.9;
    }
    high = high > middle ? high : middle;
    double end = limit ? (double)limit : 3 * high;
    end = end > high ? end : high;
    if (x >=
        end) /* past all that was expected: as long again as it has run, or about to be ended */
        return limit ? USEC_SEC : (usec_t)(x * (q > 0.5 ? 1 : 0.3)) + USEC_SEC;
    double gone = ended_by(x, middle, high, end);
    double left = span_at(gone + q * (1 - gone), middle, high, end) - x;
    return left > 1e6 ? (usec_t)left : USEC_SEC;
}

/* ---- the run ahead ---- */

/* Spans add up along the line: their mean counts, which is a little above the median; and all of
 * them together are never as long as each may be. */
static const double MIDDLE = 0.57, LONG = 0.8;

struct coming { /* an end */
    usec_t at;
    char *id; /* a copy: what is run ahead moves its own */
};

/* A job that was asked for, found by its pointer. */
struct place {
    const void *job; /* NULL: free */
    size_t row;
};

struct ahead {
    struct sched *s; /* what is run */
    double q;
    usec_t now;
    struct coming *heap;
    size_t n, cap;
    const struct place *places; /* open addressing; a power of two */
    size_t mask;
    usec_t *starts; /* of each row; 0 = not yet */
    size_t left;    /* rows without a start */
    size_t steps;
};

static bool forecast_is_before(const struct coming *a, const struct coming *b)
{
    int order = a->at == b->at ? strcmp(a->id, b->id) : 0;
    return a->at != b->at ? a->at < b->at : order < 0;
}

static void forecast_heap_add(struct ahead *a, const struct sched_lease_view *v)
{
    usec_t ran = a->now > v->started_at ? a->now - v->started_at : 0;
    usec_t left = forecast_left(ran, v->expected_p50, v->expected_p90, v->limit, a->q);
    if (left == UINT64_MAX)
        return; /* nobody knows */
    struct coming c = {a->now + left, xstrdup(v->id)};
    if (a->n == a->cap) {
        a->cap = a->cap ? 2 * a->cap : 64;
        a->heap = xrealloc(a->heap, a->cap, sizeof(*a->heap));
    }
    size_t i = a->n++;
    for (; i && forecast_is_before(&c, &a->heap[(i - 1) / 2]); i = (i - 1) / 2)
        a->heap[i] = a->heap[(i - 1) / 2];
    a->heap[i] = c;
}

static struct coming forecast_heap_take(struct ahead *a)
{
    struct coming first = a->heap[0], last = a->heap[--a->n];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < a->n; i = child) {
        if (child + 1 < a->n && forecast_is_before(&a->heap[child + 1], &a->heap[child]))
            child++;
        if (!forecast_is_before(&a->heap[child], &last))
            break;
        a->heap[i] = a->heap[child];
    }
    a->heap[i] = last;
    return first;
}

static size_t forecast_place_of(const struct place *places, size_t mask, const void *job)
{
    size_t i = (size_t)((uintptr_t)job * 0x9e3779b97f4a7c15ULL >> 20) & mask;
    while (places[i].job && places[i].job != job)
        i = (i + 1) & mask;
    return i;
}

static struct place *forecast_places_new(const struct forecast_row *rows,
                                         size_t n,
                                         size_t *ret_mask)
{
    size_t cap = 64;
    while (cap < 2 * n)
        cap *= 2;
    struct place *v = xcalloc(cap, sizeof(*v));
    for (size_t i = 0; i < n; i++)
        v[forecast_place_of(v, cap - 1, rows[i].job)] = (struct place){rows[i].job, i};
    *ret_mask = cap - 1;
    return v;
}

/* All that starts at this instant. What a borrower is asked to leave stays with it. */
static void forecast_pass(struct ahead *a, bool with_ends)
{
    struct sched_decision d;
    struct sched_lease_view v;
    for (; a->left && sched_next(a->s, a->now, &d); a->steps++) {
        if (d.verb != SCHED_START)
            continue;
        const struct place *p = &a->places[forecast_place_of(a->places, a->mask, d.job)];
        if (p->job && !a->starts[p->row]) {
            a->starts[p->row] = a->now;
            a->left--;
        }
        if (with_ends && sched_lease_find(a->s, d.id, &v))
            forecast_heap_add(a, &v);
    }
}

/* From one end to the next, if every span is its q-quantile. a is where all runs begin: what can
 * start at once has been started. Takes the scheduler. */
static void forecast_run_ahead(struct ahead a, struct sched *taken, double q, usec_t *starts)
{
    struct sched_lease_view v;
    a.s = taken;
    a.q = q;
    a.starts = starts;
    for (size_t pos = 0; a.left && sched_lease_next(a.s, &pos, &v);)
        forecast_heap_add(&a, &v);
    while (a.left && a.n && a.steps < FORECAST_MAX_STEPS) {
        struct coming c = forecast_heap_take(&a);
        a.now = c.at;
        sched_lease_end(a.s, c.id, c.at);
        free(c.id);
        a.steps++;
        if (!a.n || a.heap[0].at > a.now)
            forecast_pass(&a, true);
    }
    for (size_t i = 0; i < a.n; i++)
        free(a.heap[i].id);
    free(a.heap);
    sched_free(a.s);
}

/* When each row's job starts, where spans are of the middle (starts) and where they are long
 * (starts + n); 0 = not seen to start. The first pass is the same for both, and what is not copied
 * need not be paid for: with nothing that will end there is one run. */
static void forecast_starts_of(struct sched *taken,
                               usec_t now,
                               const struct forecast_row *rows,
                               size_t n,
                               usec_t *starts)
{
    struct ahead a = {.s = taken, .now = now, .left = n, .starts = starts};
    struct place *places = forecast_places_new(rows, n, &a.mask);
    a.places = places;
    forecast_pass(&a, false);
    memcpy(starts + n, starts, n * sizeof(*starts));
    if (a.left && sched_lease_count(taken)) {
        forecast_run_ahead(a, sched_copy(taken), MIDDLE, starts);
        forecast_run_ahead(a, taken, LONG, starts + n);
    } else {
        sched_free(taken);
    }
    free(places);
}

/* From the starts that were seen to what is told. */
static void forecast_tell(struct forecast_row *r,
                          usec_t start50,
                          usec_t start90,
                          const struct forecast_error *e,
                          usec_t now)
{
    if (!start50 || !start90)
        return;
    r->raw50 = start50 - now;
    r->raw90 = start90 > start50 ? start90 - now : r->raw50;
    usec_t p50 = r->raw50, p90 = r->raw90;
    if (e) {
        int c = forecast_class_of(r->raw50);
        p50 = corrected(&e->of50[c], p50, ASK50);
        p90 = corrected(&e->of90[c], p90, e->ask[c]);
    }
    r->p50 = now + p50;
    r->p90 = now + (p90 > p50 ? p90 : p50);
}

size_t forecast_run(struct sched *taken_copy,
                    const struct forecast_error *e,
                    usec_t now,
                    size_t max,
                    struct forecast_row *ret)
{
    size_t n = 0;
    for (void *job; n < max && (job = sched_queue_at(taken_copy, n, now)); n++)
        ret[n] = (struct forecast_row){.job = job};
    usec_t *starts = xcalloc(2 * n + 1, sizeof(*starts));
    if (n)
        forecast_starts_of(taken_copy, now, ret, n, starts);
    else
        sched_free(taken_copy);
    for (size_t i = 0; i < n; i++)
        forecast_tell(&ret[i], starts[i], starts[n + i], e, now);
    free(starts);
    return n;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* due.c - see due.h.
 *
 * The lists are arrays in which whoever leaves leaves a gap, so that a walk by index stays good
 * whatever changes meanwhile. */
#include "argusd/jobs/due.h"

#include <stdlib.h>

#include "base/mem.h"

/* A stopwatch that has seen the machine start follows the wall clock, which may jump: so no span
 * is believed for longer. */
static const usec_t LOOK_AGAIN = USEC_MIN;

struct roster {
    struct live **v; /* NULL: a gap */
    size_t n, cap, gaps;
};

struct due {
    struct roster of[LIVE_ROSTERS];
    struct heap spans, looks, waits;
};

struct due *due_new(void)
{
    return xcalloc(1, sizeof(struct due));
}

void due_free(struct due *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < LIVE_ROSTERS; i++)
        free(d->of[i].v);
    heap_release(&d->spans);
    heap_release(&d->looks);
    heap_release(&d->waits);
    free(d);
}

/* ---- the lists ---- */

static void roster_put(struct due *d, struct live *l, enum live_roster which, bool is_in)
{
    struct roster *r = &d->of[which];
    uint32_t *place = &l->place[which];
    if (is_in == (*place > 0))
        return;
    if (!is_in) {
        r->v[*place - 1] = NULL;
        r->gaps++;
        *place = 0;
        return;
    }
    if (r->n == r->cap) {
        r->cap = r->cap ? r->cap * 2 : 64;
        r->v = xrealloc(r->v, r->cap, sizeof(struct live *));
    }
    r->v[r->n++] = l;
    *place = (uint32_t)r->n;
}

static struct live *roster_next(const struct roster *r, size_t *pos)
{
    struct live *l = NULL;
    while (!l && *pos < r->n)
        l = r->v[(*pos)++];
    return l;
}

void due_tidy(struct due *d)
{
    for (size_t i = 0; i < LIVE_ROSTERS; i++) {
        struct roster *r = &d->of[i];
        size_t n = 0;
        if (r->gaps <= r->n / 2)
            continue; /* so that it costs little, however often it is called */
        for (size_t k = 0; k < r->n; k++)
            if (r->v[k]) {
                r->v[n++] = r->v[k];
                r->v[n - 1]->place[i] = (uint32_t)n;
            }
        r->n = n;
        r->gaps = 0;
    }
}

struct live *due_next(const struct due *d, enum live_roster which, size_t *pos)
{
    return roster_next(&d->of[which], pos);
}

static bool is_awaited(const struct live *l)
{
    return !l->over && l->job->state == JOB_QUEUED && l->waiters;
}

/* Waiters go without a word: they are missed here. */
struct live *due_next_awaited(struct due *d, size_t *pos)
{
    struct live *l;
    while ((l = roster_next(&d->of[LIVE_AWAITED], pos)) && !is_awaited(l))
        roster_put(d, l, LIVE_AWAITED, false);
    return l;
}

/* ---- the heaps ---- */

/* When a span that has so much left is over: not before `at`. A time that is there already is for
 * the next look, not for the one under way. */
static usec_t sooner(usec_t at, usec_t span, usec_t passed, const struct moment *now)
{
    usec_t left = span > passed ? span - passed : 1;
    usec_t end = now->boot + (left < LOOK_AGAIN ? left : LOOK_AGAIN);
    return at && at < end ? at : end;
}

/* 0: never. */
static usec_t due_at(const struct live *l, const struct moment *now)
{
    const struct job *j = l->job;
    usec_t at = 0, passed = stopwatch_read(&j->watch, now);
    if (l->over || j->state != JOB_QUEUED || !j->watch.running)
        return 0;
    if (j->limits.queue_timeout)
        at = sooner(at, j->limits.queue_timeout, passed, now);
    if (l->pausing)
        at = sooner(at, j->restart.pause, passed, now);
    return at;
}

static void spans_follow(struct due *d, struct live *l, const struct moment *now)
{
    usec_t at = due_at(l, now);
    if (at)
        heap_set(&d->spans, &l->span_due, at);
    else
        heap_remove(&d->spans, &l->span_due);
}

struct live *due_take(struct due *d, const struct moment *now)
{
    struct heap_item *item = heap_due(&d->spans, now->boot);
    struct live *l = item ? container_of(item, struct live, span_due) : NULL;
    if (l)
        spans_follow(d, l, now); /* later than now, so that it is not taken again */
    return l;
}

static void waits_follow(struct due *d, struct live *l)
{
    const struct job *j = l->job;
    if (!l->over && j->state == JOB_QUEUED && !(j->flags & JOB_FLAG_HELD))
        heap_set(&d->waits, &l->wait, j->queued_at);
    else
        heap_remove(&d->waits, &l->wait);
}

usec_t due_oldest(const struct due *d)
{
    const struct heap_item *item = heap_due(&d->waits, UINT64_MAX);
    return item ? item->at : 0;
}

/* ---- what somebody else has to see ---- */

void due_seen(struct due *d, struct live *l)
{
    roster_put(d, l, LIVE_CHANGED, false);
}

void due_look_later(struct due *d, struct live *l, usec_t at)
{
    heap_set(&d->looks, &l->look, at);
}

void due_look(struct due *d, usec_t now)
{
    struct heap_item *item;
    while ((item = heap_due(&d->looks, now))) {
        heap_remove(&d->looks, item);
        roster_put(d, container_of(item, struct live, look), LIVE_CHANGED, true);
    }
}

/* ---- all of them ---- */

void due_follow(struct due *d, struct live *l, const struct moment *now)
{
    roster_put(d, l, LIVE_PLACED, !l->over && l->job->state != JOB_QUEUED);
    roster_put(d, l, LIVE_AWAITED, is_awaited(l));
    roster_put(d, l, LIVE_UNTRIED, !l->over && job_act(l->job) == JOB_ACT_TRY);
    roster_put(d, l, LIVE_CHANGED, !l->over);
    spans_follow(d, l, now);
    waits_follow(d, l);
}

void due_forget(struct due *d, struct live *l)
{
    for (size_t i = 0; i < LIVE_ROSTERS; i++)
        roster_put(d, l, (enum live_roster)i, false);
    heap_remove(&d->spans, &l->span_due);
    heap_remove(&d->looks, &l->look);
    heap_remove(&d->waits, &l->wait);
}

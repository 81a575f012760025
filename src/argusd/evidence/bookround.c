/* SPDX-License-Identifier: Apache-2.0 */
/* bookround.c - see bookround.h. A reader goes once its job is gone and no worker has it. */
#include "argusd/evidence/bookround.h"

#include <stdlib.h>

#include "argusd/ground/work.h"
#include "base/digest/hash.h"
#include "base/map.h"
#include "base/str.h"

enum { TICK_MS = 1000 };

struct bookround {
    struct bookround_parts p;
    uv_timer_t timer;
    struct map *by_id;
    struct bookreader *first;
    int busy;
    bool closing;
};

void *bookreader_arg(const struct bookreader *r)
{
    return r->round->p.arg;
}

static void bookreader_free(struct bookreader *r)
{
    r->round->p.release(r);
    free(r->id);
    free(r);
}

static struct bookreader *bookround_reader(struct bookround *b, const char *id)
{
    struct bookreader *r = map_find(b->by_id, id);
    if (r)
        return r;
    r = xcalloc(1, b->p.size);
    *r = (struct bookreader){.next = b->first, .round = b, .id = xstrdup(id)};
    b->first = r;
    (void)map_set(b->by_id, id, r); /* there was none */
    return r;
}

/* The one of those that are due that has waited longest; *ret: its job. NULL: there is none. */
static struct bookreader *bookround_next(struct bookround *b, usec_t now, const struct live **ret)
{
    struct bookreader *next = NULL;
    const struct live *l;
    for (size_t pos = 0; (l = jobs_next_placed(b->p.jobs, &pos));) {
        if (!job_is_in_ray(l->job) || !job_attempt(l->job) || !b->p.wants(l))
            continue;
        struct bookreader *r = bookround_reader(b, l->job->id);
        if (!r->busy && r->after <= now && (!next || r->after < next->after)) {
            next = r;
            *ret = l;
        }
    }
    return next;
}

static void bookround_run(void *arg)
{
    struct bookreader *r = arg;
    r->round->p.read(r);
}

static void bookround_begin(struct bookround *b);

static void bookround_done(void *arg)
{
    struct bookreader *r = arg;
    struct bookround *b = r->round;
    struct live *l = b->closing ? NULL : jobs_find_id(b->p.jobs, r->id);
    const struct attempt *a = l ? job_attempt(l->job) : NULL;
    b->busy--;
    r->busy = false;
    r->after = clock_mono() + b->p.every;
    b->p.done(r, a && a->k == r->k ? l : NULL);
    bookround_begin(b);
}

static void bookround_begin(struct bookround *b)
{
    struct bookreader *r;
    const struct live *l;
    while (!b->closing && b->busy < b->p.most && !cluster_root_hangs(b->p.cluster) &&
           (r = bookround_next(b, clock_mono(), &l))) {
        r->k = job_attempt(l->job)->k;
        if (b->p.begin)
            b->p.begin(r, l);
        r->busy = true;
        b->busy++;
        work_start(b->p.loop, bookround_run, bookround_done, r);
    }
}

static void bookround_forget(struct bookround *b)
{
    for (struct bookreader **p = &b->first; *p;) {
        struct bookreader *r = *p;
        if (r->busy || jobs_find_any(b->p.jobs, r->id)) {
            p = &r->next;
            continue;
        }
        *p = r->next;
        map_remove(b->by_id, r->id);
        bookreader_free(r);
    }
}

static void bookround_on_tick(uv_timer_t *t)
{
    struct bookround *b = container_of(t, struct bookround, timer);
    bookround_begin(b);
    bookround_forget(b);
}

/* ---- life ---- */

struct bookround *bookround_new(const struct bookround_parts *parts)
{
    unsigned char seed[16];
    struct bookround *b = xcalloc(1, sizeof(*b));
    random_bytes(seed, sizeof(seed));
    b->p = *parts;
    b->by_id = map_new(seed);
    (void)uv_timer_init(parts->loop, &b->timer); /* never fails */
    return b;
}

void bookround_start(struct bookround *b)
{
    (void)uv_timer_start(&b->timer, bookround_on_tick, TICK_MS, TICK_MS); /* cannot fail */
}

void bookround_close(struct bookround *b)
{
    if (!b || b->closing)
        return;
    b->closing = true;
    uv_close((uv_handle_t *)&b->timer, NULL);
}

void bookround_free(struct bookround *b)
{
    if (!b)
        return;
    for (struct bookreader *r = b->first, *next; r; r = next) {
        next = r->next;
        bookreader_free(r);
    }
    map_free(b->by_id);
    free(b);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* sched_look.c - what each node has for a job that waits, and which leases have to end before it
 * starts; see sched.h.
 *
 * A node is judged by itself, in the order in which nothing helps, somebody helps, time helps. The
 * leases are those on the hosts of the job's promise, or of the promise that it would get if it
 * stood first. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "core/sched/line/sched_queue.h"
#include "core/sched/place/sched_fit.h"
#include "core/sched/place/sched_hosts.h"
#include "core/sched/place/sched_ledger.h"
#include "core/sched/place/sched_promise.h"
#include "core/sched/sched_pass.h"

const char *sched_look_to_string(enum sched_look_code code)
{
#define X(name, word) [SCHED_LOOK_##name] = #word,
    static const char *const words[] = {SCHED_LOOK_TABLE(X)};
#undef X
    return words[code];
}

/* What a job that waits asks of each of its nodes. */
struct looking {
    struct sched *s;
    const struct waiting *w;
    const struct shape *shape;
    const struct share *share;
    const struct pool *pool;
    const struct promise *promise; /* its own; NULL: none */
};

static bool looking_begin(struct sched *s, const char *id, usec_t now, struct looking *ret)
{
    uint32_t job = waiting_find(s, id);
    if (!job)
        return false;
    pass_look(s, now);
    const struct waiting *w = waiting_at(s, job);
    const struct shape *shape = shape_at(s, w->shape);
    *ret = (struct looking){.s = s,
                            .w = w,
                            .shape = shape,
                            .share = shape->nnodes > 1 ? &shape->other : &shape->driver,
                            .pool = pool_at(s, shape->pool),
                            .promise = promise_of(s, job)};
    if (ret->promise && !ret->promise->hosts.n)
        ret->promise = NULL; /* under fifo a job waits for no hosts in particular */
    return true;
}

static usec_t known_end(const struct sched *s, usec_t at)
{
    return at > s->now && at < s->now + FAR / 2 ? at : 0;
}

static bool has_host(const struct numbers *hosts, uint32_t host)
{
    for (size_t i = 0; i < hosts->n; i++)
        if (hosts->v[i] == host)
            return true;
    return false;
}

/* What is short on a node whose leases leave too little. */
static enum sched_look_code short_on(const struct host *h, const struct share *share)
{
    struct share part = *share;
    part.memory = 0;
    if (host_holds(h, &part))
        return SCHED_LOOK_MEMORY;
    part.cpus = 0;
    return host_holds(h, &part) ? SCHED_LOOK_CPUS : SCHED_LOOK_GPUS;
}

static bool is_planned(const struct looking *k, uint32_t host)
{
    return k->promise && has_host(&k->promise->hosts, host);
}

static enum sched_look_code look_judge(const struct looking *k, uint32_t host)
{
    const struct host *h = host_at(k->s, host);
    if (!pool_suits(k->pool, h->labels, h->only, h->versions))
        return SCHED_LOOK_UNFIT; /* by its labels it is of the pool */
    if (!h->usable)
        return SCHED_LOOK_AWAY;
    if (!host_holds_empty(h, k->share, true))
        return SCHED_LOOK_SMALL;
    if (!host_holds_empty(h, k->share, false))
        return SCHED_LOOK_FOREIGN;
    if (!host_holds(h, k->share))
        return short_on(h, k->share);
    bool allowed = is_planned(k, host) || keep_allows(k->s, h, k->share, k->s->now + k->w->lasts);
    return allowed ? SCHED_LOOK_SERVES : SCHED_LOOK_KEPT;
}

static struct sched_look look_of_host(const struct looking *k, uint32_t host)
{
    const struct host *h = host_at(k->s, host);
    struct sched_look l = {.node = h->name,
                           .code = look_judge(k, host),
                           .free = h->free,
                           .needs = k->share->whole + (double)k->share->part / UNIT,
                           .planned = is_planned(k, host)};
    if (l.code == SCHED_LOOK_AWAY)
        l.state = h->why_not;
    if (l.code == SCHED_LOOK_GPUS || l.code == SCHED_LOOK_CPUS || l.code == SCHED_LOOK_MEMORY)
        l.until = known_end(k->s, host_holds_at(k->s, h, k->share));
    return l;
}

size_t sched_look_all(struct sched *s,
                      const char *id,
                      usec_t now,
                      size_t max,
                      struct sched_look *ret)
{
    static const char none[] = "";
    struct looking k;
    size_t n = 0;
    if (!looking_begin(s, id, now, &k))
        return 0;
    struct pool labels = *k.pool;
    labels.needs = (char *)(uintptr_t)none; /* only read */
    for (uint32_t i = 1; i < s->hosts.n && n < max; i++) {
        const struct host *h = row_is_used(&s->hosts, i) ? host_at(s, i) : NULL;
        bool never = h && !h->usable && !*h->why_not;
        if (h && h->listed && !never && pool_suits(&labels, h->labels, h->only, h->versions))
            ret[n++] = look_of_host(&k, i);
    }
    return n;
}

/* ---- what has to end ---- */

struct endings {
    const struct sched *s;
    struct sched_end *v;
    size_t n, max;
};

static void endings_add(struct endings *e, const struct lease *l, const struct part *p)
{
    size_t i = 0;
    while (i < e->n && !str_eq(e->v[i].id, l->f.id))
        i++;
    if (i == e->max)
        return;
    if (i == e->n)
        e->v[e->n++] = (struct sched_end){.id = l->f.id,
                                          .job = l->f.job,
                                          .at = known_end(e->s, lease_ends(l)),
                                          .leaves = l->leaving || l->gives_way};
    e->v[i].gpus += (double)p->gpus / UNIT;
}

static int endings_order(const void *a, const void *b)
{
    const struct sched_end *x = a, *y = b;
    usec_t s = x->at ? x->at : UINT64_MAX, t = y->at ? y->at : UINT64_MAX;
    return s != t ? (s < t ? -1 : 1) : strcmp(x->id, y->id);
}

/* The leases of the host until whose ends there is no room. */
static void endings_add_host(struct endings *e, const struct host *h, const struct share *share)
{
    if (host_holds(h, share))
        return;
    usec_t room = host_holds_at(e->s, h, share);
    for (uint32_t i = h->first_part; i; i = part_at(e->s, i)->host_next) {
        const struct part *p = part_at(e->s, i);
        const struct lease *l = lease_at(e->s, p->lease);
        if (lease_ends(l) <= room)
            endings_add(e, l, p);
    }
}

size_t sched_ends_before(struct sched *s,
                         const char *id,
                         usec_t now,
                         size_t max,
                         struct sched_end *ret,
                         usec_t *ret_at)
{
    struct numbers found = {0};
    struct looking k;
    *ret_at = 0;
    if (!looking_begin(s, id, now, &k))
        return 0;
    usec_t at = k.promise ? k.promise->at : promise_find(s, k.shape, &found);
    const struct numbers *hosts = k.promise ? &k.promise->hosts : &found;
    struct endings e = {.s = s, .v = ret, .max = max};
    for (size_t i = 0; i < hosts->n && at != NEVER; i++)
        endings_add_host(&e, host_at(s, hosts->v[i]), i ? &k.shape->other : &k.shape->driver);
    xsort(ret, e.n, sizeof(*ret), endings_order);
    if (k.promise)
        *ret_at = known_end(s, at);
    numbers_release(&found);
    return e.n;
}

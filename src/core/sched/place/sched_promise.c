/* SPDX-License-Identifier: Apache-2.0 */
/* sched_promise.c - when and where the first job in line will start; see sched_promise.h.
 *
 * When a host will hold a share is remembered by share, and found out anew only for hosts that
 * changed: a pass costs a walk over a table of times, not over all leases. */
#include "core/sched/place/sched_promise.h"

#include <stdlib.h>
#include <string.h>

#include "core/sched/place/sched_hosts.h"
#include "core/sched/place/sched_ledger.h"
#include "core/sched/share/sched_flow.h"
#include "core/sched/share/sched_policy.h"

/* ---- when a host holds a share ---- */

static bool sched_promise_share_same(const struct share *a, const struct share *b)
{
    return a->whole == b->whole && a->part == b->part && a->cpus == b->cpus &&
           a->memory == b->memory;
}

static struct foresight *foresight_of(struct sched *s, const struct share *share)
{
    struct foresight *oldest = &s->foresight[0];
    for (int i = 0; i < N_FORESIGHT; i++) {
        struct foresight *f = &s->foresight[i];
        if (f->cap && sched_promise_share_same(&f->share, share)) {
            f->used = ++s->tick;
            return f;
        }
        if (f->used < oldest->used)
            oldest = f;
    }
    oldest->share = *share;
    oldest->used = ++s->tick;
    if (oldest->cap)
        memset(oldest->stamp, 0, oldest->cap * sizeof(*oldest->stamp));
    return oldest;
}

static void foresight_grow(struct foresight *f, uint32_t n)
{
    if (f->cap >= n)
        return;
    f->at = xrealloc(f->at, n, sizeof(*f->at));
    f->stamp = xrealloc(f->stamp, n, sizeof(*f->stamp));
    memset(f->stamp + f->cap, 0, (n - f->cap) * sizeof(*f->stamp));
    f->cap = n;
}

void foresight_release(struct sched *s)
{
    for (int i = 0; i < N_FORESIGHT; i++) {
        free(s->foresight[i].at);
        free(s->foresight[i].stamp);
        s->foresight[i] = (struct foresight){0};
    }
}

static int cost(const struct share *share)
{
    return share->whole + (share->part > 0);
}

/* Is there room at `at` beside all that is kept up to `until`? */
static bool room_beside(const struct sched *s,
                        const struct host *h,
                        const struct share *share,
                        usec_t at,
                        usec_t until)
{
    struct room room;
    host_free_at(s, h, at, &room);
    for (uint32_t i = h->first_keep; i; i = keep_at(s, i)->next) {
        const struct keep *k = keep_at(s, i);
        if (k->at > until)
            continue;
        room.slots -= cost(&k->share);
        room.cpus -= k->share.cpus;
        room.memory -= k->share.memory;
    }
    return room.slots >= cost(share) && room.cpus >= share->cpus &&
           (!share->memory || room.memory >= share->memory);
}

/* Where something is kept already, it is kept for good. */
static usec_t holds_beside(const struct sched *s, const struct host *h, const struct share *share)
{
    usec_t best = NEVER;
    if (host_holds(h, share) && room_beside(s, h, share, s->now, NEVER))
        return 0;
    for (uint32_t i = h->first_part; i; i = part_at(s, i)->host_next) {
        usec_t at = lease_ends(lease_at(s, part_at(s, i)->lease));
        if (at < best && room_beside(s, h, share, at, NEVER))
            best = at;
    }
    return best;
}

static usec_t holds_at(struct sched *s, struct foresight *f, uint32_t host)
{
    const struct host *h = host_at(s, host);
    if (h->first_keep)
        return holds_beside(s, h, &f->share);
    if (f->stamp[host] != h->stamp) {
        f->at[host] = host_holds_at(s, h, &f->share);
        f->stamp[host] = h->stamp;
    }
    return f->at[host];
}

bool keep_allows(const struct sched *s,
                 const struct host *h,
                 const struct share *share,
                 usec_t ends)
{
    for (uint32_t i = h->first_keep; i; i = keep_at(s, i)->next) {
        usec_t at = keep_at(s, i)->at;
        if (at < ends && !room_beside(s, h, share, at, at))
            return false;
    }
    return true;
}

/* ---- the gang's hosts ---- */

struct seat {
    usec_t at;
    int free;
    uint32_t host;
};

static bool seat_before(const struct seat *a, const struct seat *b)
{
    if (a->at != b->at)
        return a->at < b->at;
    return a->free != b->free ? a->free < b->free : a->host < b->host;
}

/* A heap of the n best, the worst on top. */
struct seats {
    struct seat *v;
    size_t n, max;
};

static void seats_down(struct seats *q, size_t i)
{
    struct seat x = q->v[i];
    for (size_t k; (k = 2 * i + 1) < q->n; i = k) {
        if (k + 1 < q->n && seat_before(&q->v[k], &q->v[k + 1]))
            k++;
        if (!seat_before(&x, &q->v[k]))
            break;
        q->v[i] = q->v[k];
    }
    q->v[i] = x;
}

static void seats_offer(struct seats *q, const struct seat *x)
{
    if (q->n == q->max) {
        if (q->n && seat_before(x, &q->v[0])) {
            q->v[0] = *x;
            seats_down(q, 0);
        }
        return;
    }
    size_t i = q->n++;
    for (; i && seat_before(&q->v[(i - 1) / 2], x); i = (i - 1) / 2)
        q->v[i] = q->v[(i - 1) / 2];
    q->v[i] = *x;
}

struct offer {
    const struct share *share;
    uint32_t pool, without; /* a host; 0 = none */
    usec_t by;              /* the latest until then is the best; 0: the earliest is */
};

/* The time `at` seen backwards from `by`: how long before it; now is the earliest. */
static usec_t turned(const struct sched *s, usec_t by, usec_t at)
{
    at = at > s->now ? at : s->now;
    return at > by ? NEVER : by - at;
}

/* Offers every host of the pool but `without` its time for the share. */
static void offer_all(struct sched *s, const struct offer *o, struct seats *q)
{
    struct foresight *f = foresight_of(s, o->share);
    const struct numbers *kinds = &pool_at(s, o->pool)->kinds;
    foresight_grow(f, s->hosts.n);
    for (size_t i = 0; i < kinds->n; i++) {
        const struct kind *k = &s->kinds[kinds->v[i]];
        for (uint32_t n = 0; n < k->n; n++) {
            struct seat x = {.host = k->hosts[n]};
            if (x.host == o->without)
                continue;
            x.at = holds_at(s, f, x.host);
            if (o->by && x.at != NEVER)
                x.at = turned(s, o->by, x.at);
            x.free = host_at(s, x.host)->free;
            if (x.at != NEVER)
                seats_offer(q, &x);
        }
    }
}

/* The driver's host is the best to hold the driver's share; then the best to hold the others'.
 * The time of the worst of them, or with `by` how long before that. */
static usec_t find_hosts(struct sched *s,
                         const struct shape *shape,
                         usec_t by,
                         struct numbers *ret_hosts)
{
    struct seat driver;
    struct seats first = {.v = &driver, .max = 1};
    struct offer o = {.share = &shape->driver, .pool = shape->pool, .by = by};
    offer_all(s, &o, &first);
    if (!first.n)
        return NEVER;
    struct seats rest = {.max = (size_t)shape->nnodes - 1};
    usec_t at = driver.at;
    if (rest.max) {
        rest.v = xcalloc(rest.max, sizeof(*rest.v));
        o = (struct offer){&shape->other, shape->pool, driver.host, by};
        offer_all(s, &o, &rest);
    }
    if (rest.n < rest.max)
        at = NEVER;
    else if (rest.n && rest.v[0].at > at)
        at = rest.v[0].at;
    ret_hosts->n = 0;
    numbers_add(ret_hosts, driver.host);
    for (size_t i = 0; i < rest.n; i++)
        numbers_add(ret_hosts, rest.v[i].host);
    free(rest.v);
    return at;
}

usec_t promise_find(struct sched *s, const struct shape *shape, struct numbers *ret_hosts)
{
    usec_t at = find_hosts(s, shape, 0, ret_hosts);
    return at > s->now ? at : s->now;
}

/* ---- promises of a pass ---- */

static void keep_on(struct sched *s, uint32_t host, const struct share *share, usec_t at)
{
    uint32_t i = rows_take(&s->keeps);
    struct keep *k = keep_at(s, i);
    k->share = *share;
    k->at = at;
    k->next = host_at(s, host)->first_keep;
    host_at(s, host)->first_keep = i;
}

/* Remembers what it was told first. */
static void sched_promise_tell(struct sched *s, struct waiting *w, usec_t at)
{
    if (w->promised_in + 1 < s->walk.count) /* another job was the first meanwhile */
        w->promised = 0;
    w->promised_in = s->walk.count;
    if (!w->promised && at < s->now + FAR / 2)
        w->promised = policy_told(s, w, at);
}

/* It blocks the jobs behind it. */
static bool is_firm(const struct sched *s, const struct promise *p)
{
    return !p->rests && p->at > s->now;
}

static void promise_add(struct sched *s, const struct promise *p)
{
    const struct shape *shape = shape_at(s, waiting_at(s, p->job)->shape);
    struct walk *walk = &s->walk;
    for (size_t i = 0; p->at != NEVER && i < p->hosts.n; i++)
        keep_on(s, p->hosts.v[i], i ? &shape->other : &shape->driver, p->at);
    walk->promises = xrealloc(walk->promises, walk->n_promises + 1, sizeof(*walk->promises));
    walk->promises[walk->n_promises++] = *p;
    walk->n_yields += p->yields;
    walk->n_firm += is_firm(s, p);
}

void promise_make(struct sched *s, uint32_t job)
{
    struct waiting *w = waiting_at(s, job);
    const struct shape *shape = shape_at(s, w->shape);
    struct promise p = {.job = job, .pool = shape->pool, .at = NEVER};
    if (s->limits.policy != SCHED_POLICY_FIFO)
        p.at = promise_find(s, shape, &p.hosts);
    w->blocked = w->blocked || p.at > s->now;
    p.rests = policy_slices(s) && flow_count_givers(s, &p);
    if (!s->walk.n_yields) /* otherwise it is not the first: it is told once no job yields */
        sched_promise_tell(s, w, p.at);
    promise_add(s, &p);
    pool_wait(s, p.pool);
}

/* A yielding job keeps hosts of its own, as late as may be: so that the next in line sees the
 * free room as if the yielding job had started. */
bool promise_yield(struct sched *s, uint32_t job)
{
    struct waiting *w = waiting_at(s, job);
    const struct shape *shape = shape_at(s, w->shape);
    struct promise p = {.job = job, .pool = shape->pool, .yields = true};
    p.at = policy_due(s, w);
    bool may = p.at > s->now && (w->due || promise_find(s, shape, &p.hosts) == s->now) &&
               find_hosts(s, shape, p.at, &p.hosts) != NEVER;
    if (!may) {
        numbers_release(&p.hosts);
        return false;
    }
    w->due = p.at;
    promise_add(s, &p);
    return true;
}

/* The last one's keeps are the first on their hosts. */
void promise_drop_last(struct sched *s)
{
    struct promise *p = &s->walk.promises[--s->walk.n_promises];
    s->walk.n_firm -= is_firm(s, p);
    for (size_t i = 0; p->at != NEVER && i < p->hosts.n; i++) {
        struct host *h = host_at(s, p->hosts.v[i]);
        h->first_keep = keep_at(s, h->first_keep)->next;
    }
    numbers_release(&p->hosts);
}

void promises_clear(struct sched *s)
{
    struct walk *walk = &s->walk;
    for (size_t i = 0; i < walk->n_promises; i++) {
        struct numbers *hosts = &walk->promises[i].hosts;
        for (size_t k = 0; k < hosts->n; k++)
            if (row_is_used(&s->hosts, hosts->v[k]))
                host_at(s, hosts->v[k])->first_keep = 0;
        numbers_release(hosts);
    }
    walk->n_promises = walk->n_firm = 0;
    walk->taken.n = 0;
    s->keeps.n = 1; /* none is of anything else */
    s->keeps.freed = 0;
}

void pool_wait(struct sched *s, uint32_t pool)
{
    struct numbers *l = &s->walk.taken;
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i] == pool)
            return;
    numbers_add(l, pool);
}

bool pool_has_waiting(const struct sched *s, uint32_t pool)
{
    const struct numbers *l = &s->walk.taken;
    for (size_t i = 0; i < l->n; i++)
        if (pools_meet(s, l->v[i], pool))
            return true;
    return false;
}

/* The promise of a job that this pool competes with, directly or through others that wait
 * between. */
const struct promise *promise_ahead(const struct sched *s, uint32_t pool)
{
    for (size_t i = 0; i < s->walk.n_promises; i++)
        if (pools_meet(s, s->walk.promises[i].pool, pool))
            return &s->walk.promises[i];
    return s->walk.n_promises && pool_has_waiting(s, pool) ? &s->walk.promises[0] : NULL;
}

const struct promise *promise_of(const struct sched *s, uint32_t job)
{
    for (size_t i = 0; i < s->walk.n_promises; i++)
        if (s->walk.promises[i].job == job)
            return &s->walk.promises[i];
    return NULL;
}

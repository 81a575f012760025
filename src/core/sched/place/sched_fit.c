/* SPDX-License-Identifier: Apache-2.0 */
/* sched_fit.c - best fit for gangs; see sched_fit.h.
 *
 * Hosts are taken from the fewest free slots upwards, so that whole nodes stay free for large
 * gangs. The driver's host is chosen first: its share is the largest, and a host that holds it
 * holds any other share, so that this never hides a solution. A gang of several nodes stays in one
 * network if any holds it, in the one that it fills best. */
#include "core/sched/place/sched_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/str.h"
#include "core/sched/place/sched_hosts.h"
#include "core/sched/place/sched_ledger.h"
#include "core/sched/place/sched_promise.h"

/* ---- shapes ---- */

static void shape_fill(struct shape *shape, const struct demand *d)
{
    shares_of(d, &shape->driver, &shape->other);
    shape->nnodes = d->nnodes > 1 ? d->nnodes : 1;
    shape->demand = *d;
    int64_t more = shape->nnodes - 1;
    shape->gpus = (int64_t)shape->driver.whole * UNIT + shape->driver.part +
                  more * ((int64_t)shape->other.whole * UNIT + shape->other.part);
    shape->cpus = shape->driver.cpus + more * shape->other.cpus;
    shape->memory = llround(demand_memory(d) * UNIT);
}

void shape_init(struct sched *s,
                struct shape *ret,
                const char *pool,
                const char *needs,
                const struct demand *d)
{
    *ret = (struct shape){.pool = pool_take(s, str_or(pool, ""), str_or(needs, ""))};
    shape_fill(ret, d);
}

void shape_release(struct sched *s, struct shape *shape)
{
    pool_give(s, shape->pool);
}

static bool sched_fit_share_same(const struct share *a, const struct share *b)
{
    return a->whole == b->whole && a->part == b->part && a->cpus == b->cpus &&
           a->memory == b->memory;
}

static bool shape_is(const struct sched *s, uint32_t i, const void *key)
{
    const struct shape *a = shape_at(s, i), *b = key;
    return a->pool == b->pool && a->nnodes == b->nnodes &&
           sched_fit_share_same(&a->driver, &b->driver) &&
           sched_fit_share_same(&a->other, &b->other) && a->memory == b->memory;
}

static uint64_t shape_hash(const struct sched *s, const struct shape *shape)
{
    const int64_t key[] = {shape->pool,        shape->nnodes,      shape->driver.whole,
                           shape->driver.part, shape->driver.cpus, shape->other.whole,
                           shape->other.part,  shape->other.cpus,  shape->memory};
    return hash_keyed(s->seed, key, sizeof(key));
}

uint32_t shape_take(struct sched *s, const char *pool, const char *needs, const struct demand *d)
{
    struct shape key;
    shape_init(s, &key, pool, needs, d);
    uint64_t hash = shape_hash(s, &key);
    uint32_t i = index_find(&s->shape_of, s, hash, shape_is, &key);
    if (i) {
        shape_release(s, &key);
    } else {
        i = rows_take(&s->shapes);
        key.row = ROW_USED;
        *shape_at(s, i) = key;
        index_add(&s->shape_of, hash, i);
    }
    shape_at(s, i)->refs++;
    return i;
}

void shape_give(struct sched *s, uint32_t shape)
{
    struct shape *sh = shape_at(s, shape);
    if (--sh->refs)
        return;
    index_remove(&s->shape_of, shape_hash(s, sh), shape);
    shape_release(s, sh);
    rows_give(&s->shapes, shape);
}

/* ---- empty ---- */

int shape_largest(const struct sched *s, const struct shape *shape, bool others_too)
{
    const struct numbers *kinds = &pool_at(s, shape->pool)->kinds;
    int n = 0;
    bool driver = false;
    for (size_t i = 0; i < kinds->n; i++) {
        const struct kind *k = &s->kinds[kinds->v[i]];
        for (uint32_t h = 0; h < k->n; h++) {
            const struct host *host = host_at(s, k->hosts[h]);
            n += host_holds_empty(host, &shape->other, others_too);
            driver = driver || host_holds_empty(host, &shape->driver, others_too);
        }
    }
    return driver ? n : 0;
}

static void find_out(const struct sched *s, struct shape *shape)
{
    if (shape->fits_stamp == s->nodes_stamp)
        return;
    shape->fits = shape_largest(s, shape, false) >= shape->nnodes;
    shape->fits_ever = shape->fits || shape_largest(s, shape, true) >= shape->nnodes;
    shape->fits_stamp = s->nodes_stamp;
}

bool shape_fits(const struct sched *s, struct shape *shape)
{
    find_out(s, shape);
    return shape->fits;
}

bool shape_fits_ever(const struct sched *s, struct shape *shape)
{
    find_out(s, shape);
    return shape->fits_ever;
}

/* ---- now ---- */

struct search {
    const struct sched *s;
    const struct fit *f;
    const char *network; /* NULL = any */
    const struct share *share;
    int class;       /* of the hosts looked at */
    uint32_t driver; /* already taken */
    size_t wanted;
    struct numbers *found;
};

/* The lower the better: not one to avoid, then one whose shared slot has room, then one that would
 * stand idle. */
static int sched_fit_class_of(const struct search *q, const struct host *h)
{
    bool avoid = h->slow || (q->f->avoid && str_list_has(q->f->avoid, h->name));
    bool alone = q->share->part && !host_shares(h, q->share->part);
    return 4 * avoid + 2 * alone + (q->f->fill_kept && !h->first_keep);
}

static bool take_host(void *arg, uint32_t host)
{
    struct search *q = arg;
    const struct host *h = host_at(q->s, host);
    if (host == q->driver || !host_holds(h, q->share) || sched_fit_class_of(q, h) != q->class)
        return false;
    if (h->first_keep && q->f->ends && !keep_allows(q->s, h, q->share, q->f->ends))
        return false;
    numbers_add(q->found, host);
    return q->found->n >= q->wanted;
}

/* No host is of a class for which this is false. */
static bool class_may_be(const struct search *q, const struct share *share)
{
    return (share->part || !(q->class & 2)) && (q->f->fill_kept || !(q->class & 1));
}

/* Until found->n is `wanted`; false: there are not so many. */
static bool take_hosts(struct search *q, const struct share *share, size_t wanted)
{
    int classes = q->f->avoid || q->s->has_slow ? 8 : share->part ? 4 : q->f->fill_kept ? 2 : 1;
    q->share = share;
    q->wanted = wanted;
    if (q->found->n >= wanted)
        return true;
    for (q->class = 0; q->class < classes; q->class ++)
        if (class_may_be(q, share) &&
            hosts_each(q->s, q->f->shape->pool, q->network, share->whole, take_host, q))
            return true;
    return false;
}

static bool take_gang(struct search *q)
{
    const struct shape *shape = q->f->shape;
    size_t n = (size_t)shape->nnodes;
    q->found->n = 0;
    q->driver = 0;
    if (sched_fit_share_same(&shape->driver, &shape->other))
        return take_hosts(q, &shape->driver, n);
    if (!take_hosts(q, &shape->driver, 1))
        return false;
    q->driver = q->found->v[0];
    return take_hosts(q, &shape->other, n);
}

/* Hosts of the kind with so many free slots: more than those that hold the share. */
static size_t sched_fit_count_free(const struct kind *k, int least)
{
    size_t n = 0;
    for (int f = least; f <= MAX_SLOTS; f++)
        n += k->count[f];
    return n;
}

static bool may_hold(const struct sched *s, const struct shape *shape)
{
    const struct numbers *kinds = &pool_at(s, shape->pool)->kinds;
    size_t n = 0;
    for (size_t i = 0; i < kinds->n && n < (size_t)shape->nnodes; i++)
        if (shape->other.whole <= MAX_SLOTS)
            n += sched_fit_count_free(&s->kinds[kinds->v[i]], shape->other.whole);
    return n >= (size_t)shape->nnodes;
}

/* A network, and how many of its hosts may hold a share. */
struct island {
    const char *network;
    size_t n;
};

static int order_islands(const void *a, const void *b)
{
    const struct island *x = a, *y = b;
    return x->n != y->n ? (x->n > y->n) - (x->n < y->n) : strcmp(x->network, y->network);
}

static int order_names(const void *a, const void *b)
{
    const struct island *x = a, *y = b;
    return strcmp(x->network, y->network);
}

/* Networks that may hold the gang, the tightest first. Returns how many. */
static size_t list_islands(const struct sched *s, const struct shape *shape, struct island *v)
{
    const struct numbers *kinds = &pool_at(s, shape->pool)->kinds;
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < kinds->n; i++) {
        const struct kind *k = &s->kinds[kinds->v[i]];
        if (*k->network)
            v[n++] = (struct island){k->network, sched_fit_count_free(k, shape->other.whole)};
    }
    xsort(v, n, sizeof(*v), order_names);
    for (size_t i = 0; i < n; i++) {
        if (kept && !strcmp(v[kept - 1].network, v[i].network))
            v[kept - 1].n += v[i].n;
        else
            v[kept++] = v[i];
    }
    n = 0;
    for (size_t i = 0; i < kept; i++)
        if (v[i].n >= (size_t)shape->nnodes)
            v[n++] = v[i];
    xsort(v, n, sizeof(*v), order_islands);
    return n;
}

static bool take_island(struct search *q)
{
    const struct numbers *kinds = &pool_at(q->s, q->f->shape->pool)->kinds;
    struct island *v = xcalloc(kinds->n, sizeof(*v));
    size_t n = list_islands(q->s, q->f->shape, v);
    bool found = false;
    for (size_t i = 0; i < n && !found; i++) {
        q->network = v[i].network;
        found = take_gang(q);
    }
    q->network = NULL;
    free(v);
    return found;
}

static bool has_networks(const struct sched *s, uint32_t pool)
{
    const struct numbers *kinds = &pool_at(s, pool)->kinds;
    for (size_t i = 0; i < kinds->n; i++)
        if (*s->kinds[kinds->v[i]].network)
            return true;
    return false;
}

bool fit_find(const struct sched *s, const struct fit *f, struct numbers *ret)
{
    struct numbers own = {0};
    struct search q = {.s = s, .f = f, .found = ret ? ret : &own};
    bool found = may_hold(s, f->shape) &&
                 ((f->shape->nnodes > 1 && has_networks(s, f->shape->pool) && take_island(&q)) ||
                  take_gang(&q));
    numbers_release(&own);
    return found;
}

bool fit_exists_now(const struct sched *s, struct shape *shape)
{
    const struct pool *p = pool_at(s, shape->pool);
    if (shape->full_at && shape->full_at == p->grown)
        return false;
    if (fit_find(s, &(struct fit){.shape = shape}, NULL))
        return true;
    shape->full_at = p->grown;
    return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* sched_view.c - what the scheduler's state looks like from outside: pools, nodes, leases. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "core/sched/place/sched_fit.h"
#include "core/sched/place/sched_hosts.h"
#include "core/sched/place/sched_ledger.h"
#include "core/sched/place/sched_promise.h"
#include "core/sched/sched_pass.h"

/* ---- leases ---- */

bool sched_lease_gang(const struct sched *s, const char *id, struct gang *ret)
{
    uint32_t lease = lease_find(s, id);
    if (lease)
        ledger_gang(s, lease_at(s, lease), ret);
    return lease;
}

bool sched_lease_part(const struct sched *s, const char *id, size_t i, struct sched_part *ret)
{
    uint32_t lease = lease_find(s, id), at = lease ? lease_at(s, lease)->first_part : 0;
    while (at && i--)
        at = part_at(s, at)->next;
    if (!at)
        return false;
    const struct part *p = part_at(s, at);
    *ret = (struct sched_part){
        .node = host_at(s, p->host)->name,
        .gpus = p->slots | (p->shared >= 0 ? (uint64_t)1 << p->shared : 0),
        .amount = p->gpus,
    };
    return true;
}

size_t sched_lease_count(const struct sched *s)
{
    return s->n_leases;
}

static struct sched_lease_view lease_view(const struct lease *l)
{
    return (struct sched_lease_view){.id = l->f.id,
                                     .job = l->f.job,
                                     .gpus = (double)l->gpus / UNIT,
                                     .started_at = l->started_at,
                                     .limit = l->f.limit,
                                     .expected_p50 = l->f.p50,
                                     .expected_p90 = l->f.p90};
}

bool sched_lease_find(const struct sched *s, const char *id, struct sched_lease_view *ret)
{
    uint32_t lease = lease_find(s, id);
    if (lease)
        *ret = lease_view(lease_at(s, lease));
    return lease;
}

bool sched_lease_next(const struct sched *s, size_t *pos, struct sched_lease_view *ret)
{
    uint32_t i = (uint32_t)*pos + 1;
    while (i < s->leases.n && !row_is_used(&s->leases, i))
        i++;
    if (i >= s->leases.n)
        return false;
    *ret = lease_view(lease_at(s, i));
    *pos = i;
    return true;
}

bool sched_waiting_next(const struct sched *s, size_t *pos, struct sched_lease_view *ret)
{
    uint32_t i = (uint32_t)*pos + 1;
    while (i < s->waiting.n && !row_is_used(&s->waiting, i))
        i++;
    if (i >= s->waiting.n)
        return false;
    const struct waiting *w = waiting_at(s, i);
    *ret = (struct sched_lease_view){.id = w->f.id,
                                     .job = w->f.job,
                                     .gpus = (double)shape_at(s, w->shape)->gpus / UNIT,
                                     .limit = w->f.limit,
                                     .expected_p50 = w->f.p50,
                                     .expected_p90 = w->f.p90};
    *pos = i;
    return true;
}

/* ---- nodes ---- */

const char *sched_node_labels_next(const struct sched *s, size_t *pos)
{
    while (++*pos < s->hosts.n)
        if (row_is_used(&s->hosts, (uint32_t)*pos) && host_at(s, (uint32_t)*pos)->listed)
            return str_or(host_at(s, (uint32_t)*pos)->labels, "");
    return NULL;
}

void sched_node_used(const struct sched *s, const char *node, double *ret_gpus, double *ret_cpus)
{
    uint32_t host = host_find(s, node, strlen(node));
    *ret_gpus = host ? (double)host_at(s, host)->gpus_used / UNIT : 0;
    *ret_cpus = host ? (double)host_at(s, host)->cpus_used / UNIT : 0;
}

const char *sched_node_lease(const struct sched *s, const char *node, size_t i)
{
    uint32_t host = host_find(s, node, strlen(node));
    for (uint32_t p = host ? host_at(s, host)->first_part : 0; p; p = part_at(s, p)->host_next)
        if (!i--)
            return lease_at(s, part_at(s, p)->lease)->f.id;
    return NULL;
}

const char *sched_kept_next(const struct sched *s, size_t *pos, int64_t *ret_amount)
{
    while (++*pos < s->hosts.n) {
        const struct host *h = host_at(s, (uint32_t)*pos);
        if (!row_is_used(&s->hosts, (uint32_t)*pos) || !h->first_keep)
            continue;
        *ret_amount = 0;
        for (uint32_t i = h->first_keep; i; i = keep_at(s, i)->next)
            *ret_amount += (int64_t)keep_at(s, i)->share.whole * UNIT + keep_at(s, i)->share.part;
        return h->name;
    }
    return NULL;
}

/* ---- pools ---- */

/* A question's pool may be in no table; then the state takes it for the time of the question. */
static struct sched *open_state(const struct sched *s)
{
    return (struct sched *)(uintptr_t)s;
}

bool sched_fits_empty(const struct sched *s,
                      const char *pool,
                      const char *needs,
                      const struct demand *d)
{
    return sched_largest_gang(s, pool, needs, d) >= (d->nnodes > 1 ? d->nnodes : 1);
}

int sched_largest_gang(const struct sched *s,
                       const char *pool,
                       const char *needs,
                       const struct demand *d)
{
    struct shape shape;
    shape_init(open_state(s), &shape, pool, needs, d);
    int n = shape_largest(s, &shape, true);
    shape_release(open_state(s), &shape);
    return n;
}

static double all_gpus(const struct host *h)
{
    return fmin(h->gpus, MAX_SLOTS);
}

static void add_host(const struct host *h,
                     struct sched_pool *ret,
                     int with_free[static MAX_SLOTS + 1])
{
    double used = (double)h->gpus_used / UNIT;
    double rest = fmax(0, all_gpus(h) - used - h->gpus_held);
    if (!h->usable || *h->only) {
        if (*h->why_not || *h->only)
            *(str_eq(h->why_not, "draining") ? &ret->draining : &ret->bad) += rest;
        return;
    }
    ret->nodes++;
    ret->gpus += all_gpus(h);
    ret->used += used;
    ret->held += h->gpus_held;
    ret->free += rest;
    for (int n = 1; n <= h->free; n++)
        with_free[n]++;
}

/* When it is expected to end; 0 = not known. */
static usec_t sched_view_expected_end(const struct lease *l, usec_t now)
{
    usec_t expected = l->started_at + l->f.p50, ends = lease_ends(l);
    if (l->f.p50 && expected > now && expected < ends)
        return expected;
    return ends > now && ends < l->started_at + FAR ? ends : 0;
}

static usec_t next_free(const struct sched *s, const struct host *h, usec_t now, usec_t best)
{
    for (uint32_t p = h->first_part; p; p = part_at(s, p)->host_next) {
        usec_t end = sched_view_expected_end(lease_at(s, part_at(s, p)->lease), now);
        if (end && part_at(s, p)->gpus && (!best || end < best))
            best = end;
    }
    return best;
}

/* The next node of the pool that takes jobs, now or some day; NULL: the end. */
static const struct host *next_member(const struct sched *s, const char *pool, size_t *pos)
{
    while (++*pos < s->hosts.n) {
        uint32_t i = (uint32_t)*pos;
        const struct host *h = row_is_used(&s->hosts, i) ? host_at(s, i) : NULL;
        if (h && h->listed && (h->usable || *h->why_not) && str_list_has_all(h->labels, pool))
            return h;
    }
    return NULL;
}

void sched_count_fit(const struct sched *s,
                     const char *pool,
                     const char *needs,
                     struct sched_fit_count *ret)
{
    const struct host *h;
    struct needs_unmet lacks;
    *ret = (struct sched_fit_count){0};
    for (size_t pos = 0; (h = next_member(s, pool, &pos)); ret->nodes++)
        if (needs_find_unmet(needs, h->versions, NULL))
            ret->unfit++;
        else
            ret->unseen += needs_find_unseen(needs, h->versions, &lacks);
}

bool sched_gap_next(const struct sched *s,
                    const char *pool,
                    const char *needs,
                    size_t *pos,
                    struct sched_gap *ret)
{
    const struct host *h;
    while ((h = next_member(s, pool, pos)))
        if (needs_find_unmet(needs, h->versions, &ret->lacks) ||
            needs_find_unseen(needs, h->versions, &ret->lacks)) {
            ret->node = h->name;
            return true;
        }
    return false;
}

void sched_pool(const struct sched *s, const char *pool, usec_t now, struct sched_pool *ret)
{
    sched_pool_fit(s, pool, "", now, ret);
}

static bool is_counted(const struct host *h, const char *pool, const char *needs)
{
    return h->listed && str_list_has_all(h->labels, pool) &&
           (!*needs || !needs_find_unmet(needs, h->versions, NULL));
}

void sched_pool_fit(const struct sched *s,
                    const char *pool,
                    const char *needs,
                    usec_t now,
                    struct sched_pool *ret)
{
    int with_free[MAX_SLOTS + 1] = {0};
    *ret = (struct sched_pool){0};
    for (uint32_t i = 1; i < s->hosts.n; i++) {
        const struct host *h = row_is_used(&s->hosts, i) ? host_at(s, i) : NULL;
        if (!h || !is_counted(h, pool, needs))
            continue;
        add_host(h, ret, with_free);
        ret->next_free = h->usable ? next_free(s, h, now, ret->next_free) : ret->next_free;
    }
    int largest = 0;
    for (int n = 1; n <= MAX_SLOTS; n++)
        largest = n * with_free[n] > largest ? n * with_free[n] : largest;
    ret->largest_gang = largest;
    for (uint32_t i = 1; i < s->lanes.n; i++) {
        const struct lane *l = row_is_used(&s->lanes, i) ? lane_at(s, i) : NULL;
        const char *asked = l ? pool_at(s, l->pool)->text : NULL;
        if (l && (!*pool || !*asked || str_list_has_all(pool, asked)))
            ret->queued += (int)waiting_at(s, l->root)->in_lane.n;
    }
}

bool sched_promise(struct sched *s, const char *pool, usec_t now, void **ret_job, usec_t *ret_at)
{
    pass_look(s, now);
    uint32_t p = pool_take(s, pool, "");
    const struct promise *ahead = promise_ahead(s, p);
    pool_give(s, p);
    const struct waiting *w = ahead ? waiting_at(s, ahead->job) : NULL;
    if (!w || !w->promised)
        return false;
    *ret_job = w->f.job;
    *ret_at = w->promised;
    return true;
}

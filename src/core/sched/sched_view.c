/* SPDX-License-Identifier: Apache-2.0 */
/* sched_view.c - what the scheduler's state looks like from outside: pools, nodes, leases. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "core/sched/sched_fit.h"
#include "core/sched/sched_hosts.h"
#include "core/sched/sched_ledger.h"
#include "core/sched/sched_pass.h"
#include "core/sched/sched_promise.h"

/* ---- leases ---- */

bool sched_lease_gang(const struct sched *s, const char *id, struct gang *ret)
{
    uint32_t lease = lease_find(s, id);
    if (lease)
        ledger_gang(s, lease_at(s, lease), ret);
    return lease;
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

/* ---- pools ---- */

/* A question's pool may be in no table; then the state takes it for the time of the question. */
static struct sched *open_state(const struct sched *s)
{
    return (struct sched *)(uintptr_t)s;
}

bool sched_fits_empty(const struct sched *s, const char *pool, const struct demand *d)
{
    return sched_largest_gang(s, pool, d) >= (d->nnodes > 1 ? d->nnodes : 1);
}

int sched_largest_gang(const struct sched *s, const char *pool, const struct demand *d)
{
    struct shape shape;
    shape_init(open_state(s), &shape, str_or(pool, ""), d);
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
    if (!h->usable) {
        if (*h->why_not)
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

void sched_pool(const struct sched *s, const char *pool, usec_t now, struct sched_pool *ret)
{
    int with_free[MAX_SLOTS + 1] = {0};
    *ret = (struct sched_pool){0};
    for (uint32_t i = 1; i < s->hosts.n; i++) {
        const struct host *h = row_is_used(&s->hosts, i) ? host_at(s, i) : NULL;
        if (!h || !h->listed || !str_list_has_all(h->labels, pool))
            continue;
        add_host(h, ret, with_free);
        ret->next_free = h->usable ? next_free(s, h, now, ret->next_free) : ret->next_free;
    }
    for (int n = 1; n <= MAX_SLOTS; n++)
        ret->largest_gang = fmax(ret->largest_gang, n * with_free[n]);
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
    uint32_t p = pool_take(s, pool);
    const struct promise *ahead = promise_ahead(s, p);
    pool_give(s, p);
    const struct waiting *w = ahead ? waiting_at(s, ahead->job) : NULL;
    if (!w || !w->promised)
        return false;
    *ret_job = w->f.job;
    *ret_at = w->promised;
    return true;
}

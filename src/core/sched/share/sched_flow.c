/* SPDX-License-Identifier: Apache-2.0 */
/* sched_flow.c - levels of attained service, and the leases that give way; see sched_flow.h.
 *
 * A lease that gives way is leaving, as a borrower that is asked back: its slots count as coming
 * at its next checkpoint, so that the promise of the job that asked, `why` and forecasts follow.
 * At the checkpoint it is asked anew (flow_is_wanted): who wanted its slots may have found others.
 *
 * For one job all leases that might go are let go on paper; that gives a time and hosts. Then each
 * of those stays if the promise holds without it, the leases with the least attained service
 * first, so that those of the most go. */
#include "core/sched/share/sched_flow.h"

#include <stdlib.h>

#include "base/message.h"
#include "core/sched/place/sched_hosts.h"
#include "core/sched/place/sched_ledger.h"
#include "core/sched/place/sched_promise.h"
#include "core/sched/sched_pass.h"
#include "core/sched/share/sched_policy.h"
#include "core/sched/share/sched_quota.h"
#include "core/sched/share/sched_reclaim.h"
#include "core/sched/tell/sched_hint.h"

enum { LEVEL_STEP = 8, FLOW_LEVELS = 4, MAX_FIRM = 1 };
#define QUANTUM (80 * USEC_MIN)
#define BACK_WITHIN (7 * USEC_DAY)
#define FRESH (30 * USEC_SEC) /* a checkpoint that is no older was just completed */

bool sched_is_sliced(const struct sched *s)
{
    return policy_slices(s);
}

static bool is_free_of_cost(const struct sched *s)
{
    return s->limits.policy == SCHED_POLICY_SHORTEST;
}

static usec_t flow_quantum(const struct sched *s)
{
    return s->limits.flow.quantum ? s->limits.flow.quantum : QUANTUM;
}

usec_t flow_back_within(const struct sched *s)
{
    if (is_free_of_cost(s))
        return FAR;
    return s->limits.flow.back_within ? s->limits.flow.back_within : BACK_WITHIN;
}

/* ---- ranks ---- */

/* A job without GPUs counts as one GPU. */
static uint64_t gpu_time(usec_t span, int64_t gpus)
{
    double whole = gpus > UNIT ? (double)gpus / UNIT : 1;
    return (uint64_t)((double)span * whole);
}

static uint64_t rank_of_service(const struct sched *s,
                                const struct facts *f,
                                usec_t served,
                                int64_t gpus)
{
    if (is_free_of_cost(s)) { /* its limit is the truth */
        usec_t lasts = job_lasts(s, f->limit);
        return gpu_time(lasts > served ? lasts - served : 0, gpus);
    }
    uint64_t had = gpu_time(served > f->p50 ? served : f->p50, gpus), step = flow_quantum(s);
    uint64_t level = 0;
    for (; level + 1 < FLOW_LEVELS && had >= step; step *= LEVEL_STEP)
        level++;
    return level;
}

uint64_t flow_rank(const struct sched *s, const struct waiting *w)
{
    return policy_slices(s) ? rank_of_service(s, &w->f, w->f.served, shape_at(s, w->shape)->gpus)
                            : 0;
}

static usec_t served_of(const struct sched *s, const struct lease *l)
{
    return s->now > l->started_at ? s->now - l->started_at : 0;
}

static uint64_t rank_of_lease(const struct sched *s, const struct lease *l)
{
    return rank_of_service(s, &l->f, served_of(s, l), l->gpus);
}

static bool goes_before(const struct sched *s, const struct waiting *w, const struct lease *l)
{
    int level = account_ceiling(s, l->f.project, l->f.user, l->f.priority);
    return w->level != level ? w->level > level : w->a < rank_of_lease(s, l);
}

/* ---- who may give way, and when ---- */

/* What a guarantee covers gives way to jobs of the same account alone. */
static bool is_kept_by(const struct sched *s, uint32_t account, uint32_t own)
{
    return account != own && reclaim_is_covered(account_at(s, account));
}

static usec_t slice_end(const struct sched *s, const struct lease *l)
{
    return l->steady_from + (l->f.slice > flow_quantum(s) ? l->f.slice : flow_quantum(s));
}

/* Its first checkpoint after its slice; NEVER: none is known of. */
static usec_t flow_leaves_at(const struct sched *s, const struct lease *l)
{
    if (is_free_of_cost(s))
        return s->now;
    if (!l->saves_every)
        return NEVER;
    usec_t from = slice_end(s, l);
    from = from > s->now ? from : s->now;
    if (l->saved_at + FRESH >= from)
        return l->saved_at > from ? l->saved_at : from;
    usec_t periods = (from - l->saved_at + l->saves_every - 1) / l->saves_every;
    return l->saved_at + periods * l->saves_every;
}

static bool may_give_way(const struct sched *s, const struct lease *l, const struct waiting *w)
{
    return l->f.restartable && !l->leaving && l->gpus && goes_before(s, w, l) &&
           !is_kept_by(s, l->f.project, w->f.project) && !is_kept_by(s, l->f.user, w->f.user) &&
           reclaim_is_in_pool(s, l, shape_at(s, w->shape)->pool);
}

struct giver {
    uint32_t lease;
    usec_t at;
    uint64_t rank, order;
};

/* The ones to keep first. */
static int order_givers(const void *a, const void *b)
{
    const struct giver *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->at != y->at)
        return x->at > y->at ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

static size_t list_givers(const struct sched *s,
                          const struct waiting *w,
                          usec_t before,
                          struct giver *v)
{
    size_t n = 0;
    for (uint32_t i = 1; i < s->leases.n; i++) {
        const struct lease *l = row_is_used(&s->leases, i) ? lease_at(s, i) : NULL;
        if (!l || !may_give_way(s, l, w))
            continue;
        usec_t at = flow_leaves_at(s, l);
        if (at < before && at < l->ends)
            v[n++] = (struct giver){i, at, rank_of_lease(s, l), l->order};
    }
    xsort(v, n, sizeof(*v), order_givers);
    return n;
}

/* ---- asking ---- */

static void flow_leave(struct sched *s, const struct giver *g)
{
    struct lease *l = lease_at(s, g->lease);
    lease_leave(s, l, g->at);
    l->gives_way = true;
}

static bool is_among(const struct sched *s, const struct lease *l, const struct numbers *hosts)
{
    for (uint32_t p = l->first_part; p; p = part_at(s, p)->next)
        for (size_t i = 0; i < hosts->n; i++)
            if (hosts->v[i] == part_at(s, p)->host)
                return true;
    return false;
}

static bool flow_fits_by(struct sched *s, const struct shape *shape, usec_t at)
{
    struct numbers hosts = {0};
    usec_t found = promise_find(s, shape, &hosts);
    numbers_release(&hosts);
    return found <= at;
}

static void flow_tell(struct sched *s, const struct giver *g, const struct waiting *w)
{
    char at[CLOCK_TEXT_MAX];
    s->tellings = xrealloc(s->tellings, s->n_tellings + 1, sizeof(*s->tellings));
    struct telling *t = &s->tellings[s->n_tellings++];
    *t = (struct telling){.lease = g->lease, .order = g->order, .at_save = g->at};
    struct message m;
    message_begin(&m);
    jout_str(&m.j, "job", w->f.id);
    jout_str(&m.j, "at", minute_to_string(g->at, at));
    message_end(&m, t->text, sizeof(t->text));
}

/* Chooses from n leases that would all go those that the promise needs. */
static void flow_choose(struct sched *s,
                        const struct waiting *w,
                        const struct giver *v,
                        size_t n,
                        usec_t at,
                        const struct numbers *hosts)
{
    const struct shape *shape = shape_at(s, w->shape);
    for (size_t i = 0; i < n; i++)
        if (!is_among(s, lease_at(s, v[i].lease), hosts))
            lease_stay(s, lease_at(s, v[i].lease));
    for (size_t i = 0; i < n; i++) {
        struct lease *l = lease_at(s, v[i].lease);
        if (!l->gives_way)
            continue;
        lease_stay(s, l);
        if (flow_fits_by(s, shape, at))
            continue;
        flow_leave(s, &v[i]);
        flow_tell(s, &v[i], w);
    }
}

/* The job starts so much earlier, or no lease gives way for it. */
static usec_t least_gain(const struct sched *s)
{
    return is_free_of_cost(s) ? 1 : flow_quantum(s) / 2;
}

void flow_ask(struct sched *s)
{
    struct walk *walk = &s->walk;
    const struct promise *p = walk->n_promises ? &walk->promises[walk->n_promises - 1] : NULL;
    if (!policy_slices(s) || !p || p->rests || p->at <= s->now + least_gain(s))
        return;
    uint32_t job = p->job;
    usec_t before = p->at - (p->at == NEVER ? 0 : least_gain(s));
    const struct waiting *w = waiting_at(s, job);
    struct giver *v = xcalloc(s->n_leases + 1, sizeof(*v));
    struct numbers hosts = {0};
    size_t n = list_givers(s, w, before, v);
    if (n) {
        promise_drop_last(s);
        for (size_t i = 0; i < n; i++)
            flow_leave(s, &v[i]);
        usec_t at = promise_find(s, shape_at(s, w->shape), &hosts);
        if (at < before)
            flow_choose(s, w, v, n, at, &hosts);
        for (size_t i = 0; i < n && at >= before; i++)
            lease_stay(s, lease_at(s, v[i].lease));
        if (at < before)
            waiting_at(s, job)->promised = 0; /* it is told the better one */
        promise_make(s, job);
    }
    numbers_release(&hosts);
    free(v);
}

/* Leases are counted by their first part on one of the hosts. */
static bool is_first_of(const struct sched *s,
                        const struct lease *l,
                        uint32_t part,
                        const struct numbers *hosts)
{
    for (uint32_t p = l->first_part; p; p = part_at(s, p)->next)
        for (size_t i = 0; i < hosts->n; i++)
            if (hosts->v[i] == part_at(s, p)->host)
                return p == part;
    return false;
}

int flow_count_givers(const struct sched *s, const struct promise *p)
{
    int n = 0;
    for (size_t i = 0; p->at != NEVER && i < p->hosts.n; i++)
        for (uint32_t k = host_at(s, p->hosts.v[i])->first_part; k; k = part_at(s, k)->host_next) {
            const struct lease *l = lease_at(s, part_at(s, k)->lease);
            n += l->gives_way && is_first_of(s, l, k, &p->hosts);
        }
    return n;
}

bool flow_goes_on(const struct sched *s)
{
    return policy_slices(s) && s->walk.n_firm < MAX_FIRM;
}

/* ---- at the checkpoint ---- */

/* The job, and when it would start. */
struct flow_start {
    uint32_t job;
    usec_t at;
};

static size_t flow_look(struct sched *s, usec_t now, const struct lease *l, struct flow_start *v)
{
    size_t n = 0;
    changed(s);
    pass_look(s, now);
    for (size_t i = 0; i < s->walk.n_promises; i++) {
        const struct promise *p = &s->walk.promises[i];
        if (goes_before(s, waiting_at(s, p->job), l))
            v[n++] = (struct flow_start){p->job, p->at};
    }
    return n;
}

/* A job that goes before the lease starts later if it stays. */
bool flow_is_wanted(struct sched *s, uint32_t lease, usec_t now)
{
    struct lease *l = lease_at(s, lease);
    struct flow_start *stay = xcalloc(s->n_waiting + 1, sizeof(*stay));
    struct flow_start *go = xcalloc(s->n_waiting + 1, sizeof(*go));
    lease_stay(s, l);
    size_t n_stay = flow_look(s, now, l, stay);
    lease_leave(s, l, s->now);
    l->gives_way = true;
    size_t n_go = flow_look(s, now, l, go);
    bool wanted = false;
    for (size_t i = 0; i < n_go && !wanted; i++) {
        size_t k = 0;
        while (k < n_stay && stay[k].job != go[i].job)
            k++;
        wanted = k == n_stay ? go[i].at < NEVER : go[i].at < stay[k].at;
    }
    if (!wanted)
        lease_stay(s, l);
    changed(s);
    free(stay);
    free(go);
    return wanted;
}

bool sched_slice_is_over(const struct sched *s, const char *id, usec_t now)
{
    uint32_t lease = lease_find(s, id);
    return lease && now >= slice_end(s, lease_at(s, lease));
}

void sched_lease_saves(struct sched *s, const char *id, usec_t saved_at, usec_t every)
{
    uint32_t lease = lease_find(s, id);
    if (!lease)
        return;
    struct lease *l = lease_at(s, lease);
    l->saved_at = saved_at;
    l->saves_every = every;
    if (!every && l->gives_way)
        lease_stay(s, l);
    if (l->gives_way) {
        lease_leave(s, l, flow_leaves_at(s, l));
        l->gives_way = true;
    }
    if (policy_slices(s))
        changed(s);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* sched_reclaim.c - chooses the leases that make room for a guarantee; see sched_reclaim.h.
 *
 * A lease may be asked to go if it is restartable and no guarantee covers it: each of its
 * accounts that has a guarantee holds more than that, not counting leases that leave already.
 * Last started first, until the claim fits when they are gone; then leases that turn out not to
 * help are left alone. If the claim does not fit even then, no lease is asked. */
#include "core/sched/share/sched_reclaim.h"

#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/text.h"
#include "core/sched/place/sched_hosts.h"
#include "core/sched/place/sched_ledger.h"
#include "core/sched/place/sched_promise.h"
#include "core/sched/sched_pass.h"
#include "core/sched/share/sched_flow.h"
#include "core/sched/share/sched_quota.h"

bool reclaim_is_covered(const struct account *a)
{
    int64_t guaranteed = account_guaranteed(a);
    return guaranteed && a->gpus - a->gpus_leaving <= guaranteed;
}

static bool sched_reclaim_may_go(const struct sched *s, const struct lease *l)
{
    return l->f.restartable && !l->leaving && l->gpus &&
           !reclaim_is_covered(account_at(s, l->f.project)) &&
           !reclaim_is_covered(account_at(s, l->f.user));
}

bool reclaim_is_in_pool(const struct sched *s, const struct lease *l, uint32_t pool)
{
    const struct numbers *kinds = &pool_at(s, pool)->kinds;
    for (uint32_t p = l->first_part; p; p = part_at(s, p)->next) {
        uint32_t kind = host_at(s, part_at(s, p)->host)->kind;
        for (size_t i = 0; kind && i < kinds->n; i++)
            if (kinds->v[i] == kind)
                return true;
    }
    return false;
}

struct borrower {
    uint32_t lease;
    uint64_t order;
};

static int last_first(const void *a, const void *b)
{
    const struct borrower *x = a, *y = b;
    return (x->order < y->order) - (x->order > y->order);
}

/* Restartable leases on the pool, the last started first. */
static size_t list_borrowers(const struct sched *s, uint32_t pool, struct borrower *v)
{
    size_t n = 0;
    for (uint32_t i = 1; i < s->leases.n; i++) {
        const struct lease *l = row_is_used(&s->leases, i) ? lease_at(s, i) : NULL;
        if (l && l->f.restartable && !l->leaving && reclaim_is_in_pool(s, l, pool))
            v[n++] = (struct borrower){i, l->order};
    }
    xsort(v, n, sizeof(*v), last_first);
    return n;
}

/* Does the promise of this shape, without its own keeps, come true by then? */
static bool fits_by(struct sched *s, const struct shape *shape, usec_t at)
{
    struct numbers hosts = {0};
    usec_t found = promise_find(s, shape, &hosts);
    numbers_release(&hosts);
    return found <= at;
}

/* Chooses the leases that go: they are marked as leaving at `gone`. */
static void sched_reclaim_choose(struct sched *s,
                                 const struct shape *shape,
                                 usec_t gone,
                                 struct numbers *chosen)
{
    struct borrower *v = xcalloc(s->n_leases + 1, sizeof(*v));
    size_t n = list_borrowers(s, shape->pool, v);
    bool fits = fits_by(s, shape, gone);
    for (size_t i = 0; i < n && !fits; i++) {
        struct lease *l = lease_at(s, v[i].lease);
        if (!sched_reclaim_may_go(s, l))
            continue;
        lease_leave(s, l, gone);
        numbers_add(chosen, v[i].lease);
        fits = fits_by(s, shape, gone);
    }
    free(v);
    for (size_t i = chosen->n;
         i-- > 0;) { /* the longest running first: a lease that does not help stays */
        struct lease *l = lease_at(s, chosen->v[i]);
        lease_stay(s, l);
        if (fits && !fits_by(s, shape, gone))
            lease_leave(s, l, gone);
    }
}

static void sched_reclaim_tell(struct sched *s, uint32_t lease, const struct waiting *claim)
{
    bool project = claim->claims >> SCHED_PROJECT & 1;
    const struct account *a = account_at(s, project ? claim->f.project : claim->f.user);
    s->tellings = xrealloc(s->tellings, s->n_tellings + 1, sizeof(*s->tellings));
    struct telling *t = &s->tellings[s->n_tellings++];
    *t = (struct telling){.lease = lease, .order = lease_at(s, lease)->order};
    struct message m;
    message_begin(&m);
    jout_open(&m.j, "claim", '{');
    jout_str(&m.j, "code", "claim");
    jout_open(&m.j, "args", '{');
    jout_str(&m.j, project ? "claim_project" : "claim_user", a->name);
    jout_real(&m.j, "needs", (double)shape_at(s, claim->shape)->gpus / UNIT);
    jout_real(&m.j, "guaranteed", (double)account_guaranteed(a) / UNIT);
    jout_str(&m.j, "job", claim->f.id);
    jout_close(&m.j, '}');
    jout_close(&m.j, '}');
    message_end(&m, t->text, sizeof(t->text));
}

/* The keeps of the claims before it are in place, its own are not. */
static void reclaim_for(struct sched *s, uint32_t job)
{
    const struct waiting *w = waiting_at(s, job);
    struct numbers chosen = {0};
    sched_reclaim_choose(s, shape_at(s, w->shape), s->now + s->limits.reclaim_grace, &chosen);
    for (size_t i = 0; i < chosen.n; i++)
        if (lease_at(s, chosen.v[i])->leaving)
            sched_reclaim_tell(s, chosen.v[i], w);
    numbers_release(&chosen);
}

static bool sched_reclaim_is_late(const struct sched *s, const struct promise *p)
{
    return waiting_at(s, p->job)->claims && p->at > s->now + s->limits.reclaim_grace;
}

static bool any_late(const struct sched *s)
{
    for (size_t i = 0; i < s->walk.n_promises; i++)
        if (sched_reclaim_is_late(s, &s->walk.promises[i]))
            return true;
    return false;
}

bool reclaim_begin(struct sched *s)
{
    struct walk *w = &s->walk;
    size_t n = 0;
    uint32_t jobs[8]; /* the rest in the next pass */
    if (!any_late(s) || (w->vain_stamp == s->stamp && w->vain_now == s->now))
        return false;
    for (size_t i = 0; i < w->n_promises && n < array_len(jobs); i++)
        if (waiting_at(s, w->promises[i].job)->claims)
            jobs[n++] = w->promises[i].job;
    promises_clear(s);
    for (size_t i = 0; i < n; i++) {
        promise_make(s, jobs[i]);
        if (!sched_reclaim_is_late(s, &w->promises[i]))
            continue;
        promise_drop_last(s);
        reclaim_for(s, jobs[i]);
        promise_make(s, jobs[i]);
    }
    if (s->n_tellings)
        changed(s);
    w->vain_stamp = s->stamp;
    w->vain_now = s->now;
    return true;
}

static bool sched_reclaim_is_due(const struct sched *s, const struct telling *t)
{
    return row_is_used(&s->leases, t->lease) && lease_at(s, t->lease)->order == t->order &&
           lease_at(s, t->lease)->leaving;
}

bool reclaim_tell(struct sched *s, struct sched_decision *ret)
{
    while (s->n_tellings) {
        struct telling t = s->tellings[0];
        memmove(s->tellings, s->tellings + 1, --s->n_tellings * sizeof(t));
        if (!sched_reclaim_is_due(s, &t))
            continue;
        *ret = (struct sched_decision){.verb = SCHED_PREEMPT,
                                       .job = lease_at(s, t.lease)->f.job,
                                       .nodes = "",
                                       .driver_node = "",
                                       .at_save = t.at_save};
        text_copy(ret->text, t.text);
        return true;
    }
    return false;
}

/* ---- told by others, asked by others ---- */

void sched_lease_leaving(struct sched *s, const char *id, usec_t gone_by)
{
    uint32_t lease = lease_find(s, id);
    if (!lease)
        return;
    lease_leave(s, lease_at(s, lease), gone_by);
    changed(s);
}

bool sched_is_wanted_back(struct sched *s, const char *id, usec_t now)
{
    uint32_t lease = lease_find(s, id);
    if (!lease || !lease_at(s, lease)->leaving)
        return false;
    if (lease_at(s, lease)->gives_way)
        return flow_is_wanted(s, lease, now);
    usec_t leaves_at = lease_at(s, lease)->leaves_at;
    lease_stay(s, lease_at(s, lease));
    changed(s);
    pass_look(s, now);
    bool wanted = any_late(s);
    if (wanted)
        lease_leave(s, lease_at(s, lease), leaves_at);
    changed(s);
    return wanted;
}

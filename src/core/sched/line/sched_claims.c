/* SPDX-License-Identifier: Apache-2.0 */
/* sched_claims.c - the waiting jobs that a guarantee covers; see sched_claims.h.
 *
 * An account's claims are its waiting jobs in order of priority and submission, as long as what it
 * leases and they together stay within what it is guaranteed; one that is too large for the rest
 * is passed over. */
#include "core/sched/line/sched_claims.h"

#include <stdlib.h>

#include "core/sched/line/sched_line.h"
#include "core/sched/line/sched_queue.h"
#include "core/sched/share/sched_quota.h"

enum { LOOK_AT_MOST = 4096 }; /* jobs of one lane: no job so far down the line has its turn now */

struct claimant {
    uint32_t job;
    int priority;
    uint64_t seq;
};

struct claimants {
    struct claimant *v;
    size_t n, cap;
};

static void sched_claims_add(const struct sched *s, struct claimants *l, uint32_t job)
{
    const struct waiting *w = waiting_at(s, job);
    if (l->n >= l->cap) {
        l->cap = l->cap ? l->cap * 2 : 64;
        l->v = xrealloc(l->v, l->cap, sizeof(*l->v));
    }
    int priority = account_ceiling(s, w->f.project, w->f.user, w->f.priority);
    l->v[l->n++] = (struct claimant){job, priority, w->b};
}

static int order(const void *a, const void *b)
{
    const struct claimant *x = a, *y = b;
    if (x->priority != y->priority)
        return x->priority > y->priority ? -1 : 1;
    return x->seq != y->seq ? (x->seq < y->seq ? -1 : 1) : (x->job > y->job) - (x->job < y->job);
}

static bool sched_claims_is_of(const struct waiting *w, uint32_t account)
{
    return w->f.project == account || w->f.user == account;
}

static void sched_claims_gather(const struct sched *s, uint32_t account, struct claimants *l)
{
    for (uint32_t g = 1; g < s->groups.n; g++) {
        const struct group *group = row_is_used(&s->groups, g) ? group_at(s, g) : NULL;
        if (!group || (group->project && group->project != account &&
                       account_at(s, account)->kind == SCHED_PROJECT))
            continue;
        for (uint32_t a = group->first_lane; a; a = lane_at(s, a)->next) {
            int seen = 0;
            for (uint32_t i = lane_first(s, a); i && seen < LOOK_AT_MOST;
                 i = lane_next(s, i), seen++)
                if (sched_claims_is_of(waiting_at(s, i), account))
                    sched_claims_add(s, l, i);
        }
    }
}

static void sched_claims_renew(struct sched *s, uint32_t account)
{
    struct account *a = account_at(s, account);
    uint8_t bit = (uint8_t)(1 << a->kind);
    int64_t room = account_guaranteed(a) - a->gpus;
    struct claimants l = {0};
    a->claims_stale = false;
    if (room <= 0 && !a->claims)
        return;
    sched_claims_gather(s, account, &l);
    if (l.n)
        xsort(l.v, l.n, sizeof(*l.v), order);
    for (size_t i = 0; i < l.n; i++) {
        const struct waiting *w = waiting_at(s, l.v[i].job);
        int64_t gpus = shape_at(s, w->shape)->gpus;
        bool is_claim = gpus && gpus <= room;
        room -= is_claim ? gpus : 0;
        uint8_t claims = (uint8_t)(is_claim ? w->claims | bit : w->claims & ~bit);
        if (claims != w->claims)
            queue_set_claims(s, l.v[i].job, claims);
    }
    free(l.v);
}

void claims_advance(struct sched *s)
{
    for (size_t i = 0; i < s->guaranteed.n; i++)
        if (row_is_used(&s->accounts, s->guaranteed.v[i]) &&
            account_at(s, s->guaranteed.v[i])->claims_stale)
            sched_claims_renew(s, s->guaranteed.v[i]);
}

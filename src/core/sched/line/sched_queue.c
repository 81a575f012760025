/* SPDX-License-Identifier: Apache-2.0 */
/* sched_queue.c - which jobs come into line, at which level, and which leave; see sched_queue.h.
 * Jobs that do not starve yet stand in a heap by the time at which they were queued. */
#include "core/sched/line/sched_queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/str.h"
#include "core/sched/line/sched_claims.h"
#include "core/sched/line/sched_line.h"
#include "core/sched/place/sched_fit.h"
#include "core/sched/place/sched_ledger.h"
#include "core/sched/share/sched_flow.h"
#include "core/sched/share/sched_policy.h"
#include "core/sched/share/sched_quota.h"

/* ---- starving jobs, by time ---- */

static usec_t starve_after(const struct sched *s)
{
    if (policy_slices(s))
        return flow_back_within(s);
    return s->limits.starve_after ? s->limits.starve_after : STARVE_AFTER;
}

/* Under flow a gang of n nodes goes first after an n-th of the time: shorter jobs that come and go
 * would never leave it so many whole nodes at once. */
static usec_t ages_from(const struct sched *s, const struct waiting *w)
{
    usec_t n = policy_slices(s) ? (usec_t)shape_at(s, w->shape)->nnodes : 1;
    usec_t ahead = n > 1 ? starve_after(s) - starve_after(s) / n : 0;
    return w->f.queued_at > ahead ? w->f.queued_at - ahead : 0;
}

static void age_up(struct sched *s, size_t i)
{
    struct age a = s->ageing[i];
    for (; i && a.queued_at < s->ageing[(i - 1) / 2].queued_at; i = (i - 1) / 2)
        s->ageing[i] = s->ageing[(i - 1) / 2];
    s->ageing[i] = a;
}

static void age_down(struct sched *s, size_t i)
{
    struct age a = s->ageing[i];
    for (size_t k; (k = 2 * i + 1) < s->n_ageing; i = k) {
        if (k + 1 < s->n_ageing && s->ageing[k + 1].queued_at < s->ageing[k].queued_at)
            k++;
        if (a.queued_at <= s->ageing[k].queued_at)
            break;
        s->ageing[i] = s->ageing[k];
    }
    s->ageing[i] = a;
}

/* Left the line since, or is in another place of it? */
static bool age_is_old(const struct sched *s, const struct age *a)
{
    return !row_is_used(&s->waiting, a->job) || waiting_at(s, a->job)->stay != a->stay;
}

static void forget_old_ages(struct sched *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_ageing; i++)
        if (!age_is_old(s, &s->ageing[i]))
            s->ageing[n++] = s->ageing[i];
    s->n_ageing = n;
    for (size_t i = n / 2; i-- > 0;)
        age_down(s, i);
}

static void age_add(struct sched *s, uint32_t job)
{
    if (s->n_ageing > 2 * s->n_waiting + 64)
        forget_old_ages(s);
    if (s->n_ageing >= s->cap_ageing) {
        s->cap_ageing = s->cap_ageing ? s->cap_ageing * 2 : 64;
        s->ageing = xrealloc(s->ageing, s->cap_ageing, sizeof(*s->ageing));
    }
    const struct waiting *w = waiting_at(s, job);
    s->ageing[s->n_ageing] = (struct age){ages_from(s, w), job, w->stay};
    age_up(s, s->n_ageing++);
}

/* The next to starve, if it does by now; 0 = none. */
static uint32_t age_take(struct sched *s, usec_t now)
{
    while (s->n_ageing) {
        struct age a = s->ageing[0];
        bool old = age_is_old(s, &a);
        if (!old && (now < a.queued_at || now - a.queued_at < starve_after(s)))
            return 0;
        s->ageing[0] = s->ageing[--s->n_ageing];
        if (s->n_ageing)
            age_down(s, 0);
        if (!old)
            return a.job;
    }
    return 0;
}

/* ---- into line and out of it ---- */

static int sched_queue_level_of(const struct sched *s, const struct waiting *w)
{
    usec_t since = ages_from(s, w);
    if (w->claims)
        return LEVEL_CLAIM;
    if (s->now > since && s->now - since >= starve_after(s))
        return LEVEL_STARVED;
    return account_ceiling(s, w->f.project, w->f.user, w->f.priority);
}

void queue_join(struct sched *s, uint32_t job)
{
    struct waiting *w = waiting_at(s, job);
    w->level = sched_queue_level_of(s, w);
    w->a = w->level == LEVEL_CLAIM
               ? (uint64_t)(100 - account_ceiling(s, w->f.project, w->f.user, w->f.priority))
           : w->level == LEVEL_STARVED ? w->f.queued_at
                                       : flow_rank(s, w);
    w->b = (uint64_t)w->f.seq + ((uint64_t)1 << 63);
    w->stay = ++s->stays;
    bool own_group = s->limits.policy == SCHED_POLICY_FAIR && w->level < LEVEL_STARVED;
    line_join(s, job, own_group ? w->f.project : 0);
    if (w->level < LEVEL_STARVED)
        age_add(s, job);
}

void queue_leave(struct sched *s, uint32_t job)
{
    line_leave(s, job);
    waiting_at(s, job)->stay = 0;
}

static void rejoin(struct sched *s, uint32_t job)
{
    queue_leave(s, job);
    queue_join(s, job);
    changed(s);
}

void queue_reorder(struct sched *s, uint32_t account)
{
    for (uint32_t i = 1; i < s->waiting.n; i++) {
        const struct waiting *w = row_is_used(&s->waiting, i) ? waiting_at(s, i) : NULL;
        if (w && w->line && (w->f.project == account || w->f.user == account))
            rejoin(s, i);
    }
}

static void count_claims(struct sched *s, struct waiting *w, uint8_t claims)
{
    account_at(s, w->f.project)->claims +=
        (claims >> SCHED_PROJECT & 1) - (w->claims >> SCHED_PROJECT & 1);
    account_at(s, w->f.user)->claims += (claims >> SCHED_USER & 1) - (w->claims >> SCHED_USER & 1);
    w->claims = claims;
}

void queue_set_claims(struct sched *s, uint32_t job, uint8_t claims)
{
    count_claims(s, waiting_at(s, job), claims);
    rejoin(s, job);
}

void queue_advance(struct sched *s, usec_t now)
{
    s->now = now > s->now ? now : s->now;
    for (uint32_t job; (job = age_take(s, s->now));)
        rejoin(s, job);
    claims_advance(s);
}

/* ---- calls from outside ---- */

static bool waiting_is(const struct sched *s, uint32_t i, const void *key)
{
    return !strcmp(waiting_at(s, i)->f.id, key);
}

uint32_t waiting_find(const struct sched *s, const char *id)
{
    return index_find(&s->waiting_of, s, hash_keyed(s->seed, id, strlen(id)), waiting_is, id);
}

static void stale_claims(struct sched *s, const struct waiting *w)
{
    account_at(s, w->f.project)->claims_stale = true;
    account_at(s, w->f.user)->claims_stale = true;
}

void sched_enqueue(struct sched *s, const struct sched_job *job)
{
    sched_dequeue(s, job->id);
    struct facts f;
    facts_take(s, &f, job);
    uint32_t shape = shape_take(s, job->pool, job->needs, &job->demand);
    uint32_t i = rows_take(&s->waiting);
    struct waiting *w = waiting_at(s, i);
    w->f = f;
    w->shape = shape;
    w->held = job->held;
    w->lasts = job_lasts(s, job->limit);
    w->lasts -= f.served < w->lasts ? f.served : w->lasts - 1;
    w->avoid = job->avoid && *job->avoid ? xstrdup(job->avoid) : NULL;
    account_at(s, f.project)->queued++;
    account_at(s, f.user)->queued++;
    index_add(&s->waiting_of, hash_keyed(s->seed, f.id, strlen(f.id)), i);
    s->n_waiting++;
    stale_claims(s, w);
    if (!w->held)
        queue_join(s, i);
    changed(s);
}

void queue_drop(struct sched *s, uint32_t job)
{
    struct waiting *w = waiting_at(s, job);
    if (w->line)
        queue_leave(s, job);
    count_claims(s, w, 0);
    account_at(s, w->f.project)->queued--;
    account_at(s, w->f.user)->queued--;
    index_remove(&s->waiting_of, hash_keyed(s->seed, w->f.id, strlen(w->f.id)), job);
    facts_give(s, &w->f);
    shape_give(s, w->shape);
    free(w->avoid);
    rows_give(&s->waiting, job);
    s->n_waiting--;
}

void sched_dequeue(struct sched *s, const char *id)
{
    uint32_t i = waiting_find(s, id);
    if (!i)
        return;
    stale_claims(s, waiting_at(s, i));
    queue_drop(s, i);
    changed(s);
}

void sched_set_held(struct sched *s, const char *id, bool held)
{
    uint32_t i = waiting_find(s, id);
    if (!i || waiting_at(s, i)->held == held)
        return;
    struct waiting *w = waiting_at(s, i);
    if (w->claims)
        queue_set_claims(s, i, 0);
    w->held = held;
    stale_claims(s, w);
    if (held)
        queue_leave(s, i);
    else
        queue_join(s, i);
    changed(s);
}

void sched_set_priority(struct sched *s, const char *id, int priority)
{
    uint32_t i = waiting_find(s, id);
    if (!i || waiting_at(s, i)->f.priority == priority)
        return;
    waiting_at(s, i)->f.priority = priority;
    stale_claims(s, waiting_at(s, i));
    if (waiting_at(s, i)->line)
        rejoin(s, i);
    changed(s);
}

size_t sched_queue_length(const struct sched *s)
{
    return s->n_waiting;
}

void queue_release(struct sched *s)
{
    for (uint32_t i = 1; i < s->waiting.n; i++)
        if (row_is_used(&s->waiting, i))
            free(waiting_at(s, i)->avoid);
    free(s->ageing);
}

/* ---- invariants ---- */

const char *queue_check(const struct sched *s)
{
    size_t n = 0;
    for (uint32_t i = 1; i < s->waiting.n; i++) {
        const struct waiting *w = row_is_used(&s->waiting, i) ? waiting_at(s, i) : NULL;
        if (!w)
            continue;
        n++;
        if (waiting_find(s, w->f.id) != i)
            return "a waiting job is found by its id";
        if (lease_find(s, w->f.id))
            return "no job waits and runs";
        if ((w->line == 0) != w->held)
            return "exactly those that are held are in no line";
    }
    return n == s->n_waiting ? line_check(s) : "waiting jobs are counted";
}

/* SPDX-License-Identifier: Apache-2.0 */
/* sched_pass.c - the pass; see sched.h and sched_pass.h.
 *
 * In order: lanes are taken by the rank of their first job. A job that may not start (a quota,
 * larger than its pool) steps aside with all of its line, so that thousands of them cost as much
 * as one. The first job that does not fit gets a promise; jobs whose pool meets the promise's
 * pool wait behind it. Then the gaps: the jobs behind, in order, where they delay no promise. A
 * job that could start, but waited in line, may yield (sched_policy.h): jobs behind it, in
 * order, that end before it is due may pass, and then the walk begins anew without yielding.
 * Then the claims of guarantees: borrowers are told to go.
 *
 * The walk stays between two calls and continues where it was, until a change comes from outside
 * or time moves. Starting a job only takes room: a job that did not fit before does not fit
 * after, so that a job dropped from the walk stays dropped. Starts can only worsen ranks, too: a
 * candidate is looked at again when it is popped, and pushed back if others are better now. */
#include "core/sched/sched_pass.h"

#include <stdlib.h>

#include "core/sched/line/sched_line.h"
#include "core/sched/line/sched_order.h"
#include "core/sched/line/sched_queue.h"
#include "core/sched/place/sched_fit.h"
#include "core/sched/place/sched_hosts.h"
#include "core/sched/place/sched_ledger.h"
#include "core/sched/place/sched_promise.h"
#include "core/sched/share/sched_flow.h"
#include "core/sched/share/sched_policy.h"
#include "core/sched/share/sched_quota.h"
#include "core/sched/share/sched_reclaim.h"

enum { MAX_PROMISES = 64 }; /* more at once only claims can want; the rest waits for its turn */
enum { MAX_YIELDS = 16 };   /* beyond, one more changes little, and each is looked for */

bool pass_at_live_limit(const struct sched *s)
{
    return s->limits.live_jobs && s->n_leases >= (size_t)s->limits.live_jobs;
}

static bool is_barred(const struct sched *s, const struct waiting *w)
{
    const struct shape *shape = shape_at(s, w->shape);
    uint32_t account;
    return quota_blocks(s, w->f.project, w->f.user, shape, s->now, &account);
}

/* Pushes the job's lane (line 0), or its line alone, to be looked at when it is this job's turn. */
static void push_place(struct sched *s, uint32_t line, uint32_t job)
{
    if (job)
        candidate_push(&s->walk.heap, &(struct candidate){.row = line, .rank = order_rank(s, job)});
}

static bool steps_aside(const struct sched *s, uint32_t job)
{
    const struct waiting *w = waiting_at(s, job);
    return is_barred(s, w) || !shape_fits(s, shape_at(s, w->shape));
}

/* All of a line step aside together: the others of its lane go on behind this job of it. */
static void open_lane(struct sched *s, uint32_t job)
{
    const struct waiting *w = waiting_at(s, job);
    for (uint32_t l = lane_at(s, w->lane)->first_line; l; l = line_at(s, l)->lane_next)
        if (l != w->line)
            push_place(s, l, line_after(s, l, job));
}

/* asked: the second walk over the same candidates, in which no job yields. */
static void walk_begin(struct sched *s, bool asked)
{
    struct walk *w = &s->walk;
    promises_clear(s);
    w->heap.n = 0;
    w->asked = asked;
    w->n_yields = 0;
    w->stamp = s->stamp;
    w->now = s->now;
    w->phase = pass_at_live_limit(s) ? WALK_DONE : WALK_ORDER;
    w->count += w->phase == WALK_ORDER && !asked;
    for (uint32_t i = 1; i < s->lanes.n && w->phase == WALK_ORDER; i++)
        if (row_is_used(&s->lanes, i))
            push_place(s, 0, lane_first(s, i));
}

/* ---- starting ---- */

static void tell_start(struct sched *s, uint32_t lease, struct sched_decision *ret)
{
    const struct lease *l = lease_at(s, lease);
    struct texts *t = s->texts;
    ledger_names(s, l, &t->nodes);
    buf_reset(&t->driver);
    (void)buf_adds(&t->driver, host_at(s, part_at(s, l->first_part)->host)->name); /* it fits */
    ret->verb = SCHED_START;
    ret->job = l->f.job;
    ret->id = l->f.id;
    ret->nodes = buf_str(&t->nodes);
    ret->driver_node = buf_str(&t->driver);
    ret->text[0] = 0;
}

static void sched_pass_start(struct sched *s,
                             uint32_t job,
                             const struct numbers *hosts,
                             struct sched_decision *ret)
{
    struct waiting *w = waiting_at(s, job);
    struct facts f = w->f;
    bool claim = w->claims;
    account_at(s, f.project)->refs++;
    account_at(s, f.user)->refs++;
    uint32_t lease = lease_begin(s, &f, shape_at(s, w->shape), hosts, s->now);
    if (claim) { /* it was counted within the guarantee already */
        account_at(s, f.project)->claims_stale = false;
        account_at(s, f.user)->claims_stale = false;
    }
    queue_drop(s, job);
    tell_start(s, lease, ret);
    if (pass_at_live_limit(s))
        s->walk.phase = WALK_DONE;
}

static bool sched_pass_try_start(struct sched *s,
                                 uint32_t job,
                                 usec_t ends,
                                 struct sched_decision *ret)
{
    const struct waiting *w = waiting_at(s, job);
    struct shape *shape = shape_at(s, w->shape);
    struct numbers hosts = {0};
    struct fit fit = {.shape = shape,
                      .avoid = w->avoid,
                      .ends = ends,
                      .fill_kept = ends && s->limits.policy == SCHED_POLICY_FAIR};
    bool found = fit_exists_now(s, shape) && fit_find(s, &fit, &hosts);
    if (found)
        sched_pass_start(s, job, &hosts, ret);
    numbers_release(&hosts);
    return found;
}

/* ---- in order ---- */

/* The first job in order; false: another lane is better by now (it was pushed back). */
static bool pop_job(struct sched *s, struct candidate *ret)
{
    *ret = candidate_pop(&s->walk.heap);
    struct candidate now = *ret;
    now.rank = order_rank(s, ret->rank.job);
    if (!candidate_before(ret, &now))
        return true;
    candidate_push(&s->walk.heap, &now);
    return false;
}

/* True: the job lets others go first for now. A job that was never made to wait does not. */
static bool yield_start(struct sched *s, uint32_t job)
{
    const struct waiting *w = waiting_at(s, job);
    struct walk *walk = &s->walk;
    if (walk->asked || walk->n_yields == MAX_YIELDS || !(w->blocked || walk->n_yields))
        return false;
    return (w->due || fit_exists_now(s, shape_at(s, w->shape))) && promise_yield(s, job);
}

/* The time at which the job will have ended, for jobs with a promise behind it; 0: there is
 * none. */
static usec_t ends_of(const struct sched *s, const struct waiting *w, bool behind)
{
    return behind || s->walk.n_yields ? s->now + w->lasts : 0;
}

/* It gets a promise also behind others that have one. */
static bool has_own_promise(const struct sched *s, const struct waiting *w)
{
    return (w->level == LEVEL_CLAIM || flow_goes_on(s)) && s->walk.n_promises < MAX_PROMISES;
}

/* asks: it is a pass, and not a look at what one would do. */
static void promise_or_ask(struct sched *s, uint32_t job, bool asks)
{
    promise_make(s, job);
    if (asks)
        flow_ask(s);
}

/* True: a job was started. A job that yields leaves its place to the next of its lane, and a job
 * that steps aside to the next lines of the lane; all jobs behind a promise wait together. */
static bool walk_order(struct sched *s, struct sched_decision *ret)
{
    struct candidate c;
    if (!pop_job(s, &c))
        return false;
    uint32_t job = c.rank.job, line = c.row;
    const struct waiting *w = waiting_at(s, job);
    uint32_t next = line ? line_next(s, job) : lane_next(s, job);
    uint32_t pool = shape_at(s, w->shape)->pool;
    bool claim = has_own_promise(s, w);
    bool behind = pool_has_waiting(s, pool);
    if (steps_aside(s, job)) {
        if (!line)
            open_lane(s, job);
    } else if (ret && !behind && yield_start(s, job)) {
        push_place(s, line, next);
    } else if (behind && !claim) {
        pool_wait(s, pool);
    } else if (ret && policy_may_pass(s, w) &&
               sched_pass_try_start(s, job, ends_of(s, w, behind), ret)) {
        push_place(s, line, next);
        return true;
    } else {
        promise_or_ask(s, job, ret);
        push_place(s, line, claim ? next : 0);
    }
    return false;
}

/* ---- the gaps ---- */

/* Whether one of the shape that runs until `ends` may start. */
static bool may_run_until(const struct sched *s, const struct shape *shape, usec_t ends)
{
    return fit_find(s, &(struct fit){.shape = shape, .ends = ends}, NULL);
}

static usec_t find_window(struct sched *s, const struct shape *shape)
{
    usec_t below = NEVER;
    if (may_run_until(s, shape, NEVER))
        return NEVER;
    for (;;) { /* the next earlier promise */
        usec_t at = 0;
        for (size_t i = 0; i < s->walk.n_promises; i++) {
            const struct promise *p = &s->walk.promises[i];
            if (p->at < below && p->at > at && pools_meet(s, p->pool, shape->pool))
                at = p->at;
        }
        if (at <= s->now)
            return 0;
        if (may_run_until(s, shape, at))
            return at - s->now;
        below = at;
    }
}

usec_t pass_window(struct sched *s, struct shape *shape)
{
    if (!fit_exists_now(s, shape))
        return 0;
    if (shape->window_tick != s->tick) {
        shape->window = find_window(s, shape);
        shape->window_tick = s->tick;
    }
    return shape->window;
}

/* The job of the line that would fill a gap first; false: none can. */
static bool fill_candidate(struct sched *s, uint32_t line, struct candidate *ret)
{
    if (!row_is_used(&s->lines, line))
        return false;
    struct shape *shape = shape_at(s, line_at(s, line)->shape);
    usec_t window = pass_window(s, shape);
    usec_t until_due = s->walk.n_yields ? policy_first_due(s) - s->now : NEVER;
    uint32_t job = line_within(s, line, window < until_due ? window : until_due);
    const struct waiting *w = waiting_at(s, job);
    if (!job || is_barred(s, w) || !policy_may_pass(s, w))
        return false;
    *ret = (struct candidate){.row = line};
    ret->rank = (struct rank){.level = w->level, .a = w->a, .b = w->b, .job = job};
    if (group_at(s, w->group)->project)
        ret->rank.share = account_standing(account_at(s, w->f.project), s->now);
    return true;
}

/* Pushes the lines whose shapes fit somewhere and which stand behind a promise. */
static void fill_begin(struct sched *s)
{
    struct candidate c;
    s->walk.phase = WALK_FILL;
    if (s->limits.policy == SCHED_POLICY_FIFO)
        return;
    for (uint32_t i = 1; i < s->shapes.n; i++) {
        struct shape *shape = row_is_used(&s->shapes, i) ? shape_at(s, i) : NULL;
        if (!shape || !shape->first_line || !pool_has_waiting(s, shape->pool) ||
            !pass_window(s, shape))
            continue;
        for (uint32_t l = shape->first_line; l; l = line_at(s, l)->next)
            if (fill_candidate(s, l, &c))
                candidate_push(&s->walk.heap, &c);
    }
}

static bool walk_fill(struct sched *s, struct sched_decision *ret)
{
    struct candidate old = candidate_pop(&s->walk.heap), c;
    if (!fill_candidate(s, old.row, &c))
        return false;
    if (candidate_before(&old, &c)) {
        candidate_push(&s->walk.heap, &c);
        return false;
    }
    bool started =
        sched_pass_try_start(s, c.rank.job, s->now + waiting_at(s, c.rank.job)->lasts, ret);
    if (started && s->walk.phase == WALK_FILL && fill_candidate(s, old.row, &c))
        candidate_push(&s->walk.heap, &c);
    return started;
}

/* ---- the whole ---- */

static bool walk_on(struct sched *s, struct sched_decision *ret)
{
    struct walk *w = &s->walk;
    switch (w->phase) {
    case WALK_ORDER:
        if (w->heap.n)
            return walk_order(s, ret);
        fill_begin(s);
        return false;
    case WALK_FILL:
        if (w->heap.n)
            return walk_fill(s, ret);
        if (w->n_yields) {
            walk_begin(s, true);
            return false;
        }
        w->phase = reclaim_begin(s) ? WALK_NEW : WALK_DONE;
        return reclaim_tell(s, ret);
    default:
        walk_begin(s, false);
        return false;
    }
}

bool sched_next(struct sched *s, usec_t now, struct sched_decision *ret)
{
    struct walk *w = &s->walk;
    queue_advance(s, now);
    if (reclaim_tell(s, ret))
        return true;
    if (w->stamp != s->stamp || w->now != s->now)
        w->phase = WALK_NEW;
    while (w->phase != WALK_DONE)
        if (walk_on(s, ret))
            return true;
    return false;
}

void pass_look(struct sched *s, usec_t now)
{
    struct walk *w = &s->walk;
    queue_advance(s, now);
    if (w->stamp == s->stamp && w->phase != WALK_NEW)
        return;
    walk_begin(s, false);
    while (w->phase == WALK_ORDER && w->heap.n)
        (void)walk_order(s, NULL);
    w->phase = WALK_NEW;
}

void pass_release(struct sched *s)
{
    promises_clear(s);
    free(s->walk.promises);
    free(s->walk.heap.v);
    numbers_release(&s->walk.taken);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* queue.c - the scheduler's side of the jobs: what it is told of them, what it decides,
 * and why one waits; see jobs.h.
 *
 * The scheduler holds each live job as waiting or as a lease, never both. Its clock is
 * jobs_now(), which never jumps; times that were measured by a job's stopwatch are put on
 * it as "so long before now". A borrower that is asked to go is told first, and stopped
 * when limits.reclaim_grace is over; that is forgotten at a restart, and decided anew. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/foresight.h"
#include "argusd/jobs_state.h"
#include "argusd/lease.h"
#include "base/log.h"
#include "base/str.h"

/* ---- what the scheduler is told ---- */

static usec_t before_now(const struct jobs *js, usec_t span)
{
    usec_t now = jobs_now(js);
    return now > span ? now - span : 1;
}

static bool is_held(const struct live *l)
{
    const struct moment now = jobs_moment(l->jobs);
    return (l->job->flags & JOB_FLAG_HELD) || job_act(l->job) == JOB_ACT_TRY ||
           job_is_pausing(l->job, &now);
}

static struct sched_job sched_job_of(struct live *l)
{
    const struct job *j = l->job;
    return (struct sched_job){.id = j->id,
                              .seq = j->seq,
                              .priority = j->priority,
                              .pool = j->pool,
                              .user = j->user,
                              .project = j->project,
                              .avoid = j->restart.bad_nodes,
                              .demand = j->demand,
                              .queued_at = before_now(l->jobs, jobs_in_state(l)),
                              .limit = j->timeout,
                              .expected_p50 = l->extra.expected_p50,
                              .expected_p90 = l->extra.expected_p90,
                              .restartable = j->restart.preemptible,
                              .held = j->state == JOB_QUEUED && is_held(l),
                              .job = l};
}

void queue_enter(struct live *l)
{
    foresight_expect(l->jobs->foresight, l->job, &l->extra.expected_p50, &l->extra.expected_p90);
    struct sched_job asked = sched_job_of(l);
    l->pausing = asked.held && !(l->job->flags & JOB_FLAG_HELD) && job_act(l->job) != JOB_ACT_TRY;
    sched_enqueue(l->jobs->sched, &asked);
    foresight_waits(l->jobs->foresight, l);
}

/* A lease whose job is being stopped: others may count on it. */
static void note_leaving(struct live *l)
{
    const struct job *j = l->job;
    sched_lease_leaving(l->jobs->sched, j->id, jobs_now(l->jobs) + j->stop_grace);
}

void queue_restore(struct live *l)
{
    const struct job *j = l->job;
    if (j->state == JOB_QUEUED) {
        queue_enter(l);
        return;
    }
    struct sched_job leased = sched_job_of(l);
    usec_t ran = j->ran + (j->state == JOB_STARTING ? 0 : jobs_in_state(l));
    sched_lease_restore(l->jobs->sched, &leased, str_or(j->slots, str_or(j->nodes, "")),
                        before_now(l->jobs, ran));
    if (j->state == JOB_STOPPING)
        note_leaving(l);
}

static void end_lease(struct live *l)
{
    struct jobs *js = l->jobs;
    _cleanup_(freep) char *slots = xstrdup(sched_lease_slots(js->sched, l->job->id));
    sched_lease_end(js->sched, l->job->id, jobs_now(js));
    if (slots && js->p.ops.lease_ended)
        js->p.ops.lease_ended(l, slots, js->p.ops.arg);
}

void queue_follow(struct live *l, enum job_state before)
{
    struct job *j = l->job;
    struct jobs *js = l->jobs;
    bool over = job_state_is_terminal(j->state);
    if (before == JOB_QUEUED && j->state == JOB_QUEUED) {
        sched_set_held(js->sched, j->id, is_held(l));
        js->admit_soon |= !is_held(l);
    }
    foresight_touch(js->foresight);
    if (before == j->state)
        return;
    l->reclaim_at = 0;
    if (before == JOB_QUEUED && !over)
        foresight_starts(js->foresight, l);
    if (over) {
        foresight_ends(js->foresight, j);
        sched_dequeue(js->sched, j->id);
    }
    if (over || j->state == JOB_QUEUED) {
        end_lease(l);
        js->admit_soon = true; /* not now: who called may be in the middle of a change */
    }
    if (j->state == JOB_STOPPING)
        note_leaving(l);
    if (j->state == JOB_QUEUED)
        queue_enter(l);
}

bool jobs_set_priority(struct live *l, int priority, const char *actor, usec_t now)
{
    char text[128];
    struct job *j = l->job;
    if (l->over || j->priority == priority)
        return false;
    (void)snprintf(text, sizeof(text), "priority %d, it was %d", priority, j->priority); /* fits */
    j->priority = priority;
    if (j->state == JOB_QUEUED)
        sched_set_priority(l->jobs->sched, j->id, priority);
    l->jobs->admit_soon = true;
    jobs_save(l);
    jobs_note_by(l, "priority", actor, "", text, now);
    return true;
}

/* ---- what it decides ---- */

bool jobs_preempt(struct live *l, const char *code, const char *text, const char *actor)
{
    struct job_event e = {.kind = JOB_EV_STOP, .cause = STOP_PREEMPTED, .code = code, .text = text};
    return job_is_preemptible(l->job) && jobs_apply(l, &e, actor, clock_wall());
}

/* Its slots are wanted back: it is told, and stopped when the grace is over. */
static void ask_back(struct live *l, const char *text)
{
    struct jobs *js = l->jobs;
    char span[CLOCK_TEXT_MAX], told[sizeof(l->reclaim_text) + 80];
    if (l->over || l->reclaim_at || !job_is_preemptible(l->job))
        return;
    l->reclaim_at = jobs_now(js) + js->p.reclaim_grace;
    (void)snprintf(l->reclaim_text, sizeof(l->reclaim_text), "%s", text); /* cut: fine */
    (void)snprintf(told, sizeof(told), "it is stopped in %s and goes on later: %s",
                   span_to_string(js->p.reclaim_grace, span), l->reclaim_text); /* cut: fine */
    jobs_note(l, "reclaim", "reclaiming", told, clock_wall());
    jobs_wake(l);
}

static void start(struct live *l, const struct sched_decision *d, usec_t now)
{
    struct sched *s = l->jobs->sched;
    struct job_event e = {.kind = JOB_EV_ADMITTED,
                          .nodes = d->nodes,
                          .slots = sched_lease_slots(s, l->job->id),
                          .driver_node = d->driver_node};
    l->job->share = lease_share(l->jobs, d->nodes);
    if (!jobs_apply(l, &e, "argusd", now))
        sched_lease_end(s, l->job->id, jobs_now(l->jobs)); /* our mistake; nobody pays for it */
}

void jobs_admit(struct jobs *js, usec_t now)
{
    struct sched_decision d;
    if (*js->block.code)
        return;
    while (sched_next(js->sched, jobs_now(js), &d))
        if (d.verb == SCHED_START)
            start(d.job, &d, now);
        else
            ask_back(d.job, d.text);
}

/* Somebody waits for news of it: another reason or place is news, other numbers are not. */
static void tell_reason(struct live *l)
{
    struct reason now;
    int position;
    if (!l->waiters || l->job->state != JOB_QUEUED)
        return;
    jobs_reason(l, &now, &position);
    if (position != l->told_position || strcmp(now.code, l->told.code) != 0)
        jobs_wake(l);
}

/* Who wanted its slots may have found others meanwhile, or wait no more. */
static void end_grace(struct live *l)
{
    struct jobs *js = l->jobs;
    if (!sched_is_wanted_back(js->sched, l->job->id, jobs_now(js)))
        jobs_note(l, "reclaim", "not_reclaimed", "its GPUs are not wanted back any more",
                  clock_wall());
    else
        (void)jobs_preempt(l, "preempted", l->reclaim_text, "argusd"); /* unless it just ends */
}

void jobs_tick_all(struct jobs *js, usec_t now)
{
    jobs_admit(js, now); /* time alone lets some start: whoever waited long enough */
    foresight_tick(js->foresight);
}

void jobs_tick(struct live *l)
{
    struct jobs *js = l->jobs;
    tell_reason(l);
    if (l->pausing && !is_held(l)) {
        l->pausing = false;
        sched_set_held(js->sched, l->job->id, l->job->flags & JOB_FLAG_HELD);
        js->admit_soon = true;
    }
    if (l->reclaim_at && jobs_now(js) >= l->reclaim_at) {
        l->reclaim_at = 0;
        end_grace(l);
    }
}

void jobs_block(struct jobs *js, const char *code, const char *text)
{
    (void)snprintf(js->block.code, sizeof(js->block.code), "%s", code); /* cut: fine */
    (void)snprintf(js->block.text, sizeof(js->block.text), "%s", text);
}

struct forecast_error *jobs_forecast_error(const struct jobs *js)
{
    return foresight_error(js->foresight);
}

void jobs_expect(const struct jobs *js, const struct job *j, usec_t *ret_p50, usec_t *ret_p90)
{
    foresight_expect(js->foresight, j, ret_p50, ret_p90);
}

const struct reason *jobs_blocked(const struct jobs *js)
{
    return &js->block;
}

/* ---- why one waits ---- */

static void say(struct sched_why *why, const char *code, const char *text)
{
    why->code = code;
    (void)snprintf(why->text, sizeof(why->text), "%s", text); /* cut: fine */
}

/* What only we know of a job that the scheduler holds: who holds it, or that it pauses. */
static void explain_held(const struct live *l, struct sched_why *why)
{
    const struct job *j = l->job;
    char span[CLOCK_TEXT_MAX], text[sizeof(why->text)];
    usec_t passed = jobs_in_state(l);
    usec_t left = j->restart.pause > passed ? j->restart.pause - passed : 0;
    if (j->flags & JOB_FLAG_HELD) {
        (void)snprintf(text, sizeof(text), "held by '%s'; it waits until it is released",
                       str_or(j->held_by, "")); /* fits */
        say(why, "held", text);
        return;
    }
    if (job_act(j) == JOB_ACT_TRY) {
        (void)snprintf(text, sizeof(text), "its trial has to end first: %.200s",
                       *l->trial_text ? l->trial_text : "it begins in a moment"); /* fits */
        say(why, "trial_running", text);
        why->hint.kind = SCHED_HINT_NONE;
        *why->hint_text = 0;
        return;
    }
    (void)snprintf(text, sizeof(text), "it pauses for another %s before %.200s",
                   span_to_string(left, span), j->reason.text); /* fits */
    say(why, "restart_backoff", text);
    why->hint.kind = SCHED_HINT_NONE;
    *why->hint_text = 0;
}

bool jobs_why(const struct live *l, bool want_hint, struct sched_why *ret)
{
    const struct jobs *js = l->jobs;
    if (l->job->state != JOB_QUEUED ||
        !sched_explain(js->sched, l->job->id, jobs_now(js), want_hint, ret))
        return false;
    if (is_held(l)) {
        explain_held(l, ret);
    } else if (*js->block.code) { /* then what is known of the pool is old, or nothing */
        say(ret, js->block.code, js->block.text);
        ret->hint.kind = SCHED_HINT_NONE;
        *ret->hint_text = 0;
    }
    return true;
}

void jobs_reason(const struct live *l, struct reason *ret, int *ret_position)
{
    struct sched_why why;
    const struct jobs *js = l->jobs;
    const struct attempt *a = job_attempt(l->job);
    *ret = l->job->reason;
    *ret_position = 0;
    if (l->job->state == JOB_STARTING && a->phase == ATTEMPT_PLANNED && *js->block.code)
        *ret = js->block; /* it is to be sent and cannot be: this is why */
    if (l->reclaim_at) {
        (void)snprintf(ret->code, sizeof(ret->code), "reclaiming"); /* these fit, or are cut */
        (void)snprintf(ret->text, sizeof(ret->text), "%s", l->reclaim_text);
    }
    if (!jobs_why(l, false, &why))
        return;
    *ret_position = why.position;
    (void)snprintf(ret->code, sizeof(ret->code), "%s", why.code);
    (void)snprintf(ret->text, sizeof(ret->text), "%s", why.text);
}

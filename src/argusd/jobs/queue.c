/* SPDX-License-Identifier: Apache-2.0 */
/* queue.c - the scheduler's side of the jobs: what it is told of them, what it decides,
 * and why one waits; see jobs.h.
 *
 * The scheduler holds each live job as waiting or as a lease, never both. Its clock is
 * jobs_now(), which never jumps; times that were measured by a job's stopwatch are put on
 * it as "so long before now". A borrower that is asked to go is told first, and stopped
 * when limits.reclaim_grace is over; a job that gives way under policy flow is told, and stopped
 * when its next checkpoint is complete. That is forgotten at a restart, and decided anew. */
#include <stdlib.h>
#include <string.h>

#include "argusd/account/accounting.h"
#include "argusd/jobs/foresight.h"
#include "argusd/jobs/jobs_state.h"
#include "argusd/jobs/lease.h"
#include "base/log.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/job/access.h"

/* ---- what the scheduler is told ---- */

static usec_t before_now(const struct jobs *js, usec_t span)
{
    usec_t now = jobs_now(js);
    return now > span ? now - span : 1;
}

static bool queue_is_held(const struct live *l)
{
    const struct moment now = jobs_moment(l->jobs);
    return (l->job->flags & JOB_FLAG_HELD) || job_act(l->job) == JOB_ACT_TRY ||
           job_is_pausing(l->job, &now);
}

/* What its earlier attempts ran, where that counts. */
static usec_t served_before(const struct live *l)
{
    const struct job *j = l->job;
    usec_t sum = 0;
    int n = j->n_attempts - (j->state != JOB_QUEUED); /* the newest of one that waits is over */
    for (int i = 0; sched_is_sliced(l->jobs->sched) && i < n; i++) {
        const struct attempt *a = &j->attempts[i];
        sum += a->started_at && a->ended_at > a->started_at ? a->ended_at - a->started_at : 0;
    }
    return sum;
}

static struct sched_job sched_job_of(struct live *l)
{
    const struct job *j = l->job;
    usec_t served = served_before(l);
    return (struct sched_job){.id = j->id,
                              .seq = j->seq,
                              .priority = j->priority,
                              .pool = j->pool,
                              .needs = l->needs,
                              .user = j->user,
                              .project = j->project,
                              .avoid = j->restart.bad_nodes,
                              .demand = j->demand,
                              .queued_at = before_now(l->jobs, jobs_in_state(l)),
                              .limit = j->limits.timeout ? j->limits.timeout + served : 0,
                              .served = served,
                              .expected_p50 = l->extra.expected_p50,
                              .expected_p90 = l->extra.expected_p90,
                              .restartable = j->restart.preemptible,
                              .held = j->state == JOB_QUEUED && queue_is_held(l),
                              .job = l};
}

static void find_needs(struct live *l)
{
    const struct jobs_ops *ops = &l->jobs->p.ops;
    free(l->needs);
    l->needs = ops->needs ? ops->needs(l, ops->arg) : NULL;
}

void queue_enter(struct live *l)
{
    find_needs(l);
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
    sched_lease_leaving(l->jobs->sched, j->id, jobs_now(l->jobs) + j->limits.stop_grace);
}

static struct accounting_job accounting_job_of(const struct job *j)
{
    return (struct accounting_job){.id = j->id,
                                   .project = *j->project ? j->project : ACCESS_DEFAULT_PROJECT,
                                   .user = j->user,
                                   .workload = j->workload};
}

void jobs_add_held_of(struct attempt *a, const struct slotbook_held *held)
{
    const double unit = (double)SLOTBOOK_GPU * 1000;
    a->gpu_s += (double)held->held / unit;
    a->gpu_idle_s += (double)held->idle / unit;
    a->gpu_unknown_s += (double)held->unknown / unit;
    a->gpu_redone_s += (double)held->redone / unit;
}

/* A lease is of one attempt, the newest: the next one gets another lease. */
void queue_settle(struct live *l)
{
    const struct job *j = l->job;
    struct slotbook_held lease = {0};
    if (j->state != JOB_QUEUED && !job_state_is_terminal(j->state))
        return;
    accounting_end(l->jobs->p.accounting, j->id, &lease);
    slotbook_held_add(&l->extra.held, &lease);
    if (j->n_attempts)
        jobs_add_held_of(&l->job->attempts[j->n_attempts - 1], &lease);
}

/* One that hangs, ends or is kept for a look runs no step again, whatever it did last. */
static bool queue_runs_steps(const struct live *l)
{
    return l->job->state == JOB_RUNNING && !(l->job->flags & (JOB_FLAG_HUNG | JOB_FLAG_HOLDING));
}

void jobs_set_redoes(struct live *l, int k, bool redoes)
{
    const struct job *j = l->job;
    if (l->over || !j->n_attempts || j->attempts[j->n_attempts - 1].k != k)
        return;
    accounting_set_redoes(l->jobs->p.accounting, j->id, redoes && queue_runs_steps(l));
}

void jobs_add_held(const struct live *l, struct slotbook_held *held)
{
    accounting_add_held(l->jobs->p.accounting, l->job->id, held);
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
    sched_lease_restore(l->jobs->sched, &leased, &j->gang,
                        before_now(l->jobs, ran + leased.served));
    const struct accounting_job held = accounting_job_of(j);
    accounting_again(l->jobs->p.accounting, &held);
    if (j->state == JOB_STOPPING)
        note_leaving(l);
}

static void end_lease(struct live *l)
{
    struct jobs *js = l->jobs;
    struct gang gang = {0};
    bool held = sched_lease_gang(js->sched, l->job->id, &gang);
    sched_lease_end(js->sched, l->job->id, jobs_now(js));
    if (held && js->p.ops.lease_ended)
        js->p.ops.lease_ended(l, &gang, js->p.ops.arg);
    gang_release(&gang);
}

/* Beyond the time at which a checkpoint is late. */
#define SAVE_LATE (10 * USEC_MIN)

/* The newest checkpoint of this attempt. */
struct saves {
    usec_t at;
    int attempt;
};

/* Its slots are wanted back. */
struct reclaim {
    usec_t at;                      /* jobs_now(): then; 0 = they are not */
    bool at_save;                   /* at its next checkpoint, of which `at` is long after */
    char text[JOB_REASON_TEXT_MAX]; /* for whom */
};

static const struct reclaim *reclaim_of(const struct live *l)
{
    const struct reclaim *r = live_kept(l, LIVE_RECLAIM);
    return r && r->at ? r : NULL;
}

static void drop_reclaim(struct live *l)
{
    if (reclaim_of(l))
        ((struct reclaim *)live_keep(l, LIVE_RECLAIM, sizeof(struct reclaim)))->at = 0;
}

void queue_follow(struct live *l, enum job_state before)
{
    struct job *j = l->job;
    struct jobs *js = l->jobs;
    bool over = job_state_is_terminal(j->state);
    if (before == JOB_QUEUED && j->state == JOB_QUEUED) {
        sched_set_held(js->sched, j->id, queue_is_held(l));
        js->admit_soon |= !queue_is_held(l);
    }
    foresight_touch(js->foresight);
    if (!queue_runs_steps(l))
        accounting_set_redoes(js->p.accounting, j->id, false);
    if (before == j->state)
        return;
    drop_reclaim(l);
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

void jobs_ask_needs(struct live *l)
{
    if (l->over || l->job->state != JOB_QUEUED)
        return;
    queue_enter(l);
    l->jobs->admit_soon = true;
}

bool jobs_set_priority(struct live *l, int priority, const char *actor, usec_t now)
{
    char text[128];
    struct job *j = l->job;
    if (l->over || j->priority == priority)
        return false;
    message_write(
        text, sizeof(text),
        MESSAGE_ARGS(MESSAGE_NUM("priority", priority), MESSAGE_NUM("before", j->priority)));
    j->priority = priority;
    if (j->state == JOB_QUEUED)
        sched_set_priority(l->jobs->sched, j->id, priority);
    l->jobs->admit_soon = true;
    jobs_save(l);
    jobs_note_by(l, "priority", actor, "job_priority", text, now);
    return true;
}

/* ---- what it decides ---- */

bool jobs_preempt(struct live *l, const char *code, const char *text, const char *actor)
{
    struct job_event e = {.kind = JOB_EV_STOP, .cause = STOP_PREEMPTED, .code = code, .text = text};
    return job_is_preemptible(l->job) && jobs_apply(l, &e, actor, clock_wall());
}

/* Who wanted its slots may have found others meanwhile, or wait no more. */
static void end_grace(struct live *l, const char *code, const char *text)
{
    struct jobs *js = l->jobs;
    if (!sched_is_wanted_back(js->sched, l->job->id, jobs_now(js)))
        jobs_note(l, "reclaim", "not_reclaimed", "{}", clock_wall());
    else
        (void)jobs_preempt(l, code, text, "argusd"); /* unless it just ends */
}

/* It gives way under policy flow once its next checkpoint is complete, expected at at_save. */
static void ask_way(struct live *l, usec_t at_save, const char *text)
{
    struct jobs *js = l->jobs;
    usec_t now = jobs_now(js), left = at_save > now ? at_save - now : 0;
    if (l->over || reclaim_of(l) || !job_is_preemptible(l->job))
        return;
    if (!left) { /* that one was just completed */
        end_grace(l, "set_back", text);
        return;
    }
    struct reclaim *r = live_keep(l, LIVE_RECLAIM, sizeof(*r));
    r->at = at_save + 2 * left + SAVE_LATE;
    r->at_save = true;
    text_copy(r->text, text);
    jobs_note(l, "reclaim", "giving_way", r->text, clock_wall());
    jobs_wake(l);
}

void jobs_saved(struct live *l)
{
    struct jobs *js = l->jobs;
    const struct reclaim *r = reclaim_of(l);
    if (l->over || l->job->state != JOB_RUNNING || !sched_is_sliced(js->sched))
        return;
    struct saves *v = live_keep(l, LIVE_SAVES, sizeof(*v));
    usec_t now = jobs_now(js), ran = jobs_in_state(l);
    usec_t every = v->at && v->attempt == l->job->n_attempts ? now - v->at : ran;
    *v = (struct saves){.at = now, .attempt = l->job->n_attempts};
    sched_lease_saves(js->sched, l->job->id, now, every ? every : 1);
    js->admit_soon = true;
    if (!r || !r->at_save || !sched_slice_is_over(js->sched, l->job->id, now))
        return;
    struct reclaim was = *r;
    drop_reclaim(l);
    end_grace(l, "set_back", was.text);
}

/* Its slots are wanted back: it is told, and stopped when the grace is over. */
static void ask_back(struct live *l, const char *text)
{
    struct jobs *js = l->jobs;
    char span[CLOCK_TEXT_MAX], told[JOB_REASON_TEXT_MAX + 80];
    struct message m;
    if (l->over || reclaim_of(l) || !job_is_preemptible(l->job))
        return;
    struct reclaim *r = live_keep(l, LIVE_RECLAIM, sizeof(*r));
    r->at = jobs_now(js) + js->p.reclaim_grace;
    r->at_save = false;
    text_copy(r->text, text);
    message_begin(&m);
    jout_str(&m.j, "within", span_to_string(js->p.reclaim_grace, span));
    message_add(&m, r->text);
    message_end(&m, told, sizeof(told));
    jobs_note(l, "reclaim", "reclaiming", told, clock_wall());
    jobs_wake(l);
}

static void queue_start(struct live *l, usec_t now)
{
    struct sched *s = l->jobs->sched;
    struct gang gang = {0};
    struct job_event e = {.kind = JOB_EV_ADMITTED, .gang = &gang};
    (void)sched_lease_gang(s, l->job->id, &gang); /* decided just now: it is there */
    l->job->share = lease_share(l->jobs, &gang);
    const struct accounting_job held = accounting_job_of(l->job);
    if (!jobs_apply(l, &e, "argusd", now))
        sched_lease_end(s, l->job->id, jobs_now(l->jobs)); /* our mistake; nobody pays for it */
    else
        accounting_begin(l->jobs->p.accounting, &held);
    gang_release(&gang);
}

void jobs_admit(struct jobs *js, usec_t now)
{
    struct sched_decision d;
    if (*js->block.code)
        return;
    usec_t began = clock_mono();
    while (sched_next(js->sched, jobs_now(js), &d))
        if (d.verb == SCHED_START)
            queue_start(d.job, now);
        else if (d.at_save)
            ask_way(d.job, d.at_save, d.text);
        else
            ask_back(d.job, d.text);
    expo_spans_add(&js->seen.passes, clock_mono() - began);
}

static bool queue_is_news(const struct live *l, const char *code, int position)
{
    bool is_news = false;
    for (const struct jobs_waiter *w = l->waiters; w; w = w->next)
        is_news |= position != w->told_position || strcmp(code, w->told_code) != 0;
    return is_news;
}

/* Somebody waits for news of it: another reason or place is news, other numbers are not. */
static void tell_reason(struct live *l)
{
    struct reason now;
    int position;
    if (!l->waiters || l->job->state != JOB_QUEUED)
        return;
    jobs_reason(l, &now, &position);
    if (queue_is_news(l, now.code, position))
        jobs_wake(l);
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
    if (l->pausing && !queue_is_held(l)) {
        l->pausing = false;
        sched_set_held(js->sched, l->job->id, l->job->flags & JOB_FLAG_HELD);
        js->admit_soon = true;
    }
    const struct reclaim *r = reclaim_of(l);
    if (r && jobs_now(js) >= r->at) {
        struct reclaim was = *r;
        drop_reclaim(l);
        if (was.at_save) /* it saves no more: nobody counts on it */
            sched_lease_saves(js->sched, l->job->id, 0, 0);
        else
            end_grace(l, "preempted", was.text);
    }
}

void jobs_block(struct jobs *js, const char *code, const char *text)
{
    text_copy(js->block.code, code);
    text_copy(js->block.text, text);
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

/* With its quotes and backslashes doubled a cause still fits beside the other arguments. */
enum { CAUSE_SHOWN = 120 };

/* The message is whole. */
static void queue_say(struct sched_why *why, const char *code, struct message *m)
{
    why->code = code;
    message_end(m, why->text, sizeof(why->text));
}

/* A reason inside another one. */
static void put_cause(struct jout *j, const char *key, const struct reason *r)
{
    if (*r->text == '{')
        message_put(j, key, r->code, r->text);
    else
        jout_strn(j, key, r->text, strnlen(r->text, CAUSE_SHOWN));
}

/* What only we know of a job that the scheduler holds: who holds it, or that it pauses. */
static void explain_held(const struct live *l, struct sched_why *why)
{
    const struct job *j = l->job;
    char span[CLOCK_TEXT_MAX];
    struct message m;
    usec_t passed = jobs_in_state(l);
    usec_t left = j->restart.pause > passed ? j->restart.pause - passed : 0;
    message_begin(&m);
    if (j->flags & JOB_FLAG_HELD) {
        jout_str(&m.j, "holder", str_or(j->held_by, ""));
        queue_say(why, "held", &m);
        return;
    }
    if (job_act(j) == JOB_ACT_TRY) {
        const struct jobs_ops *ops = &l->jobs->p.ops;
        struct reason trial = {0};
        if (ops->trial)
            ops->trial(l, &trial, ops->arg);
        if (!*trial.text)
            reason_set(&trial, "trial_soon", NULL, "{}");
        put_cause(&m.j, "trial", &trial);
        queue_say(why, "trial_running", &m);
        why->hint.kind = SCHED_HINT_NONE;
        *why->hint_text = 0;
        return;
    }
    jout_str(&m.j, "span", span_to_string(left, span));
    put_cause(&m.j, "reason", job_state_reason(j));
    queue_say(why, "restart_backoff", &m);
    why->hint.kind = SCHED_HINT_NONE;
    *why->hint_text = 0;
}

/* While nothing is known of the pool, or all of it is old, nothing is told of its nodes. */
static bool queue_knows_nodes(const struct live *l)
{
    return l->job->state == JOB_QUEUED && !*l->jobs->block.code;
}

size_t jobs_look_nodes(const struct live *l, size_t max, struct sched_look *ret)
{
    const struct jobs *js = l->jobs;
    return queue_knows_nodes(l) ? sched_look_all(js->sched, l->job->id, jobs_now(js), max, ret) : 0;
}

size_t jobs_ends_before(const struct live *l, size_t max, struct sched_end *ret, usec_t *ret_at)
{
    const struct jobs *js = l->jobs;
    *ret_at = 0;
    return queue_knows_nodes(l)
               ? sched_ends_before(js->sched, l->job->id, jobs_now(js), max, ret, ret_at)
               : 0;
}

bool jobs_why(const struct live *l, bool want_hint, struct sched_why *ret)
{
    const struct jobs *js = l->jobs;
    if (l->job->state != JOB_QUEUED ||
        !sched_explain(js->sched, l->job->id, jobs_now(js), want_hint, ret))
        return false;
    if (queue_is_held(l)) {
        explain_held(l, ret);
    } else if (*js->block.code) { /* then what is known of the pool is old, or nothing */
        ret->code = js->block.code;
        text_copy(ret->text, js->block.text);
        ret->hint.kind = SCHED_HINT_NONE;
        *ret->hint_text = 0;
    }
    return true;
}

size_t jobs_why_more(const struct live *l, const char *but, size_t max, struct sched_why *ret)
{
    const struct jobs *js = l->jobs;
    if (l->job->state != JOB_QUEUED || *js->block.code)
        return 0; /* what is known of the pool is old, or nothing */
    return sched_explain_more(js->sched, l->job->id, jobs_now(js), but, max, ret);
}

void jobs_reason(const struct live *l, struct reason *ret, int *ret_position)
{
    struct sched_why why;
    const struct jobs *js = l->jobs;
    const struct attempt *a = job_attempt(l->job);
    *ret = *job_state_reason(l->job);
    *ret_position = 0;
    if (l->job->state == JOB_STARTING && a->phase == ATTEMPT_PLANNED && *js->block.code)
        *ret = js->block; /* it is to be sent and cannot be: this is why */
    const struct reclaim *r = reclaim_of(l);
    if (r) {
        text_copy(ret->code, r->at_save ? "giving_way" : "reclaiming");
        text_copy(ret->text, r->text);
    }
    if (!jobs_why(l, false, &why))
        return;
    *ret_position = why.position;
    text_copy(ret->code, why.code);
    text_copy(ret->text, why.text);
}

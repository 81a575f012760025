/* SPDX-License-Identifier: Apache-2.0 */
/* stopper.c - ends attempts and clears Ray of their records; see stopper.h. */
#include "argusd/watch/stopper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/ground/work.h"
#include "argusd/watch/sender.h"
#include "argusd/watch/sight.h"
#include "base/log.h"
#include "base/message.h"
#include "base/str.h"
#include "fsroot/attempt/attempt.h"

static const usec_t AGAIN = 10 * USEC_SEC;
/* Ray brings a record back as FAILED when it is deleted within a second or so of its end. */
static const usec_t DELETE_AFTER = 8 * USEC_SEC;
static const usec_t PENDING_GRACE = 5 * USEC_SEC;

struct stopper {
    struct stopper_parts p;
};

/* What is kept for a job. */
struct stop {
    bool busy;    /* a stop is under way */
    int k;        /* the attempt that the rest is about */
    usec_t after; /* monotonic: not again before */
    bool written; /* the stop file is there */
};

/* The stop file is written on a worker thread. */
struct stop_file {
    char *root, *job, *reason;
    int k;
    struct live *live; /* NULL: nobody asks how it went */
    int result;
    struct err err;
};

static struct stop *stop_change(struct live *l)
{
    struct stop *s = live_keep(l, LIVE_STOPPER, sizeof(*s));
    if (s->k != l->job->n_attempts)
        *s = (struct stop){.busy = s->busy, .k = l->job->n_attempts};
    return s;
}

bool stopper_has_written(const struct live *l)
{
    const struct stop *s = live_kept(l, LIVE_STOPPER);
    return s && s->k == l->job->n_attempts && s->written;
}

struct stopper *stopper_new(const struct stopper_parts *parts)
{
    struct stopper *s = xcalloc(1, sizeof(*s));
    s->p = *parts;
    return s;
}

void stopper_free(struct stopper *s)
{
    free(s);
}

static void run_file(void *arg)
{
    struct stop_file *f = arg;
    f->result = fsroot_stop_write(f->root, f->job, f->k, f->reason, &f->err);
}

static void done_file(void *arg)
{
    struct stop_file *f = arg;
    if (f->result < 0)
        log_debug("stop", "%s job=%s", f->err.text, f->job);
    if (f->live) {
        const struct attempt *a = job_attempt(f->live->job);
        if (a && a->k == f->k)
            stop_change(f->live)->written = f->result == 0;
        stop_change(f->live)->busy = false;
        jobs_idle(f->live);
    }
    free(f->root);
    free(f->job);
    free(f->reason);
    free(f);
}

static void write_file(struct stopper *s,
                       const char *job,
                       int k,
                       const char *reason,
                       struct live *l)
{
    struct stop_file *f = xcalloc(1, sizeof(*f));
    *f = (struct stop_file){.root = xstrdup(s->p.settings->shared_root),
                            .job = xstrdup(job),
                            .k = k,
                            .reason = xstrdup(reason),
                            .live = l};
    if (l) {
        stop_change(l)->busy = true;
        jobs_busy(l);
    }
    work_start(s->p.loop, run_file, done_file, f);
}

static void stopper_on_stopped(enum ray_stop_outcome outcome, const struct err *err, void *arg)
{
    (void)arg;
    if (outcome == RAY_STOP_UNKNOWN)
        log_debug("stop", "Ray did not take the stop: %s", err->text);
}

/* It was never sent, or Ray has it PENDING and its shepherd will find the stop file. */
static bool never_ran(const struct live *l, usec_t now)
{
    const struct attempt *a = job_attempt(l->job);
    const struct sight *s = sight_of(l);
    if (a->phase == ATTEMPT_PLANNED)
        return !sender_is_sending(l) && !sender_may_have_sent(l);
    return a->phase == ATTEMPT_ACCEPTED && stopper_has_written(l) &&
           s->ray == WITNESS_RAY_PENDING && s->files == WITNESS_FILES_NONE &&
           now - s->ray_since > PENDING_GRACE;
}

static void stopper_on_asked(enum ray_found found,
                             const struct ray_job *rj,
                             const struct err *err,
                             void *arg)
{
    struct live *l = arg;
    const struct attempt *a = job_attempt(l->job);
    (void)rj;
    (void)err;
    struct job_event e = {.kind = JOB_EV_ACCEPTED};
    if (found == RAY_NOT_FOUND)
        sender_saw_none(l);
    else if (found == RAY_FOUND && a && a->phase == ATTEMPT_PLANNED)
        (void)jobs_apply(l, &e, "argusd", clock_wall()); /* now it can be watched and stopped */
    if (found != RAY_UNKNOWN)
        stop_change(l)->after = 0; /* it is known now what to do: at once */
    stop_change(l)->busy = false;
    jobs_idle(l);
}

void stopper_act(struct stopper *s, struct live *l)
{
    usec_t now = clock_mono();
    const struct job *j = l->job;
    const struct attempt *a = job_attempt(j);
    if (never_ran(l, now)) {
        struct job_event e = {.kind = JOB_EV_REQUEUED, .message = "job_never_ran", .text = "{}"};
        (void)jobs_apply(l, &e, "argusd", clock_wall());
        return;
    }
    struct stop *stop = stop_change(l);
    if (stop->busy || now < stop->after || (a->phase == ATTEMPT_PLANNED && sender_is_sending(l)))
        return; /* what is being sent has its answer first */
    stop->after = now + AGAIN;
    if (a->phase == ATTEMPT_PLANNED) {
        stop_change(l)->busy = true;
        jobs_busy(l);
        (void)ray_get_job(s->p.ray, a->ray_id, stopper_on_asked, l);
        return;
    }
    if (!stop->written) {
        char text[JOB_REASON_TEXT_MAX];
        const struct reason *why = job_state_reason(j);
        message_to_string(why->code, why->text, false, text, sizeof(text));
        write_file(s, j->id, a->k, text, l);
    }
    (void)ray_stop_job(s->p.ray, a->ray_id, stopper_on_stopped, NULL);
}

void stopper_stray(struct stopper *s, const char *job, int k, const char *ray_id)
{
    write_file(s, job, k, "this attempt was given up", NULL);
    (void)ray_stop_job(s->p.ray, ray_id, stopper_on_stopped, NULL);
}

static void on_deleted(enum ray_delete_outcome outcome, const struct err *err, void *arg)
{
    (void)arg;
    if (outcome == RAY_DELETE_UNKNOWN || outcome == RAY_DELETE_TOO_EARLY)
        log_debug("stop", "Ray did not delete the record: %s", err->text);
}

void stopper_clear(struct stopper *s, const char *job, int k, const struct ray_job *rj)
{
    if (!ray_job_status_is_terminal(rj->status)) {
        if (rj->status == RAY_JOB_RUNNING) {
            log_warn("stop",
                     "attempt '%s' still runs in Ray though its job is over: stopping it "
                     "job=%s",
                     rj->submission_id, job);
            stopper_stray(s, job, k, rj->submission_id);
        }
        return;
    }
    if (rj->end && clock_wall() < rj->end + DELETE_AFTER)
        return;
    (void)ray_delete_job(s->p.ray, rj->submission_id, on_deleted, NULL);
}

void stopper_clear_trial(struct stopper *s, const struct ray_job *rj)
{
    if (!ray_job_status_is_terminal(rj->status))
        (void)ray_stop_job(s->p.ray, rj->submission_id, stopper_on_stopped, NULL);
    else if (!rj->end || clock_wall() >= rj->end + DELETE_AFTER)
        (void)ray_delete_job(s->p.ray, rj->submission_id, on_deleted, NULL);
}

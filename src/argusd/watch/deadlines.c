/* SPDX-License-Identifier: Apache-2.0 */
/* deadlines.c - what is late by its job's spans; see deadlines.h. */
#include "argusd/watch/deadlines.h"

#include "argusd/watch/sender.h"
#include "argusd/watch/sight.h"
#include "base/message.h"

static const usec_t ORPHAN_AFTER = 60 * USEC_SEC; /* without a supervisor */

static void deadlines_apply(struct live *l,
                            enum job_event_kind kind,
                            const char *code,
                            const char *message,
                            const char *text)
{
    struct job_event e = {.kind = kind, .code = code, .message = message, .text = text};
    (void)jobs_apply(l, &e, "argusd", clock_wall()); /* too late is harmless */
}

/* What is kept for a job: for one attempt. */
struct late {
    int k;
    bool supervisor_asked, overdue_told;
    usec_t asked_at, asked_beat; /* monotonic; of the supervisor, and which beat stood still then */
};

static struct late *late_of(struct live *l)
{
    struct late *late = live_keep(l, LIVE_DEADLINES, sizeof(*late));
    if (late->k != l->job->n_attempts)
        *late = (struct late){.k = l->job->n_attempts};
    return late;
}

/* Ray has it, and nothing of it was seen: it says so itself, or its runner never came to start the
 * shepherd. */
static bool is_waiting_in_ray(const struct live *l)
{
    const struct sight *s = sight_of(l);
    return s->ray == WITNESS_RAY_PENDING ||
           (s->ray == WITNESS_RAY_RUNNING && s->files == WITNESS_FILES_NONE && s->files_since);
}

/* Ray says that it runs, and its beat stands still: Ray may have missed that both are dead. */
static bool stands_still(const struct live *l, usec_t now)
{
    const struct sight *s = sight_of(l);
    return (l->job->state == JOB_RUNNING || l->job->state == JOB_STOPPING) &&
           s->ray == WITNESS_RAY_RUNNING && s->files == WITNESS_FILES_BEAT && s->beat_at &&
           now - s->beat_at > ORPHAN_AFTER;
}

static void on_supervisor(enum ray_found found,
                          const struct ray_actor *actor,
                          const struct err *err,
                          void *arg)
{
    struct live *l = arg;
    (void)actor;
    (void)err;
    late_of(l)->supervisor_asked = false;
    if (found == RAY_NOT_FOUND && job_is_in_ray(l->job) && l->job->state == JOB_STARTING &&
        is_waiting_in_ray(l))
        deadlines_apply(l, JOB_EV_REQUEUED, "orphan", NULL, "{}");
    else if (found == RAY_NOT_FOUND && stands_still(l, clock_mono()) &&
             late_of(l)->asked_beat == sight_of(l)->beat_at)
        sight_change(l)->is_unwatched = true; /* the watcher judges */
    jobs_idle(l);
}

static void ask_for_supervisor(const struct deadlines *d, struct live *l, usec_t now)
{
    struct late *late = late_of(l);
    late->supervisor_asked = true;
    late->asked_at = now;
    late->asked_beat = sight_of(l)->beat_at;
    jobs_busy(l);
    (void)ray_find_supervisor(d->ray, job_attempt(l->job)->ray_id, on_supervisor, l);
}

static void check_watched(const struct deadlines *d, struct live *l, usec_t now)
{
    if (!stands_still(l, now) || sight_of(l)->is_unwatched)
        return;
    const struct late *late = late_of(l);
    if (!late->supervisor_asked && (!late->asked_at || now - late->asked_at > ORPHAN_AFTER))
        ask_for_supervisor(d, l, now);
}

/* What was accepted has to start, and what was leased to be accepted, unless nobody can tell. */
static void check_start(const struct deadlines *d, struct live *l, usec_t now)
{
    const struct attempt *a = job_attempt(l->job);
    bool sent = a->phase != ATTEMPT_PLANNED;
    if (l->job->state != JOB_STARTING || (sent && !is_waiting_in_ray(l)))
        return;
    if (jobs_in_state(l) > d->settings->start_deadline) {
        char span[CLOCK_TEXT_MAX], text[JOB_REASON_TEXT_MAX];
        (void)span_to_string(d->settings->start_deadline, span);
        const struct reason *why = job_state_reason(l->job);
        message_write(text, sizeof(text),
                      sent ? MESSAGE_ARGS(MESSAGE_STR("span", span))
                           : MESSAGE_ARGS(MESSAGE_STR("span", span),
                                          MESSAGE_OF("why", why->code, why->text)));
        if (sent ||
            (!sender_is_sending(l) && !sender_may_have_sent(l) && cluster_is_up(d->cluster)))
            deadlines_apply(l, JOB_EV_REQUEUED, "start_deadline", NULL, text);
        else if (sender_may_have_sent(l))
            deadlines_apply(l, JOB_EV_BLIND, "unknown", "job_in_doubt", "{}");
    } else if (sent && now - sight_of(l)->ray_since > ORPHAN_AFTER &&
               !late_of(l)->supervisor_asked) {
        ask_for_supervisor(d, l, now);
    }
}

/* Nothing was sent, and nothing can be: others may have its place until that changes. */
static void check_sendable(const struct deadlines *d, struct live *l)
{
    const char *code, *text;
    const struct attempt *a = job_attempt(l->job);
    cluster_why_not(d->cluster, &code, &text);
    struct job_event e = {.kind = JOB_EV_REQUEUED, .code = code, .text = text, .no_fault = true};
    if (*code && l->job->state == JOB_STARTING && a->phase == ATTEMPT_PLANNED &&
        !sender_is_sending(l) && !sender_may_have_sent(l) && !l->act_queued)
        (void)jobs_apply(l, &e, "argusd", clock_wall());
}

static void tell_overdue(struct live *l)
{
    const struct sight *s = sight_of(l);
    char span[CLOCK_TEXT_MAX], text[240];
    const char *why = s->ray == WITNESS_RAY_BLIND       ? "overdue_ray"
                      : s->files == WITNESS_FILES_BLIND ? "overdue_root"
                      : s->files == WITNESS_FILES_BEAT  ? "overdue_beats"
                                                        : "overdue_runs";
    message_write(text, sizeof(text),
                  MESSAGE_ARGS(MESSAGE_STR("span", span_to_string(job_limit(l->job, 0), span)),
                               MESSAGE_OF("why", why, "{}")));
    late_of(l)->overdue_told = true;
    jobs_note(l, "stop_overdue", "stop_overdue", text, clock_wall());
}

static void check_deadline(struct live *l, usec_t wall)
{
    const struct job *j = l->job;
    usec_t limit = j->state == JOB_STARTING ? 0 : job_limit(j, 0);
    if (!limit || late_of(l)->overdue_told || jobs_in_state(l) < limit)
        return;
    if (j->state == JOB_STOPPING) {
        tell_overdue(l);
        return;
    }
    char span[CLOCK_TEXT_MAX], text[200];
    message_write(text, sizeof(text),
                  MESSAGE_ARGS(MESSAGE_STR("span", span_to_string(limit, span))));
    if (job_is_holding(j)) {
        deadlines_apply(l, JOB_EV_RELEASED, "hold_on_failure", NULL, text);
        return;
    }
    bool queued = j->state == JOB_QUEUED;
    struct job_event e = {.kind = JOB_EV_STOP,
                          .cause = STOP_TIMEOUT,
                          .code = queued ? "queue_timeout" : "timeout",
                          .message = queued ? NULL : "job_timeout",
                          .text = text};
    (void)jobs_apply(l, &e, "argusd", wall);
}

void deadlines_check(const struct deadlines *d, struct live *l, usec_t now, usec_t wall)
{
    check_deadline(l, wall);
    if (!l->over && l->job->state == JOB_STARTING)
        check_start(d, l, now);
    if (!l->over && l->job->state == JOB_STARTING)
        check_sendable(d, l);
    if (!l->over)
        check_watched(d, l, now);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* job_event.c - the state machine of a job; see job_event.h.
 *
 * One table says which (state, event) pairs mean anything; the function beside a
 * pair changes the fields. Everything else is an event that came too late or
 * twice, and changes nothing: that is what makes replays and retries harmless. */
#include "core/job/job_event.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

static const char *const event_words[] = {
    "admitted", "accepted", "started",  "ended",   "stop", "requeued", "blind", "seen", "held",
    "released", "tried",    "rejected", "untried", "hung", "went_on",  "idle",  "busy"};
static_assert(array_len(event_words) == JOB_EV_END, "one word per event");

const char *job_event_to_string(enum job_event_kind e)
{
    return event_words[e];
}

static void job_event_say(struct job *j,
                          const char *code,
                          const char *message,
                          const struct message_arg *args)
{
    char text[JOB_REASON_TEXT_MAX];
    message_write(text, sizeof(text), args);
    job_set_reason(j, code, message, text);
}

/* now: wall. */
typedef void (*change_f)(struct job *j, const struct job_event *e, usec_t now);

/* The attempts of a job are all in memory, and a job may have many: a lease of very many nodes is
 * not kept with each of them. NULL: then, or nothing is leased. */
static char *job_event_slots(const struct gang *gang)
{
    enum { SLOTS_MAX = 16 << 10 };
    struct buf out = BUF_INIT(SLOTS_MAX);
    if (gang && gang->n)
        gang_to_text(gang, &out);
    char *text = out.len && !out.failed ? buf_take(&out) : NULL;
    buf_release(&out);
    return text;
}

static void admit(struct job *j, const struct job_event *e, usec_t now)
{
    int k = j->n_attempts + 1;
    if ((j->flags & JOB_FLAG_HELD) || j->trial == JOB_TRIAL_DUE)
        return;
    j->attempts = xrealloc(j->attempts, (size_t)k, sizeof(*j->attempts));
    j->attempts[k - 1] = (struct attempt){.k = k,
                                          .ray_id = job_ray_id(j->id, k),
                                          .phase = ATTEMPT_PLANNED,
                                          .planned_at = now,
                                          .slots = job_event_slots(e->gang)};
    j->n_attempts = k;
    gang_release(&j->gang);
    gang_copy(&j->gang, e->gang);
    j->restart.pause = j->ran = 0;
    j->state = JOB_STARTING;
    job_set_proof(j, NULL);
    job_set_reason(j, "submitting", NULL, "{}");
}

static void accept(struct job *j, const struct job_event *e, usec_t now)
{
    struct attempt *a = job_attempt(j);
    if (a->phase != ATTEMPT_PLANNED)
        return;
    set_str(&a->session, e->session && *e->session ? e->session : NULL);
    a->phase = ATTEMPT_ACCEPTED;
    a->accepted_at = now;
    if (j->state == JOB_STARTING)
        job_event_say(j, "starting", "job_starting", MESSAGE_NO_ARGS);
}

static void job_event_start(struct job *j, const struct job_event *e, usec_t now)
{
    (void)e;
    struct attempt *a = job_attempt(j);
    if (a->phase >= ATTEMPT_RUNNING)
        return;
    a->phase = ATTEMPT_RUNNING;
    a->started_at = now;
    if (!a->accepted_at)
        a->accepted_at = now;
    j->started_at = now;
    j->restart.given_up = 0;
    j->flags &= ~(unsigned)JOB_FLAG_RESTARTING;
    if (j->state == JOB_STARTING) {
        j->state = JOB_RUNNING;
        job_set_reason(j, NULL, NULL, NULL);
    }
}

/* Why the attempt failed: that for which it was stopped is stronger than how it ended. */
static enum finding_class finding_of(const struct job *j, const struct job_end *end)
{
    return j->finding != FINDING_NONE ? j->finding : end->finding;
}

/* The word of a class as the code of a reason; instead where there is none. */
static const char *finding_code(enum finding_class c, const char *instead)
{
    return c == FINDING_NONE ? instead : finding_class_to_string(c);
}

/* QUEUED: another attempt follows. */
static enum job_state verdict(const struct job *j, const struct job_end *end)
{
    /* Work that finished by itself before the stop reached it is finished. */
    bool clean = end->code == 0 && !strcmp(end->cause, "exit");
    if (clean && j->stop_cause != STOP_FINDING)
        return JOB_SUCCEEDED;
    bool by_code = j->stop_cause == STOP_NONE && !strcmp(end->cause, "exit") &&
                   restart_is_due_by_code(&j->restart, end->code);
    switch (j->stop_cause) {
    case STOP_USER:
        return JOB_STOPPED;
    case STOP_TIMEOUT:
        return JOB_TIMEOUT;
    case STOP_PREEMPTED:
        return JOB_QUEUED;
    default:
        return by_code || restart_is_due(&j->restart, finding_of(j, end), end->head_lost)
                   ? JOB_QUEUED
                   : JOB_FAILED;
    }
}

static void job_event_finish(struct job *j, enum job_state state, usec_t now)
{
    j->state = state;
    j->ended_at = now;
    j->flags = 0;
    j->unknown_since = 0;
    set_str(&j->held_by, NULL);
}

/* Back to the queue, without a trace of the attempt but itself. */
static void job_event_go_back(struct job *j)
{
    j->state = JOB_QUEUED;
    j->flags &= ~(unsigned)(JOB_FLAG_UNKNOWN | JOB_FLAG_HUNG | JOB_FLAG_IDLE);
    j->unknown_since = j->started_at = j->stop_asked_at = 0;
    j->stop_cause = STOP_NONE;
    gang_release(&j->gang);
    j->finding = FINDING_NONE;
    job_set_proof(j, NULL);
}

/* The node that may be at fault; NULL: none. */
static const char *blamed_node(const struct job *j, const struct job_end *end)
{
    enum finding_class finding = finding_of(j, end);
    const char *seen = job_proof(j)->node, *node = *seen ? seen : gang_driver(&j->gang);
    return finding_class_is(finding, FINDING_NAMES_NODE)    ? end->node
           : finding_class_is(finding, FINDING_BLAMES_NODE) ? str_or(end->node, node)
                                                            : NULL;
}

/* A hang was noticed before, and keeps its times; so does what was stopped for a finding. */
static void note_failure(const struct job *j,
                         struct attempt *a,
                         const struct job_end *end,
                         usec_t now)
{
    bool stopped = j->stop_cause == STOP_FINDING && j->stop_asked_at;
    a->finding = finding_of(j, end);
    set_str(&a->node, blamed_node(j, end));
    if (a->noticed_at)
        return;
    a->noticed_at = stopped ? j->stop_asked_at : end->noticed_at ? end->noticed_at : now;
    a->fault_at = stopped ? 0 : end->fault_at;
}

/* state: what the job is now, QUEUED where another attempt follows. */
static void note_outcome(const struct job *j,
                         struct attempt *a,
                         const struct job_end *end,
                         enum job_state state,
                         usec_t now)
{
    bool failed = state == JOB_FAILED || (state == JOB_QUEUED && j->stop_cause != STOP_PREEMPTED);
    a->outcome = failed ? ATTEMPT_FAILED : state == JOB_QUEUED ? ATTEMPT_PREEMPTED : ATTEMPT_DONE;
    if (failed)
        note_failure(j, a, end, now);
    else
        a->fault_at = a->noticed_at = 0;
}

static void restart(struct job *j, const struct job_end *end)
{
    struct restart *r = &j->restart;
    if (j->stop_cause == STOP_PREEMPTED) {
        r->preemptions++; /* the reason stays that of the stop */
    } else {
        enum finding_class finding = finding_of(j, end);
        restart_note_failure(r, blamed_node(j, end));
        job_event_say(j, finding_code(finding, NULL), "job_restarts",
                      MESSAGE_ARGS(MESSAGE_NUM("restart", r->failures), MESSAGE_NUM("most", r->max),
                                   MESSAGE_OF("why", end->message, end->text)));
    }
    job_event_go_back(j);
    j->flags |= JOB_FLAG_RESTARTING;
}

/* ---- a failure that somebody wants to look at ---- */

/* Over but for its slots. */
static void keep_slots(struct job *j, const struct job_end *end)
{
    char span[CLOCK_TEXT_MAX];
    job_event_say(j, finding_code(j->finding, end->cause), "job_holding",
                  MESSAGE_ARGS(MESSAGE_STR("span", span_to_string(j->limits.hold_on_failure, span)),
                               MESSAGE_STR("id", j->id),
                               MESSAGE_OF("why", end->message, end->text)));
    j->flags = JOB_FLAG_HOLDING;
    j->unknown_since = 0;
}

static void give_slots_back(struct job *j, usec_t now)
{
    const char *how = str_or(job_attempt(j)->end_text, "");
    char code[JOB_REASON_CODE_MAX];
    text_copy(code, job_state_reason(j)->code);
    job_set_reason(j, code, message_kept_code(how), message_kept_text(how));
    job_event_finish(j, JOB_FAILED, now);
}

/* Kept with the attempt: "code{…}", or a sentence. */
static void note_end(struct attempt *a, const char *message, const char *text, usec_t now)
{
    free(a->end_text);
    a->end_text = message ? xasprintf("%s%s", message, str_or(text, "{}")) : xstrdup(text);
    a->ended_at = now;
}

static void job_event_end(struct job *j, const struct job_event *e, usec_t now)
{
    if (job_is_holding(j))
        return;
    struct attempt *a = job_attempt(j);
    const struct job_end *end = e->end;
    a->phase = ATTEMPT_ENDED;
    note_end(a, end->message, end->text, now);
    enum job_state state = verdict(j, end);
    note_outcome(j, a, end, state, now);
    if (state == JOB_QUEUED) {
        restart(j, end);
        return;
    }
    j->has_exit = true;
    text_copy(j->exit_cause, end->cause);
    text_copy(j->exit_signal, end->signal);
    j->exit_code = end->code;
    if (state == JOB_FAILED)
        j->finding = finding_of(j, end);
    /* A stop keeps the reason it was asked with; it says more than the signal. */
    if (state == JOB_SUCCEEDED && end->is_doubtful)
        job_set_reason(j, "last_error", end->message, end->text);
    else if (state == JOB_SUCCEEDED)
        job_set_reason(j, NULL, NULL, NULL);
    else if (j->stop_cause == STOP_NONE)
        job_set_reason(j, finding_code(j->finding, end->cause), end->message, end->text);
    bool wants_a_look = j->limits.hold_on_failure && j->stop_cause == STOP_NONE;
    if (state == JOB_FAILED && wants_a_look && j->state == JOB_RUNNING)
        keep_slots(j, end);
    else
        job_event_finish(j, state, now);
}

static void note_stop(struct job *j, const struct job_event *e, usec_t now)
{
    static const char *const codes[] = {"", "stopped_by_user", "timeout", "finding", "preempted"};
    j->stop_cause = e->cause;
    j->stop_asked_at = now;
    job_set_reason(j, str_or(e->code, finding_code(e->finding, codes[e->cause])), e->message,
                   e->text);
    if (e->cause == STOP_FINDING)
        j->finding = e->finding == FINDING_NONE ? FINDING_PLATFORM : e->finding;
}

static void stop_queued(struct job *j, const struct job_event *e, usec_t now)
{
    if (e->cause == STOP_PREEMPTED)
        return; /* it holds nothing */
    note_stop(j, e, now);
    job_event_finish(j, e->cause == STOP_TIMEOUT ? JOB_TIMEOUT : JOB_STOPPED, now);
}

static void stop_live(struct job *j, const struct job_event *e, usec_t now)
{
    if (job_is_holding(j)) { /* nothing runs: it ends as what it is */
        give_slots_back(j, now);
        return;
    }
    note_stop(j, e, now);
    j->state = JOB_STOPPING;
}

/* Whoever wants it to end for good is stronger than who wants its slots back. */
static void stop_again(struct job *j, const struct job_event *e, usec_t now)
{
    usec_t asked = j->stop_asked_at;
    if (j->stop_cause != STOP_PREEMPTED || e->cause == STOP_PREEMPTED)
        return;
    note_stop(j, e, now);
    j->stop_asked_at = asked;
}

/* The code of its text; NULL: it is a sentence. */
static const char *event_message(const struct job_event *e)
{
    return !e->text || *e->text != '{' ? NULL : e->message ? e->message : e->code;
}

static void job_event_give_up(struct job *j, const struct job_event *e, usec_t now)
{
    struct attempt *a = job_attempt(j);
    a->phase = ATTEMPT_ABANDONED;
    note_end(a, event_message(e), e->text, now);
    gang_release(&j->gang);
}

static void requeue(struct job *j, const struct job_event *e, usec_t now)
{
    job_event_give_up(j, e, now);
    if (!e->no_fault && ++j->restart.given_up >= JOB_GIVE_UPS_MAX) {
        j->finding = FINDING_INFRA;
        job_event_say(j, finding_class_to_string(j->finding), "job_given_up",
                      MESSAGE_ARGS(MESSAGE_NUM("times", JOB_GIVE_UPS_MAX),
                                   MESSAGE_OF("why", event_message(e), str_or(e->text, ""))));
        job_event_finish(j, JOB_FAILED, now);
        return;
    }
    job_event_go_back(j);
    job_set_reason(j, str_or(e->code, "requeued"), e->message, e->text);
}

/* It was to be stopped and never ran: there is nothing left to stop. */
static void give_up_stopping(struct job *j, const struct job_event *e, usec_t now)
{
    job_event_give_up(j, e, now);
    if (j->stop_cause == STOP_PREEMPTED) {
        job_event_go_back(j);
        return;
    }
    enum job_state state = j->stop_cause == STOP_TIMEOUT   ? JOB_TIMEOUT
                           : j->stop_cause == STOP_FINDING ? JOB_FAILED
                                                           : JOB_STOPPED;
    job_event_finish(j, state, now);
}

static void job_event_hold(struct job *j, const struct job_event *e, usec_t now)
{
    (void)now;
    if (j->flags & JOB_FLAG_HELD)
        return;
    j->flags |= JOB_FLAG_HELD;
    set_str(&j->held_by, str_or(e->by, ""));
}

static void job_event_release(struct job *j, const struct job_event *e, usec_t now)
{
    (void)e;
    (void)now;
    j->flags &= ~(unsigned)JOB_FLAG_HELD;
    set_str(&j->held_by, NULL);
}

static void release_slots(struct job *j, const struct job_event *e, usec_t now)
{
    (void)e;
    if (job_is_holding(j))
        give_slots_back(j, now);
}

static void pass_trial(struct job *j, const struct job_event *e, usec_t now)
{
    (void)e;
    (void)now;
    if (j->trial == JOB_TRIAL_DUE)
        j->trial = JOB_TRIAL_PASSED;
}

/* It has held no GPU. */
static void fail_trial(struct job *j, const struct job_event *e, usec_t now)
{
    if (j->trial != JOB_TRIAL_DUE)
        return;
    j->finding = e->finding == FINDING_NONE ? FINDING_CONFIG_ERROR : e->finding;
    job_set_reason(j, finding_class_to_string(j->finding), e->message, e->text);
    job_event_finish(j, JOB_FAILED, now);
}

static void lose_trial(struct job *j, const struct job_event *e, usec_t now)
{
    (void)e;
    (void)now;
    if (j->trial == JOB_TRIAL_DUE && ++j->trial_tries >= JOB_TRIAL_TRIES)
        j->trial = JOB_TRIAL_PASSED;
}

static void go_blind(struct job *j, const struct job_event *e, usec_t now)
{
    (void)e;
    if (j->flags & (JOB_FLAG_UNKNOWN | JOB_FLAG_HOLDING))
        return;
    j->flags |= JOB_FLAG_UNKNOWN;
    j->unknown_since = now;
}

static void see(struct job *j, const struct job_event *e, usec_t now)
{
    (void)e;
    (void)now;
    j->flags &= ~(unsigned)JOB_FLAG_UNKNOWN;
    j->unknown_since = 0;
}

static void hang(struct job *j, const struct job_event *e, usec_t now)
{
    if (j->flags & (JOB_FLAG_HUNG | JOB_FLAG_HOLDING))
        return;
    j->flags |= JOB_FLAG_HUNG;
    job_attempt(j)->fault_at = e->since;
    job_attempt(j)->noticed_at = now;
    job_set_reason(j, finding_class_to_string(FINDING_TIMEOUT_OR_HANG), e->message, e->text);
}

static void job_event_go_on(struct job *j, const struct job_event *e, usec_t now)
{
    (void)e;
    (void)now;
    if (!(j->flags & JOB_FLAG_HUNG))
        return;
    j->flags &= ~(unsigned)JOB_FLAG_HUNG;
    job_attempt(j)->fault_at = job_attempt(j)->noticed_at = 0;
    job_set_reason(j, NULL, NULL, NULL);
}

/* What is worse, a hang, keeps the reason. */
static void job_event_idle(struct job *j, const struct job_event *e, usec_t now)
{
    (void)now;
    if (j->flags & (JOB_FLAG_IDLE | JOB_FLAG_HOLDING))
        return;
    j->flags |= JOB_FLAG_IDLE;
    if (!(j->flags & JOB_FLAG_HUNG))
        job_set_reason(j, e->code, NULL, e->text);
}

static void job_event_busy(struct job *j, const struct job_event *e, usec_t now)
{
    (void)e;
    (void)now;
    if (!(j->flags & JOB_FLAG_IDLE))
        return;
    j->flags &= ~(unsigned)JOB_FLAG_IDLE;
    if (!(j->flags & JOB_FLAG_HUNG))
        job_set_reason(j, NULL, NULL, NULL);
}

/* NULL: the event means nothing there. */
static const change_f table[JOB_STATE_END][JOB_EV_END] = {
    [JOB_QUEUED] = {[JOB_EV_ADMITTED] = admit,
                    [JOB_EV_STOP] = stop_queued,
                    [JOB_EV_HELD] = job_event_hold,
                    [JOB_EV_RELEASED] = job_event_release,
                    [JOB_EV_TRIED] = pass_trial,
                    [JOB_EV_REJECTED] = fail_trial,
                    [JOB_EV_UNTRIED] = lose_trial},
    [JOB_STARTING] = {[JOB_EV_ACCEPTED] = accept,
                      [JOB_EV_STARTED] = job_event_start,
                      [JOB_EV_ENDED] = job_event_end,
                      [JOB_EV_STOP] = stop_live,
                      [JOB_EV_REQUEUED] = requeue,
                      [JOB_EV_BLIND] = go_blind,
                      [JOB_EV_SEEN] = see},
    [JOB_RUNNING] = {[JOB_EV_ENDED] = job_event_end,
                     [JOB_EV_STOP] = stop_live,
                     [JOB_EV_RELEASED] = release_slots,
                     [JOB_EV_BLIND] = go_blind,
                     [JOB_EV_SEEN] = see,
                     [JOB_EV_HUNG] = hang,
                     [JOB_EV_WENT_ON] = job_event_go_on,
                     [JOB_EV_IDLE] = job_event_idle,
                     [JOB_EV_BUSY] = job_event_busy},
    [JOB_STOPPING] = {[JOB_EV_ACCEPTED] = accept,
                      [JOB_EV_STARTED] = job_event_start,
                      [JOB_EV_ENDED] = job_event_end,
                      [JOB_EV_STOP] = stop_again,
                      [JOB_EV_REQUEUED] = give_up_stopping,
                      [JOB_EV_BLIND] = go_blind,
                      [JOB_EV_SEEN] = see},
};

/* What a change can touch and an observer can see. */
struct seen {
    enum job_state state;
    unsigned flags;
    int n;
    enum attempt_phase phase;
    enum stop_cause cause;
    enum job_trial trial;
    int tries;
};

static struct seen job_event_look(const struct job *j)
{
    const struct attempt *a = job_attempt(j);
    return (struct seen){.state = j->state,
                         .flags = j->flags,
                         .n = j->n_attempts,
                         .phase = a ? a->phase : ATTEMPT_PLANNED,
                         .cause = j->stop_cause,
                         .trial = j->trial,
                         .tries = j->trial_tries};
}

static bool is_same(const struct seen *a, const struct seen *b)
{
    return a->state == b->state && a->flags == b->flags && a->n == b->n && a->phase == b->phase &&
           a->cause == b->cause && a->trial == b->trial && a->tries == b->tries;
}

static void keep_time(struct job *j, const struct seen *old, const struct moment *now)
{
    bool ran = old->phase == ATTEMPT_RUNNING;
    bool held_up = job_is_holding(j); /* it runs no more, in the same state */
    if ((j->state != old->state || held_up) && ran &&
        (old->state == JOB_RUNNING || old->state == JOB_STOPPING))
        j->ran += stopwatch_read(&j->watch, now);
    const struct attempt *a = job_attempt(j);
    bool accepted = j->state == JOB_STARTING && a->phase != old->phase;
    if (j->state != old->state || accepted || held_up)
        stopwatch_start(&j->watch, now);
    else if (j->flags & JOB_FLAG_HELD)
        stopwatch_pause(&j->watch, now);
    else
        stopwatch_resume(&j->watch, now);
}

bool job_apply(struct job *j, const struct job_event *e, const struct moment *now)
{
    change_f change = table[j->state][e->kind];
    if (!change)
        return false;
    const struct seen old = job_event_look(j);
    change(j, e, now->wall);
    const struct seen new = job_event_look(j);
    if (is_same(&old, &new))
        return false;
    keep_time(j, &old, now);
    return true;
}

/* The job's own reason says why it is sent back, and how far it is on its way to a start. */
static bool reason_says_more(const struct job *j,
                             const struct job_event *e,
                             const struct reason *now)
{
    if (e->kind == JOB_EV_ENDED && j->state == JOB_QUEUED)
        return true;
    bool has_words = (e->text && *e->text) || (e->end && (*e->end->text || e->end->message));
    return j->state == JOB_STARTING && *now->text && !has_words;
}

void job_event_cause(const struct job *j, const struct job_event *e, struct reason *ret)
{
    const struct job_end *end = e->end;
    const struct reason *now = job_state_reason(j);
    const char *code = e->code ? e->code : now->code;
    char own[JOB_REASON_CODE_MAX];
    text_printf(own, "job_%s", job_event_to_string(e->kind));
    if (reason_says_more(j, e, now))
        *ret = *now;
    else if (e->text && *e->text)
        reason_set(ret, code, e->message, e->text);
    else if (end && end->message && !*code)
        reason_set(ret, end->message, NULL, end->text);
    else if (end && *end->text)
        reason_set(ret, code, end->message, end->text);
    else if (*code)
        reason_set(ret, code, own, "{}");
    else
        reason_set(ret, own, NULL, "{}");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* job_event.c - the state machine of a job; see job_event.h.
 *
 * One table says which (state, event) pairs mean anything; the function beside a
 * pair changes the fields. Everything else is an event that came too late or
 * twice, and changes nothing: that is what makes replays and retries harmless. */
#include "core/job_event.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

static const char *const event_words[] = {"admitted", "accepted", "started", "ended", "stop",
                                          "requeued", "blind",    "seen",    "held",  "released",
                                          "tried",    "rejected", "untried", "hung",  "went_on"};
_Static_assert(array_len(event_words) == JOB_EV_END, "one word per event");

const char *job_event_to_string(enum job_event_kind e)
{
    return event_words[e];
}

static void set_reason(struct job *j, const char *code, const char *text)
{
    (void)snprintf(j->reason.code, sizeof(j->reason.code), "%s", str_or(code, "")); /* cut: fine */
    (void)snprintf(j->reason.text, sizeof(j->reason.text), "%s", str_or(text, ""));
}

/* now: wall. */
typedef void (*change_f)(struct job *j, const struct job_event *e, usec_t now);

static void admit(struct job *j, const struct job_event *e, usec_t now)
{
    int k = j->n_attempts + 1;
    if ((j->flags & JOB_FLAG_HELD) || j->trial == JOB_TRIAL_DUE)
        return;
    j->attempts = xrealloc(j->attempts, (size_t)k, sizeof(*j->attempts));
    j->attempts[k - 1] = (struct attempt){
        .k = k, .ray_id = job_ray_id(j->id, k), .phase = ATTEMPT_PLANNED, .planned_at = now};
    j->n_attempts = k;
    set_str(&j->nodes, e->nodes);
    set_str(&j->driver_node, e->driver_node);
    set_str(&j->slots, e->slots);
    j->restart.pause = j->ran = 0;
    j->state = JOB_STARTING;
    j->proof = (struct proof){.on_worker = -1};
    set_reason(j, "submitting", "its gang is leased; it goes to Ray now");
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
        set_reason(j, "starting", "Ray has accepted it; its driver has not shown up yet");
}

static void start(struct job *j, const struct job_event *e, usec_t now)
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
        set_reason(j, NULL, NULL);
    }
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
        return by_code ||
                       restart_is_due(&j->restart, str_or(j->finding, end->finding), end->head_lost)
                   ? JOB_QUEUED
                   : JOB_FAILED;
    }
}

static void finish(struct job *j, enum job_state state, usec_t now)
{
    j->state = state;
    j->ended_at = now;
    j->flags = 0;
    j->unknown_since = 0;
    set_str(&j->held_by, NULL);
}

static void forget_lease(struct job *j)
{
    set_str(&j->nodes, NULL);
    set_str(&j->driver_node, NULL);
    set_str(&j->slots, NULL);
}

/* Back to the queue, without a trace of the attempt but itself. */
static void go_back(struct job *j)
{
    j->state = JOB_QUEUED;
    j->flags &= ~(unsigned)(JOB_FLAG_UNKNOWN | JOB_FLAG_HUNG);
    j->unknown_since = j->started_at = j->stop_asked_at = 0;
    j->stop_cause = STOP_NONE;
    forget_lease(j);
    set_str(&j->finding, NULL);
    j->proof = (struct proof){.on_worker = -1};
}

static void restart(struct job *j, const struct job_end *end)
{
    struct restart *r = &j->restart;
    if (j->stop_cause == STOP_PREEMPTED) {
        r->preemptions++; /* the reason stays that of the stop */
    } else {
        const char *finding = str_or(j->finding, end->finding);
        char text[JOB_REASON_TEXT_MAX];
        const char *node = *j->proof.node ? j->proof.node : j->driver_node;
        bool names_its_node = str_eq(finding, "timeout_or_hang");
        restart_note_failure(r, names_its_node                 ? end->node
                                : restart_blames_node(finding) ? str_or(end->node, node)
                                                               : NULL);
        (void)snprintf(text, sizeof(text), "restart %d of %d: %s", r->failures, r->max,
                       end->text); /* cut: fine */
        set_reason(j, finding, text);
    }
    go_back(j);
    j->flags |= JOB_FLAG_RESTARTING;
}

/* ---- a failure that somebody wants to look at ---- */

/* Over but for its slots. */
static void keep_slots(struct job *j, const struct job_end *end)
{
    char span[CLOCK_TEXT_MAX], text[JOB_REASON_TEXT_MAX];
    (void)snprintf(
        text, sizeof(text),
        "it has failed; its slots are kept for %s: `argus release %s` gives them back: %s",
        span_to_string(j->hold_on_failure, span), j->id, end->text); /* cut: fine */
    set_reason(j, str_or(j->finding, end->cause), text);
    j->flags = JOB_FLAG_HOLDING;
    j->unknown_since = 0;
}

static void give_slots_back(struct job *j, usec_t now)
{
    char code[JOB_REASON_CODE_MAX];
    memcpy(code, j->reason.code, sizeof(code));
    set_reason(j, code, job_attempt(j)->end_text);
    finish(j, JOB_FAILED, now);
}

static void end(struct job *j, const struct job_event *e, usec_t now)
{
    if (job_is_holding(j))
        return;
    struct attempt *a = job_attempt(j);
    const struct job_end *end = e->end;
    a->phase = ATTEMPT_ENDED;
    a->ended_at = now;
    set_str(&a->end_text, end->text);
    enum job_state state = verdict(j, end);
    if (state == JOB_QUEUED) {
        restart(j, end);
        return;
    }
    j->has_exit = true;
    (void)snprintf(j->exit_cause, sizeof(j->exit_cause), "%s", end->cause); /* short words */
    (void)snprintf(j->exit_signal, sizeof(j->exit_signal), "%s", end->signal);
    j->exit_code = end->code;
    if (state == JOB_FAILED && end->finding && !j->finding)
        set_str(&j->finding, end->finding);
    /* A stop keeps the reason it was asked with; it says more than the signal. */
    if (j->stop_cause == STOP_NONE || state == JOB_SUCCEEDED)
        set_reason(j, state == JOB_SUCCEEDED ? "" : str_or(j->finding, end->cause),
                   state == JOB_SUCCEEDED ? "" : end->text);
    bool wants_a_look = j->hold_on_failure && j->stop_cause == STOP_NONE;
    if (state == JOB_FAILED && wants_a_look && j->state == JOB_RUNNING)
        keep_slots(j, end);
    else
        finish(j, state, now);
}

static void note_stop(struct job *j, const struct job_event *e, usec_t now)
{
    static const char *const codes[] = {"", "stopped_by_user", "timeout", "finding", "preempted"};
    j->stop_cause = e->cause;
    j->stop_asked_at = now;
    set_reason(j, str_or(e->code, codes[e->cause]), e->text);
    if (e->cause == STOP_FINDING)
        set_str(&j->finding, str_or(e->code, "platform"));
}

static void stop_queued(struct job *j, const struct job_event *e, usec_t now)
{
    if (e->cause == STOP_PREEMPTED)
        return; /* it holds nothing */
    note_stop(j, e, now);
    finish(j, e->cause == STOP_TIMEOUT ? JOB_TIMEOUT : JOB_STOPPED, now);
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

static void give_up(struct job *j, const struct job_event *e, usec_t now)
{
    struct attempt *a = job_attempt(j);
    a->phase = ATTEMPT_ABANDONED;
    a->ended_at = now;
    set_str(&a->end_text, e->text);
    forget_lease(j);
}

static void requeue(struct job *j, const struct job_event *e, usec_t now)
{
    char text[JOB_REASON_TEXT_MAX];
    give_up(j, e, now);
    if (!e->no_fault && ++j->restart.given_up >= JOB_GIVE_UPS_MAX) {
        (void)snprintf(text, sizeof(text), "its start was given up %d times in a row; the last: %s",
                       JOB_GIVE_UPS_MAX, str_or(e->text, "")); /* cut: fine */
        set_str(&j->finding, "infra");
        set_reason(j, "infra", text);
        finish(j, JOB_FAILED, now);
        return;
    }
    go_back(j);
    set_reason(j, str_or(e->code, "requeued"), e->text);
}

/* It was to be stopped and never ran: there is nothing left to stop. */
static void give_up_stopping(struct job *j, const struct job_event *e, usec_t now)
{
    give_up(j, e, now);
    if (j->stop_cause == STOP_PREEMPTED) {
        go_back(j);
        return;
    }
    enum job_state state = j->stop_cause == STOP_TIMEOUT   ? JOB_TIMEOUT
                           : j->stop_cause == STOP_FINDING ? JOB_FAILED
                                                           : JOB_STOPPED;
    finish(j, state, now);
}

static void hold(struct job *j, const struct job_event *e, usec_t now)
{
    (void)now;
    if (j->flags & JOB_FLAG_HELD)
        return;
    j->flags |= JOB_FLAG_HELD;
    set_str(&j->held_by, str_or(e->by, ""));
}

static void release(struct job *j, const struct job_event *e, usec_t now)
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
    set_str(&j->finding, str_or(e->code, "config_error"));
    set_reason(j, j->finding, e->text);
    finish(j, JOB_FAILED, now);
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
    (void)now;
    if (j->flags & (JOB_FLAG_HUNG | JOB_FLAG_HOLDING))
        return;
    j->flags |= JOB_FLAG_HUNG;
    set_reason(j, "timeout_or_hang", e->text);
}

static void go_on(struct job *j, const struct job_event *e, usec_t now)
{
    (void)e;
    (void)now;
    if (!(j->flags & JOB_FLAG_HUNG))
        return;
    j->flags &= ~(unsigned)JOB_FLAG_HUNG;
    set_reason(j, NULL, NULL);
}

/* NULL: the event means nothing there. */
static const change_f table[JOB_STATE_END][JOB_EV_END] = {
    [JOB_QUEUED] = {[JOB_EV_ADMITTED] = admit,
                    [JOB_EV_STOP] = stop_queued,
                    [JOB_EV_HELD] = hold,
                    [JOB_EV_RELEASED] = release,
                    [JOB_EV_TRIED] = pass_trial,
                    [JOB_EV_REJECTED] = fail_trial,
                    [JOB_EV_UNTRIED] = lose_trial},
    [JOB_STARTING] = {[JOB_EV_ACCEPTED] = accept,
                      [JOB_EV_STARTED] = start,
                      [JOB_EV_ENDED] = end,
                      [JOB_EV_STOP] = stop_live,
                      [JOB_EV_REQUEUED] = requeue,
                      [JOB_EV_BLIND] = go_blind,
                      [JOB_EV_SEEN] = see},
    [JOB_RUNNING] = {[JOB_EV_ENDED] = end,
                     [JOB_EV_STOP] = stop_live,
                     [JOB_EV_RELEASED] = release_slots,
                     [JOB_EV_BLIND] = go_blind,
                     [JOB_EV_SEEN] = see,
                     [JOB_EV_HUNG] = hang,
                     [JOB_EV_WENT_ON] = go_on},
    [JOB_STOPPING] = {[JOB_EV_ACCEPTED] = accept,
                      [JOB_EV_STARTED] = start,
                      [JOB_EV_ENDED] = end,
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

static struct seen look(const struct job *j)
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
    const struct seen old = look(j);
    change(j, e, now->wall);
    const struct seen new = look(j);
    if (is_same(&old, &new))
        return false;
    keep_time(j, &old, now);
    return true;
}

const char *job_event_cause(const struct job *j, const struct job_event *e)
{
    static const char *const causes[] = {
        [JOB_EV_ADMITTED] = "its gang is leased",
        [JOB_EV_ACCEPTED] = "Ray has accepted it",
        [JOB_EV_STARTED] = "its shepherd was seen at work",
        [JOB_EV_ENDED] = "its attempt has ended",
        [JOB_EV_STOP] = "it is to be stopped",
        [JOB_EV_REQUEUED] = "its start came to nothing",
        [JOB_EV_BLIND] = "nobody can see it now",
        [JOB_EV_SEEN] = "it can be seen again",
        [JOB_EV_HELD] = "it is held",
        [JOB_EV_RELEASED] = "it is held no longer",
        [JOB_EV_TRIED] = "its trial found nothing",
        [JOB_EV_REJECTED] = "its trial found something",
        [JOB_EV_UNTRIED] = "its trial was lost",
        [JOB_EV_HUNG] = "it gets nowhere",
        [JOB_EV_WENT_ON] = "it goes on",
    };
    _Static_assert(array_len(causes) == JOB_EV_END, "one sentence per event");
    bool goes_back = e->kind == JOB_EV_ENDED && j->state == JOB_QUEUED; /* the reason says more */
    const char *text = goes_back ? j->reason.text
                       : e->text ? e->text
                       : e->end  ? e->end->text
                                 : NULL;
    if ((!text || !*text) && j->state == JOB_STARTING && *j->reason.text)
        text = j->reason.text;
    return text && *text ? text : causes[e->kind];
}

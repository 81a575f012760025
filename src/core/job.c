/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - the state machine of a job; see job.h.
 *
 * One table says which (state, event) pairs mean anything; the function beside a
 * pair changes the fields. Everything else is an event that came too late or
 * twice, and changes nothing: that is what makes replays and retries harmless. */
#include "core/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* ---- words ---- */

static const char *const state_words[] = {
#define X(word) #word,
    JOB_STATE_TABLE(X)
#undef X
};
_Static_assert(array_len(state_words) == JOB_STATE_END, "one word per state");

static const char *const phase_words[] = {
#define X(word) #word,
    ATTEMPT_PHASE_TABLE(X)
#undef X
};

static const char *const event_words[] = {"admitted", "accepted", "started", "ended",
                                          "stop",     "requeued", "blind",   "seen"};
_Static_assert(array_len(event_words) == JOB_EV_END, "one word per event");

static const char *const cause_words[] = {"", "user", "timeout", "finding"};

static int word_index(const char *const *words, size_t n, const char *word)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(words[i], word))
            return (int)i;
    return (int)n;
}

const char *job_state_to_string(enum job_state s)
{
    return state_words[s];
}

enum job_state job_state_from_string(const char *word)
{
    return (enum job_state)word_index(state_words, array_len(state_words), word);
}

bool job_state_is_terminal(enum job_state s)
{
    return s >= JOB_SUCCEEDED;
}

const char *attempt_phase_to_string(enum attempt_phase p)
{
    return phase_words[p];
}

enum attempt_phase attempt_phase_from_string(const char *word)
{
    return (enum attempt_phase)word_index(phase_words, array_len(phase_words), word);
}

const char *job_event_to_string(enum job_event_kind e)
{
    return event_words[e];
}

const char *stop_cause_to_string(enum stop_cause c)
{
    return cause_words[c];
}

enum stop_cause stop_cause_from_string(const char *word)
{
    int i = word_index(cause_words, array_len(cause_words), word);
    return i == (int)array_len(cause_words) ? STOP_NONE : (enum stop_cause)i;
}

/* ---- the thing itself ---- */

struct job *job_new(void)
{
    struct job *j = xcalloc(1, sizeof(*j));
    j->proof.on_worker = -1;
    return j;
}

void job_free(struct job *j)
{
    if (!j)
        return;
    for (int i = 0; i < j->n_attempts; i++) {
        free(j->attempts[i].ray_id);
        free(j->attempts[i].end_text);
    }
    free(j->attempts);
    char *texts[] = {j->id,   j->name, j->user,  j->project,     j->workload, j->cluster,
                     j->pool, j->spec, j->nodes, j->driver_node, j->finding};
    for (size_t i = 0; i < array_len(texts); i++)
        free(texts[i]);
    free(j);
}

void job_freep(struct job **j)
{
    job_free(*j);
    *j = NULL;
}

struct attempt *job_attempt(const struct job *j)
{
    return j->n_attempts ? &j->attempts[j->n_attempts - 1] : NULL;
}

char *job_ray_id(const char *job_id, int k)
{
    return k <= 1 ? xstrdup(job_id) : xasprintf("%s-a%d", job_id, k);
}

bool job_id_is_reserved(const char *id)
{
    if (str_ends(id, "-trial"))
        return true;
    const char *dash = strrchr(id, '-');
    return dash && dash[1] == 'a' && dash[2] && !dash[2 + strspn(dash + 2, "0123456789")];
}

static void set_reason(struct job *j, const char *code, const char *text)
{
    (void)snprintf(j->reason.code, sizeof(j->reason.code), "%s", str_or(code, "")); /* cut: fine */
    (void)snprintf(j->reason.text, sizeof(j->reason.text), "%s", str_or(text, ""));
}

/* ---- events ---- */

typedef void (*change_f)(struct job *j, const struct job_event *e, usec_t now);

static void admit(struct job *j, const struct job_event *e, usec_t now)
{
    int k = j->n_attempts + 1;
    j->attempts = xrealloc(j->attempts, (size_t)k, sizeof(*j->attempts));
    j->attempts[k - 1] = (struct attempt){
        .k = k, .ray_id = job_ray_id(j->id, k), .phase = ATTEMPT_PLANNED, .planned_at = now};
    j->n_attempts = k;
    set_str(&j->nodes, e->nodes);
    set_str(&j->driver_node, e->driver_node);
    j->state = JOB_STARTING;
    j->proof = (struct proof){.on_worker = -1};
    set_reason(j, "submitting", "its gang is leased; it goes to Ray now");
}

static void accept(struct job *j, const struct job_event *e, usec_t now)
{
    (void)e;
    struct attempt *a = job_attempt(j);
    if (a->phase != ATTEMPT_PLANNED)
        return;
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
    if (!j->started_at)
        j->started_at = now;
    if (j->state == JOB_STARTING) {
        j->state = JOB_RUNNING;
        set_reason(j, NULL, NULL);
    }
}

static enum job_state verdict(const struct job *j, const struct job_end *end)
{
    /* Work that finished by itself before the stop reached it is finished. */
    bool clean = end->code == 0 && !strcmp(end->cause, "exit");
    if (clean && j->stop_cause != STOP_FINDING)
        return JOB_SUCCEEDED;
    switch (j->stop_cause) {
    case STOP_USER:
        return JOB_STOPPED;
    case STOP_TIMEOUT:
        return JOB_TIMEOUT;
    default:
        return JOB_FAILED;
    }
}

static void finish(struct job *j, enum job_state state, usec_t now)
{
    j->state = state;
    j->ended_at = now;
    j->flags &= ~(unsigned)(JOB_FLAG_UNKNOWN | JOB_FLAG_RESTARTING);
    j->unknown_since = 0;
}

static void end(struct job *j, const struct job_event *e, usec_t now)
{
    struct attempt *a = job_attempt(j);
    const struct job_end *end = e->end;
    a->phase = ATTEMPT_ENDED;
    a->ended_at = now;
    set_str(&a->end_text, end->text);
    j->has_exit = true;
    (void)snprintf(j->exit_cause, sizeof(j->exit_cause), "%s", end->cause); /* short words */
    (void)snprintf(j->exit_signal, sizeof(j->exit_signal), "%s", end->signal);
    j->exit_code = end->code;
    enum job_state state = verdict(j, end);
    if (state == JOB_FAILED && end->finding && !j->finding)
        set_str(&j->finding, end->finding);
    /* A stop keeps the reason it was asked with; it says more than the signal. */
    if (j->stop_cause == STOP_NONE || state == JOB_SUCCEEDED)
        set_reason(j, state == JOB_SUCCEEDED ? "" : str_or(j->finding, end->cause),
                   state == JOB_SUCCEEDED ? "" : end->text);
    finish(j, state, now);
}

static void note_stop(struct job *j, const struct job_event *e, usec_t now)
{
    static const char *const codes[] = {"", "stopped_by_user", "timeout", "finding"};
    j->stop_cause = e->cause;
    j->stop_asked_at = now;
    set_reason(j, str_or(e->code, codes[e->cause]), e->text);
    if (e->cause == STOP_FINDING)
        set_str(&j->finding, str_or(e->code, "platform"));
}

static void stop_queued(struct job *j, const struct job_event *e, usec_t now)
{
    note_stop(j, e, now);
    finish(j, e->cause == STOP_TIMEOUT ? JOB_TIMEOUT : JOB_STOPPED, now);
}

static void stop_live(struct job *j, const struct job_event *e, usec_t now)
{
    note_stop(j, e, now);
    j->state = JOB_STOPPING;
}

static void give_up(struct job *j, const struct job_event *e, usec_t now)
{
    struct attempt *a = job_attempt(j);
    a->phase = ATTEMPT_ABANDONED;
    a->ended_at = now;
    set_str(&a->end_text, e->text);
    set_str(&j->nodes, NULL);
    set_str(&j->driver_node, NULL);
}

static void requeue(struct job *j, const struct job_event *e, usec_t now)
{
    give_up(j, e, now);
    j->state = JOB_QUEUED;
    j->flags &= ~(unsigned)JOB_FLAG_UNKNOWN;
    j->unknown_since = 0;
    set_reason(j, str_or(e->code, "requeued"), e->text);
}

/* It was to be stopped and never ran: there is nothing left to stop. */
static void give_up_stopping(struct job *j, const struct job_event *e, usec_t now)
{
    give_up(j, e, now);
    enum job_state state = j->stop_cause == STOP_TIMEOUT   ? JOB_TIMEOUT
                           : j->stop_cause == STOP_FINDING ? JOB_FAILED
                                                           : JOB_STOPPED;
    finish(j, state, now);
}

static void go_blind(struct job *j, const struct job_event *e, usec_t now)
{
    (void)e;
    if (j->flags & JOB_FLAG_UNKNOWN)
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

/* NULL: the event means nothing there. */
static const change_f table[JOB_STATE_END][JOB_EV_END] = {
    [JOB_QUEUED] = {[JOB_EV_ADMITTED] = admit, [JOB_EV_STOP] = stop_queued},
    [JOB_STARTING] = {[JOB_EV_ACCEPTED] = accept,
                      [JOB_EV_STARTED] = start,
                      [JOB_EV_ENDED] = end,
                      [JOB_EV_STOP] = stop_live,
                      [JOB_EV_REQUEUED] = requeue,
                      [JOB_EV_BLIND] = go_blind,
                      [JOB_EV_SEEN] = see},
    [JOB_RUNNING] = {[JOB_EV_ENDED] = end,
                     [JOB_EV_STOP] = stop_live,
                     [JOB_EV_BLIND] = go_blind,
                     [JOB_EV_SEEN] = see},
    [JOB_STOPPING] = {[JOB_EV_ACCEPTED] = accept,
                      [JOB_EV_STARTED] = start,
                      [JOB_EV_ENDED] = end,
                      [JOB_EV_REQUEUED] = give_up_stopping,
                      [JOB_EV_BLIND] = go_blind,
                      [JOB_EV_SEEN] = see},
};

/* What a change can touch and an observer can see. */
static bool same(const struct job *j,
                 enum job_state state,
                 unsigned flags,
                 int n,
                 enum attempt_phase phase)
{
    const struct attempt *a = job_attempt(j);
    return j->state == state && j->flags == flags && j->n_attempts == n &&
           (!a || a->phase == phase);
}

bool job_apply(struct job *j, const struct job_event *e, usec_t now)
{
    change_f change = table[j->state][e->kind];
    if (!change)
        return false;
    const struct attempt *a = job_attempt(j);
    enum job_state state = j->state;
    unsigned flags = j->flags;
    int n = j->n_attempts;
    enum attempt_phase phase = a ? a->phase : ATTEMPT_PLANNED;
    change(j, e, now);
    return !same(j, state, flags, n, phase);
}

enum job_act job_act(const struct job *j)
{
    const struct attempt *a = job_attempt(j);
    if (j->state == JOB_STOPPING)
        return JOB_ACT_STOP;
    return j->state == JOB_STARTING && a->phase == ATTEMPT_PLANNED ? JOB_ACT_SEND : JOB_ACT_NONE;
}

usec_t job_deadline(const struct job *j)
{
    if (j->state == JOB_QUEUED && j->queue_timeout && j->queued_at)
        return j->queued_at + j->queue_timeout;
    if (j->state == JOB_RUNNING && j->timeout && j->started_at)
        return j->started_at + j->timeout;
    return 0;
}

static const char *check_live(const struct job *j)
{
    const struct attempt *a = job_attempt(j);
    if (!a)
        return "a live job has an attempt";
    if (a->phase > ATTEMPT_RUNNING)
        return "a live job's attempt has not ended";
    if (j->state == JOB_RUNNING && a->phase != ATTEMPT_RUNNING)
        return "a running job has a running attempt";
    if (!j->nodes)
        return "a live job has a lease";
    return NULL;
}

const char *job_check(const struct job *j)
{
    bool live = j->state == JOB_STARTING || j->state == JOB_RUNNING || j->state == JOB_STOPPING;
    if (!j->id || !j->user || !j->queued_at)
        return "a job has an id, a user and a time";
    const char *wrong = live ? check_live(j) : NULL;
    if (wrong)
        return wrong;
    if (job_state_is_terminal(j->state) != (j->ended_at != 0))
        return "a job has an end exactly when it is over";
    if (j->state == JOB_STOPPING && j->stop_cause == STOP_NONE)
        return "a stop has a cause";
    for (int i = 0; i < j->n_attempts; i++)
        if (j->attempts[i].k != i + 1 || !j->attempts[i].ray_id)
            return "attempts count from 1 and have an id each";
    return NULL;
}

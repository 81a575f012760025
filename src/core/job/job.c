/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - what a job is, what its state owes and allows, and what is never true of it; see job.h.
 * How it changes: job_event.c. */
#include "core/job/job.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/spec/spec.h"

enum { POOLS_MAX = 1024 };

/* ---- words ---- */

static const char *const state_words[] = {
#define X(word) #word,
    JOB_STATE_TABLE(X)
#undef X
};
static_assert(array_len(state_words) == JOB_STATE_END, "one word per state");

static const char *const phase_words[] = {
#define X(word) #word,
    ATTEMPT_PHASE_TABLE(X)
#undef X
};

static const char *const cause_words[] = {"", "user", "timeout", "finding", "preempted"};
static_assert(array_len(cause_words) == STOP_END, "one word per cause");

static int job_word_index(const char *const *words, size_t n, const char *word)
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
    return (enum job_state)job_word_index(state_words, array_len(state_words), word);
}

bool job_state_is_terminal(enum job_state s)
{
    return s >= JOB_SUCCEEDED;
}

const char *const attempt_outcome_words[ATTEMPT_OUTCOMES + 1] = {"", "done", "preempted", "failed",
                                                                 NULL};

const char *attempt_phase_to_string(enum attempt_phase p)
{
    return phase_words[p];
}

enum attempt_phase attempt_phase_from_string(const char *word)
{
    return (enum attempt_phase)job_word_index(phase_words, array_len(phase_words), word);
}

const char *stop_cause_to_string(enum stop_cause c)
{
    return cause_words[c];
}

enum stop_cause stop_cause_from_string(const char *word)
{
    int i = job_word_index(cause_words, array_len(cause_words), word);
    return i == (int)array_len(cause_words) ? STOP_NONE : (enum stop_cause)i;
}

/* ---- the thing itself ---- */

struct job *job_new(void)
{
    struct job *j = xcalloc(1, sizeof(*j));
    j->read = xcalloc(1, sizeof(*j->read));
    j->share = -1;
    return j;
}

void job_set_texts(struct job *j, const struct job_texts *texts)
{
    const char *from[] = {texts->id,      texts->name,     texts->user,
                          texts->project, texts->workload, texts->cluster};
    char **to[] = {&j->id, &j->name, &j->user, &j->project, &j->workload, &j->cluster};
    size_t n = 0, sizes[array_len(from)];
    for (size_t i = 0; i < array_len(from); i++)
        n += sizes[i] = strlen(str_or(from[i], "")) + 1;
    char *at = xmalloc(n); /* the first text: job_free() frees the block by it */
    for (size_t i = 0; i < array_len(from); at += sizes[i++])
        *to[i] = memcpy(at, str_or(from[i], ""), sizes[i]);
}

char *job_pools(const struct spec *spec)
{
    struct buf out = BUF_INIT(POOLS_MAX);
    for (size_t i = 0; i < spec->pool.n; i++)
        (void)buf_addf(&out, "%s%s", i ? "," : "", spec->pool.v[i]); /* overflow: no node fits */
    return buf_take(&out);
}

struct job *job_of_spec(const struct spec *spec, const struct job_given *given)
{
    struct job *j = job_new();
    const struct job_texts texts = {.id = given->id,
                                    .name = spec->name,
                                    .user = given->user,
                                    .project = spec->project,
                                    .workload = workload_to_string((enum workload)spec->workload),
                                    .cluster = given->cluster};
    job_set_texts(j, &texts);
    j->pool = given->taken_pool ? given->taken_pool : job_pools(spec);
    j->spec = xstrdup(given->text);
    j->priority = (int)spec->priority;
    j->demand = *given->demand;
    j->limits = job_limits_of(spec);
    restart_from_spec(spec, &j->restart);
    j->queued_at = given->now;
    return j;
}

static void job_forget_read(struct job *j)
{
    if (!j->read)
        return;
    if (j->read->spec)
        spec_release(j->read->spec);
    free(j->read->spec);
    *j->read = (struct job_read){0};
}

void job_set_spec(struct job *j, const char *text)
{
    set_str(&j->spec, text);
    job_forget_read(j);
}

void job_free(struct job *j)
{
    if (!j)
        return;
    for (int i = 0; i < j->n_attempts; i++) {
        free(j->attempts[i].ray_id);
        free(j->attempts[i].end_text);
        free(j->attempts[i].session);
        free(j->attempts[i].node);
        free(j->attempts[i].slots);
    }
    free(j->attempts);
    free(j->id); /* and the texts behind it */
    free(j->pool);
    free(j->spec);
    free(j->held_by);
    free(j->proof);
    free(j->reason);
    gang_release(&j->gang);
    restart_release(&j->restart);
    job_forget_read(j);
    free(j->read);
    free(j);
}

const struct proof *job_proof(const struct job *j)
{
    static const struct proof none = {.on_worker = -1};
    return j->proof ? j->proof : &none;
}

void job_set_proof(struct job *j, const struct proof *proof)
{
    struct proof *new = NULL;
    if (proof) {
        new = xmalloc(sizeof(*new));
        *new = *proof;
    }
    free(j->proof);
    j->proof = new;
}

void reason_set(struct reason *r, const char *code, const char *message, const char *text)
{
    struct reason new = {0}; /* the old texts may be what is given */
    text_copy(new.code, str_or(code, ""));
    if (message)
        message_write(new.text, sizeof(new.text), MESSAGE_SAYS(message, str_or(text, "{}")));
    else
        text_copy(new.text, str_or(text, ""));
    *r = new;
}

void job_set_reason(struct job *j, const char *code, const char *message, const char *text)
{
    struct reason *new = NULL;
    if ((code && *code) || (text && *text)) {
        new = xmalloc(sizeof(*new));
        reason_set(new, code, message, text);
    }
    free(j->reason);
    j->reason = new;
}

const struct reason *job_state_reason(const struct job *j)
{
    static const struct reason none;
    return j->reason ? j->reason : &none;
}

struct attempt *job_attempt(const struct job *j)
{
    return j->n_attempts ? &j->attempts[j->n_attempts - 1] : NULL;
}

usec_t job_held(const struct job *j, usec_t then)
{
    usec_t held = 0;
    for (int i = 0; i < j->n_attempts; i++) {
        const struct attempt *a = &j->attempts[i];
        usec_t end = a->ended_at ? a->ended_at : then;
        held += end > a->planned_at ? end - a->planned_at : 0;
    }
    return held;
}

usec_t job_attempt_queued_at(const struct job *j, int k)
{
    return k <= 1 ? j->queued_at : j->attempts[k - 2].ended_at;
}

bool job_is_in_ray(const struct job *j)
{
    const struct attempt *a = job_attempt(j);
    return a && !job_state_is_terminal(j->state) && j->state != JOB_QUEUED &&
           (a->phase == ATTEMPT_ACCEPTED || a->phase == ATTEMPT_RUNNING);
}

bool job_is_holding(const struct job *j)
{
    return j->flags & JOB_FLAG_HOLDING;
}

char *job_ray_id(const char *job_id, int k)
{
    return k <= 1 ? xstrdup(job_id) : xasprintf("%s-a%d", job_id, k);
}

char *job_trial_id(const struct job *j)
{
    return j->trial_tries ? xasprintf("%s-a%d-trial", j->id, j->trial_tries)
                          : xasprintf("%s-trial", j->id);
}

enum job_act job_act(const struct job *j)
{
    const struct attempt *a = job_attempt(j);
    if (j->state == JOB_STOPPING)
        return JOB_ACT_STOP;
    if (j->state == JOB_QUEUED && j->trial == JOB_TRIAL_DUE)
        return JOB_ACT_TRY;
    return j->state == JOB_STARTING && a->phase == ATTEMPT_PLANNED ? JOB_ACT_SEND : JOB_ACT_NONE;
}

usec_t job_limit(const struct job *j, usec_t start_deadline)
{
    switch (j->state) {
    case JOB_QUEUED:
        return j->limits.queue_timeout;
    case JOB_STARTING:
        return start_deadline;
    case JOB_RUNNING:
        return job_is_holding(j) ? j->limits.hold_on_failure : j->limits.timeout;
    case JOB_STOPPING:
        return j->limits.stop_grace + JOB_STOP_OVERDUE;
    default:
        return 0;
    }
}

/* From the start of the stopwatch, so that it does not tremble; what the wall clock jumped since
 * is added in whole seconds. */
usec_t job_deadline(const struct job *j, usec_t start_deadline, const struct moment *now)
{
    const struct stopwatch *w = &j->watch;
    usec_t limit = job_limit(j, start_deadline);
    if (!limit || !w->running)
        return 0;
    usec_t left = limit > w->spent ? limit - w->spent : 0;
    usec_t passed = stopwatch_read(w, now) - w->spent, began = now->wall - passed;
    usec_t jump = began > w->wall ? began - w->wall : w->wall - began;
    jump -= jump % USEC_SEC;
    return (began > w->wall ? w->wall + jump : w->wall - jump) + left;
}

bool job_is_pausing(const struct job *j, const struct moment *now)
{
    return j->state == JOB_QUEUED && j->restart.pause &&
           stopwatch_read(&j->watch, now) < j->restart.pause;
}

bool job_is_preemptible(const struct job *j)
{
    return j->restart.preemptible && !job_is_holding(j) &&
           (j->state == JOB_STARTING || j->state == JOB_RUNNING);
}

static const char *check_live(const struct job *j)
{
    const struct attempt *a = job_attempt(j);
    if (!a)
        return "a live job has an attempt";
    if (job_is_holding(j) != (a->phase > ATTEMPT_RUNNING))
        return "a live job's attempt has not ended, unless its slots are kept";
    if (job_is_holding(j) && j->state != JOB_RUNNING)
        return "a job whose slots are kept was running";
    if (j->state == JOB_RUNNING && !job_is_holding(j) && a->phase != ATTEMPT_RUNNING)
        return "a running job has a running attempt";
    if (!j->gang.n)
        return "a live job has a lease";
    return NULL;
}

static const char *check_flags(const struct job *j)
{
    if (job_state_is_terminal(j->state) != (j->ended_at != 0))
        return "a job has an end exactly when it is over";
    if (j->state == JOB_STOPPING && j->stop_cause == STOP_NONE)
        return "a stop has a cause";
    if (j->state == JOB_QUEUED && (j->gang.n || j->stop_cause != STOP_NONE))
        return "a job that waits holds nothing and is not being stopped";
    if ((j->flags & JOB_FLAG_HELD) && (j->state != JOB_QUEUED || j->watch.running))
        return "only a job that waits is held, and its time stands still";
    return NULL;
}

const char *job_check(const struct job *j)
{
    bool live = j->state == JOB_STARTING || j->state == JOB_RUNNING || j->state == JOB_STOPPING;
    if (!j->id || !j->user || !j->queued_at)
        return "a job has an id, a user and a time";
    const char *wrong = live ? check_live(j) : NULL;
    if (!wrong)
        wrong = check_flags(j);
    if (!wrong && j->n_attempts && j->trial == JOB_TRIAL_DUE)
        wrong = "a job whose trial is due has not started";
    for (int i = 0; i < j->n_attempts && !wrong; i++)
        if (j->attempts[i].k != i + 1 || !j->attempts[i].ray_id)
            wrong = "attempts count from 1 and have an id each";
    return wrong;
}

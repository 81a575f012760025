/* SPDX-License-Identifier: Apache-2.0 */
/* job.h - a job and its attempts: its states, and what each of them owes and allows.
 *
 * What has to be done in the world is job_act(), which looks at the state alone; the state changes
 * by events only, see job_event.h. So a restart is: load, and act. Pure: no I/O, no clock, no log.
 *
 * Every state has a deadline, job_limit(), measured by a stopwatch that neither jumps of
 * the wall clock nor restarts of argusd change, and a next state:
 *   QUEUED    queue_timeout (not counted while it is held)  -> TIMEOUT
 *             while its trial is due it is not admitted; what the trial finds -> FAILED
 *   STARTING  start_deadline, anew once Ray has accepted it -> QUEUED, next attempt;
 *             after JOB_GIVE_UPS_MAX in a row               -> FAILED (infra)
 *   RUNNING   timeout, of this attempt                      -> STOPPING -> TIMEOUT
 *             once it has failed: hold_on_failure, or until
 *             it is released or stopped                     -> FAILED
 *   STOPPING  stop_grace + JOB_STOP_OVERDUE: told; ends by two witnesses, or after
 *             WITNESS_FORLORN of silence of both            -> what the stop was for
 * A preempted job, and one whose failure its spec wants restarted, goes back to QUEUED. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "core/job/gang.h"
#include "core/job/job_limits.h"
#include "core/job/stopwatch.h"
#include "core/spec/finding_class.h"
#include "core/spec/restart.h"
#include "core/verl/demand.h"

/* The words leave the process (SQL, JSON, CLI, pages). */
#define JOB_STATE_TABLE(X)                                                                         \
    X(QUEUED) X(STARTING) X(RUNNING) X(STOPPING) X(SUCCEEDED) X(FAILED) X(STOPPED) X(TIMEOUT)
#define X(word) JOB_##word,
enum job_state { JOB_STATE_TABLE(X) JOB_STATE_END };
#undef X

const char *job_state_to_string(enum job_state s);
/* JOB_STATE_END if there is no such word. */
enum job_state job_state_from_string(const char *word);
bool job_state_is_terminal(enum job_state s);

enum job_flags {
    JOB_FLAG_UNKNOWN = 1 << 0, /* nobody can see it now; since job.unknown_since */
    JOB_FLAG_HELD = 1 << 1,
    JOB_FLAG_RESTARTING = 1 << 2,
    JOB_FLAG_HOLDING = 1 << 3, /* it has failed, and its slots are kept for a look */
    JOB_FLAG_HUNG = 1 << 4,    /* it runs and gets nowhere */
    JOB_FLAG_IDLE = 1 << 5,    /* it runs and hardly uses its GPUs */
};

/* How far one submission to Ray has come. */
#define ATTEMPT_PHASE_TABLE(X)                                                                     \
    X(PLANNED)   /* its id is committed; nothing was sent, or nobody knows */                      \
    X(ACCEPTED)  /* Ray has it */                                                                  \
    X(RUNNING)   /* a witness saw it run */                                                        \
    X(ENDED)     /* judged; Ray's record is of no more use */                                      \
    X(ABANDONED) /* given up before it ran; its id is never used again */
#define X(word) ATTEMPT_##word,
enum attempt_phase { ATTEMPT_PHASE_TABLE(X) ATTEMPT_PHASE_END };
#undef X

const char *attempt_phase_to_string(enum attempt_phase p);
enum attempt_phase attempt_phase_from_string(const char *word);

/* How one attempt came to its end. The words are stored. */
enum attempt_outcome {
    ATTEMPT_OPEN,      /* it has not ended, or was written by an argusd that did not say */
    ATTEMPT_DONE,      /* by itself, or because somebody wanted it to */
    ATTEMPT_PREEMPTED, /* its slots were taken */
    ATTEMPT_FAILED,
    ATTEMPT_OUTCOMES
};
extern const char *const attempt_outcome_words[ATTEMPT_OUTCOMES + 1]; /* "" "done" …, then NULL */

struct attempt {
    int k;        /* from 1 */
    char *ray_id; /* under which Ray knows it */
    enum attempt_phase phase;
    usec_t planned_at, accepted_at, started_at, ended_at; /* wall; 0 = not yet */
    char *end_text; /* how it ended, kept (message_kept_say()); NULL until then */
    char *session;  /* Ray's, when it took it; NULL: not known */
    enum attempt_outcome outcome;
    /* Known of one that failed, or is called hung; wall, 0 = not known. fault_at: its command
     * ended, was last heard of, or last got on; noticed_at: argusd met that. */
    usec_t fault_at, noticed_at;
    enum finding_class finding; /* why it failed; FINDING_NONE = it did not, or nobody knows */
    char *node;                 /* that may be at fault; NULL: none */
    char *slots;                /* its lease as gang_to_text() has it; NULL: not kept */
    /* GPU-seconds that its lease held once that is over, by the book of the slots; 0 until then. */
    double gpu_s, gpu_idle_s, gpu_unknown_s, gpu_redone_s;
};

/* Why a job is being stopped; decides what it ends as. A preempted one goes back to the queue. */
enum stop_cause { STOP_NONE, STOP_USER, STOP_TIMEOUT, STOP_FINDING, STOP_PREEMPTED, STOP_END };
const char *stop_cause_to_string(enum stop_cause c);
enum stop_cause stop_cause_from_string(const char *word); /* STOP_NONE for unknown words */

enum { JOB_REASON_CODE_MAX = 40, JOB_REASON_TEXT_MAX = 1024 };

struct reason {
    char code[JOB_REASON_CODE_MAX]; /* "" = none */
    char text[JOB_REASON_TEXT_MAX]; /* a sentence, or a message's arguments (base/message.h) */
};

/* v1's proof: where the driver runs, as Ray tells it. */
struct proof {
    int on_worker; /* 1 yes, 0 no, -1 not known yet */
    char driver_ip[64], head_ip[64], node[128], node_id[64];
    int64_t pid;
    usec_t checked_at;
};

/* The trial of a job that waits: a short run without GPUs, on a worker, before it may start. Its
 * ids in Ray follow from the job's, so that they are committed before anything is sent. */
enum job_trial { JOB_TRIAL_NONE, JOB_TRIAL_DUE, JOB_TRIAL_PASSED };
/* One that is lost so often is given up, and the job goes on without it. */
#define JOB_TRIAL_TRIES 3

/* So many starts in a row may come to nothing: then it is the infrastructure. */
#define JOB_GIVE_UPS_MAX 5
/* A stop that takes this long beyond its grace is told. */
#define JOB_STOP_OVERDUE (2 * USEC_MIN)

/* What the job's text means, once somebody has asked (argusd/ground/jobspec.h). */
struct spec;
struct job_read {
    struct spec *spec; /* NULL: nobody has asked, or it does not read */
    bool tried;
};

struct job {
    int64_t seq;                                           /* order of submission */
    char *id, *name, *user, *project, *workload, *cluster; /* by job_set_texts(); name may be "" */
    char *pool;                                            /* may be "" */
    char *spec;                                            /* the text as given */
    struct job_read *read;                                 /* of job_new(), never NULL */
    int priority;
    struct demand demand;
    struct job_limits limits;
    struct restart restart;

    enum job_state state;
    unsigned flags;
    struct reason *reason; /* NULL: none; read by job_state_reason() */
    usec_t queued_at, started_at, ended_at, unknown_since, stop_asked_at; /* wall; started_at is
                                                                             this attempt's */
    struct stopwatch watch; /* of the state that it is in; stands while it is held */
    usec_t ran;             /* what the newest attempt ran, once it does no more */
    enum stop_cause stop_cause;
    char *held_by; /* who holds it, NULL = nobody */
    enum job_trial trial;
    int trial_tries; /* that were lost */

    struct attempt *attempts; /* n of them, in order; the last one is the current */
    int n_attempts;
    struct gang gang; /* its lease: nodes and their GPUs, the driver's first */
    int share;        /* by which Ray counts the lease (core/job/share.h); -1 = none */

    bool has_exit;
    char exit_cause[24];
    int exit_code; /* -1 when a signal ended it */
    char exit_signal[24];
    enum finding_class finding; /* why it failed; FINDING_NONE = not known, or not yet */
    struct proof *proof;        /* NULL: not known yet; read by job_proof() */
};

struct job *job_new(void);
/* What it is called, whose it is, of which kind and where: a NULL text is "". All are copied into
 * one block, since 10,000 jobs may wait and each of these texts is short. Once for a job. */
struct job_texts {
    const char *id, *name, *user, *project, *workload, *cluster;
};
void job_set_texts(struct job *j, const struct job_texts *texts);
/* What a new job is besides its spec. All borrowed. */
struct job_given {
    const char *id, *user, *cluster;
    const char *text; /* of the spec */
    const struct demand *demand;
    usec_t now;       /* wall */
    char *taken_pool; /* job_pools() of its spec; NULL: made */
};
/* "a,b"; yours. */
char *job_pools(const struct spec *spec);
/* A queued job, with what its spec says of it. */
struct job *job_of_spec(const struct spec *spec, const struct job_given *given);
/* Another text, copied; what the old one meant is forgotten. */
void job_set_spec(struct job *j, const char *text);
void job_free(struct job *j); /* NULL is fine */

/* Where its driver runs; nothing is known while it waits. Borrowed until that changes. */
const struct proof *job_proof(const struct job *j);
void job_set_proof(struct job *j, const struct proof *proof); /* copied; NULL: not known */

/* Why it is as it is, empty without a reason; of a queued job: ask the scheduler instead. Borrowed
 * until it changes. */
const struct reason *job_state_reason(const struct job *j);
/* A message; NULL: none. message: code of the text, where `code` only classes it; else NULL. */
void job_set_reason(struct job *j, const char *code, const char *message, const char *text);
void reason_set(struct reason *r, const char *code, const char *message, const char *text);

/* The newest attempt, NULL before the first. Borrowed. */
struct attempt *job_attempt(const struct job *j);
/* When attempt k, which there is, began to wait (wall): at the submit, a later one at the end of
 * the attempt before it. */
usec_t job_attempt_queued_at(const struct job *j, int k);
/* How long its attempts held their slots, each from its plan to its end or, while it has none, to
 * `then` (wall). */
usec_t job_held(const struct job *j, usec_t then);
/* Ray has accepted the newest attempt, which has not ended. */
bool job_is_in_ray(const struct job *j);
/* It has failed, and its slots are kept for a look. */
bool job_is_holding(const struct job *j);
/* Ray's id of attempt k: the job id for 1, "<id>-a<k>" after. */
char *job_ray_id(const char *job_id, int k);
/* Ray's id of its trial: "<id>-trial", after n lost ones "<id>-a<n>-trial". */
char *job_trial_id(const struct job *j);

/* What the world owes this job now, from its state alone. */
enum job_act {
    JOB_ACT_NONE,
    JOB_ACT_SEND, /* write the attempt's files, then make sure that Ray has it */
    JOB_ACT_STOP, /* ask Ray and the shepherd to stop it */
    JOB_ACT_TRY,  /* make sure that its trial runs, and hear of its end */
};
enum job_act job_act(const struct job *j);

/* How long job.watch may run in this state, 0 = as long as it likes. start_deadline: of argus.yaml.
 */
usec_t job_limit(const struct job *j, usec_t start_deadline);
/* When that is over by the wall clock of this moment; 0 = never. For people. */
usec_t job_deadline(const struct job *j, usec_t start_deadline, const struct moment *now);
/* The job's own pause before its next start is not over. */
bool job_is_pausing(const struct job *j, const struct moment *now);
/* It may be preempted: its slots come back, and it goes on later. */
bool job_is_preemptible(const struct job *j);

/* NULL, or the first broken invariant: for tests, and for what the store gives back. */
const char *job_check(const struct job *j);

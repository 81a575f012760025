/* SPDX-License-Identifier: Apache-2.0 */
/* ops.h - plans of what is dangerous: made, approved, applied step by step, and each step looked at
 * before the next one begins.
 *
 * A plan is a row of the store. What a step does is decided in the batch that says that it began,
 * so after a kill -9 either both are there, and the plan goes on with the look, or neither. A step
 * that cannot be decided in one batch (files are removed) is told as broken off after a restart,
 * and never done again. */
#pragma once
#include "argusd/kit/api.h"
#include "argusd/ops/opsfacts.h"

#define OPS_ENTRY "plan"
enum {
    OPS_JOBS_MAX = 1000, /* that one plan touches */
    OPS_PLANS_MAX = 500, /* that are kept: the oldest that is over goes */
    OPS_OF_USER_MAX = 20 /* that wait */
};

/* X(enumerator suffix, word). The words leave the process. */
#define OPS_ACTION_TABLE(X)                                                                        \
    X(DRAIN_NODE, "drain_node")                                                                    \
    X(REMOVE_NODE, "remove_node")                                                                  \
    X(RESTART_RAY_HEAD, "restart_ray_head")                                                        \
    X(CLEANUP_JOB_ARTIFACTS, "cleanup_job_artifacts")                                              \
    X(STOP_MANY, "stop_many")
#define OPS_STATE_TABLE(X)                                                                         \
    X(WAITING, "waiting")   /* for approval or apply */                                            \
    X(APPLYING, "applying") /* a step is under way */                                              \
    X(DONE, "done")                                                                                \
    X(FAILED, "failed")         /* a step could not be done, or its look was not as expected */    \
    X(BROKEN_OFF, "broken_off") /* argusd ended in the middle of a step that is not done twice */
#define OPS_STEP_TABLE(X)                                                                          \
    X(DRAIN, "drain")                                                                              \
    X(EMPTY, "wait_empty")                                                                         \
    X(REMOVE, "remove")                                                                            \
    X(STOP, "stop_jobs")                                                                           \
    X(DOWN, "cluster_down")                                                                        \
    X(UP, "cluster_up")                                                                            \
    X(BACK, "jobs_back")                                                                           \
    X(CLEAN, "clean_checkpoints")
#define OPS_STEP_STATE_TABLE(X)                                                                    \
    X(WAITING, "waiting")                                                                          \
    X(RUNNING, "running")                                                                          \
    X(DONE, "done")                                                                                \
    X(FAILED, "failed")                                                                            \
    X(BROKEN_OFF, "broken_off")
#define X(e, word) OPS_##e,
enum ops_action { OPS_ACTION_TABLE(X) OPS_ACTIONS };
#undef X
#define X(e, word) OPS_IS_##e,
enum ops_state { OPS_STATE_TABLE(X) OPS_STATES };
#undef X
#define X(e, word) OPS_STEP_##e,
enum ops_what { OPS_STEP_TABLE(X) OPS_WHATS };
#undef X
#define X(e, word) OPS_STEP_IS_##e,
enum ops_step_state { OPS_STEP_STATE_TABLE(X) OPS_STEP_STATES };
#undef X
extern const char *const ops_action_words[], *const ops_step_words[], *const ops_step_states[];

struct ops_step {
    int what;  /* enum ops_what */
    int state; /* enum ops_step_state */
    usec_t begun_at, ended_at;
    char *real; /* what its look found, as message_keep(); NULL: it was not made yet */
};
struct ops_approval {
    char *user;
    usec_t at;
};
/* What is done to something that is no job. */
struct ops_thing {
    char *thing, *fate;
    uint64_t bytes;
};

struct ops;
struct ops_waiter;

/* Read-only to everybody but this room. */
struct ops_plan {
    char *id;
    int action; /* enum ops_action */
    int state;  /* enum ops_state */
    char *user; /* who asked for it */
    int role;   /* enum http_role: of the token he asked with */
    usec_t created_at, expires_at;
    /* asked for */
    char *target; /* the node, job or cluster; of many jobs what chose them: "project/rlhf" */
    int then;     /* enum node_then */
    usec_t within;
    bool force, stop_foreign;
    char *of_user, *of_project, *of_pool;
    struct strv ids;
    /* the state that it was made for, and what it touches */
    char *hash;
    struct pairs facts;
    char *jobs;                /* JSON: a list of DrainPlanJob */
    struct strv job_ids, back; /* back: those that are to wait or run again */
    struct strv waited;        /* of these, while the cluster was down */
    struct strv users;
    struct field_list things; /* of struct ops_thing */
    double gpus, at_risk_gpu_hours;
    int64_t newest; /* step of the checkpoint that stays in any case; 0: none */
    /* the way it went */
    int64_t needs;               /* approvals of others */
    struct field_list approvals; /* of struct ops_approval */
    char *applied_by;
    usec_t applied_at, ended_at;
    struct field_list steps; /* of struct ops_step */

    /* Nothing of this is stored. */
    struct ops *of;
    struct store_read *read; /* of a step that is done by others */
    struct checkpoints_ask *ask;
    struct job *job;
    bool settled; /* they have answered */
    struct ops_waiter *waiters;
};
extern const struct field_table ops_plan_table;

struct ops *ops_new(struct api *a); /* borrowed */
void ops_restore(struct ops *o, const struct store_entry *row);
void ops_start(struct ops *o);
void ops_close(struct ops *o); /* NULL is fine */
void ops_free(struct ops *o);  /* the loop has run dry */

const struct ops_plan *ops_find(const struct ops *o, const char *id); /* NULL: none */
/* The oldest first. */
const struct ops_plan *ops_next(const struct ops *o, size_t *pos);
/* "waiting": what it is, whatever the time. Static. */
const char *ops_state_word(const struct ops_plan *p);
/* Nobody applied it in time. */
bool ops_is_expired(const struct ops_plan *p);
bool ops_is_over(const struct ops_plan *p);
struct access_thing ops_thing_of(const struct ops_plan *p);
/* What has to be typed to apply it; NULL: nothing. */
const char *ops_confirmation(const struct ops_plan *p);

/* Looks at what it touches and keeps it; the members of asked are taken where 0 is returned. goes:
 * checkpoints that a look of just now would remove; NULL: it is about none. ERR_NOT_FOUND,
 * ERR_CONFLICT, ERR_FORBIDDEN, ERR_BUSY. */
must_check int ops_add(struct ops *o,
                       struct ops_plan *taken,
                       const struct checkpoints_answer *goes,
                       const struct ops_plan **ret,
                       struct err *err);
/* ERR_FORBIDDEN: he asked for it himself. Twice is once. */
must_check int ops_approve(struct ops *o,
                           const struct ops_plan *plan,
                           const char *user,
                           struct err *err);
/* Begins. typed: see ops_confirmation(). ERR_CONFLICT: it was, it expired, it lacks approvals, or
 * the state is not the one that it was made for. With a lesser role than it was made with no more
 * is done than that role may. */
must_check int ops_apply(struct ops *o,
                         const struct ops_plan *plan,
                         const struct http_principal *who,
                         const char *typed,
                         struct err *err);
/* What is not as it was, for this role or the lesser one that it was made with; release it with
 * opsfacts_release(). ERR_…: it could not be planned now. */
must_check int ops_compare(const struct ops_plan *p,
                           int role,
                           struct field_list *ret,
                           struct err *err);

/* Call cb once, when it is over. */
struct ops_waiter *ops_wait(const struct ops_plan *p, void (*cb)(void *arg), void *arg);
void ops_unwait(struct ops_waiter *w); /* NULL is fine; not after the call */

/* ---- ops_steps.c ---- */

/* What a step is expected to come to, and what it is now: each as message_keep(). Heap. */
char *ops_step_expected(const struct ops_plan *p, const struct ops_step *s);
char *ops_step_now(const struct ops_plan *p, const struct ops_step *s);

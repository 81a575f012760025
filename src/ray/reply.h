/* SPDX-License-Identifier: Apache-2.0 */
/* reply.h - what Ray tells, as plain values.
 *
 * Texts are owned by their struct; NULL means that Ray said null or nothing.
 * parse.h reads them, ray.h gets them. Lists are always sorted. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/strv.h"

/* X(enumerator suffix): the words are Ray's; UNKNOWN is any other word: decide nothing on it. */
#define RAY_JOB_STATUS_TABLE(X) X(UNKNOWN) X(PENDING) X(RUNNING) X(STOPPED) X(SUCCEEDED) X(FAILED)
#define RAY_ACTOR_STATE_TABLE(X)                                                                   \
    X(UNKNOWN) X(DEPENDENCIES_UNREADY) X(PENDING_CREATION) X(ALIVE) X(RESTARTING) X(DEAD)
#define RAY_GROUP_STATE_TABLE(X)                                                                   \
    X(UNKNOWN) X(PENDING) X(PREPARED) X(CREATED) X(REMOVED) X(RESCHEDULING)

#define X(word) RAY_JOB_##word,
enum ray_job_status { RAY_JOB_STATUS_TABLE(X) RAY_JOB_STATUS_END };
#undef X
#define X(word) RAY_ACTOR_##word,
enum ray_actor_state { RAY_ACTOR_STATE_TABLE(X) RAY_ACTOR_STATE_END };
#undef X
#define X(word) RAY_GROUP_##word,
enum ray_group_state { RAY_GROUP_STATE_TABLE(X) RAY_GROUP_STATE_END };
#undef X

/* Ray's word ("PENDING"), "UNKNOWN" for anything else. Borrowed. */
const char *ray_job_status_to_string(enum ray_job_status status);
enum ray_job_status ray_job_status_from_string(const char *word); /* NULL is fine */
/* STOPPED, SUCCEEDED and FAILED: Ray will not change it any more. */
bool ray_job_status_is_terminal(enum ray_job_status status);
const char *ray_actor_state_to_string(enum ray_actor_state state);
enum ray_actor_state ray_actor_state_from_string(const char *word);
const char *ray_group_state_to_string(enum ray_group_state state);
enum ray_group_state ray_group_state_from_string(const char *word);

/* Named quantities: "CPU", "GPU", "memory" (bytes), "argus_node_x". Zeroed memory is an empty list.
 */
struct ray_amount {
    char *name;
    double amount;
};

struct ray_amounts {
    struct ray_amount *v; /* sorted by name */
    size_t n;
    size_t cap;
};

void ray_amounts_release(struct ray_amounts *a);
/* Adds, or replaces the amount of a name that is there. Copied. */
void ray_amounts_set(struct ray_amounts *a, const char *name, double amount);
double ray_amounts_find(const struct ray_amounts *a, const char *name); /* 0 when absent */

enum ray_supports {
    RAY_SUPPORTS_LABELS = 1 << 0,            /* >= 2.49: labels of nodes */
    RAY_SUPPORTS_TOKEN = 1 << 1,             /* >= 2.52: token authentication */
    RAY_SUPPORTS_ENTRYPOINT_LABELS = 1 << 2, /* >= 2.54: entrypoint_label_selector */
};

struct ray_version {
    char *text;         /* "2.51.1" */
    char *session_name; /* another one than before: the cluster lost its memory */
    int major, minor, patch;
    unsigned supports; /* enum ray_supports */
};

struct ray_job {
    bool is_submission;  /* false: a driver that was not submitted through the Jobs API */
    char *submission_id; /* of a submission never NULL */
    char *job_id;        /* hex id of its last driver, NULL until it called ray.init() */
    enum ray_job_status status;
    char *entrypoint;
    char *message;
    char *error_type; /* "JOB_SUPERVISOR_ACTOR_DIED" */
    usec_t start;     /* wall, the head's clock: of the submission, not of RUNNING; 0 = not told */
    usec_t end;
    struct pairs metadata; /* texts only */
    char *driver_id;       /* driver_info: NULL until ray.init() */
    char *driver_ip;
    int64_t driver_pid;   /* 0 = not told */
    char *driver_node_id; /* where the supervisor and so the entrypoint runs; from RUNNING on */
    char *driver_agent;   /* "http://10.0.0.2:52365" of that node */
    bool has_exit_code;
    int exit_code;
};

/* True for the record that comes back as FAILED when DELETE was too early: ignore it. */
bool ray_job_is_ghost(const struct ray_job *job);

struct ray_jobs {
    struct ray_job *v; /* sorted by submission id, then job id */
    size_t n;
};

struct ray_node {
    char *node_id;
    char *ip;
    char *name;
    bool is_alive;
    bool is_head;
    char *state_message;          /* why it died */
    struct ray_amounts resources; /* totals: logical, never what is free */
    struct pairs labels;
};

struct ray_nodes {
    struct ray_node *v; /* sorted by ip, then id; dead ones stay listed */
    size_t n;
};

/* Dead nodes stay listed here too: intersect with the live ones of ray_nodes. */
struct ray_usage {
    char *node_id;
    double cpus_used, cpus_total;
    double gpus_used, gpus_total; /* reserved by a placement group counts as used */
};

struct ray_usages {
    struct ray_usage *v; /* sorted by node id */
    size_t n;
    usec_t time; /* when Ray's monitor wrote it (every 5 s), the head's clock; 0 = not told */
};

struct ray_actor {
    char *actor_id;
    char *class_name;
    char *name;
    enum ray_actor_state state;
    char *job_id;
    char *node_id; /* NULL while it has no place */
    int64_t pid;
    bool is_detached;
    char *group_id; /* placement group */
    struct ray_amounts resources;
};

struct ray_actors {
    struct ray_actor *v; /* sorted by id; DEAD ones left out */
    size_t n;
    bool is_partial; /* Ray knows more than it told: absence proves nothing */
};

struct ray_bundle {
    char *node_id; /* NULL while it has no place */
    struct ray_amounts resources;
};

struct ray_group {
    char *group_id;
    char *name;
    char *job_id; /* of the driver that made it */
    enum ray_group_state state;
    bool is_detached;
    char *scheduling_state; /* "FINISHED", "INFEASIBLE", "NO_RESOURCES" */
    int64_t scheduling_attempts;
    struct ray_bundle *bundles;
    size_t n_bundles;
};

struct ray_groups {
    struct ray_group *v; /* sorted by id; REMOVED ones left out */
    size_t n;
    bool is_partial;
};

void ray_version_release(struct ray_version *v);
void ray_version_copy(struct ray_version *dst, const struct ray_version *src); /* releases dst */
void ray_job_release(struct ray_job *job);
void ray_jobs_release(struct ray_jobs *jobs);
void ray_nodes_release(struct ray_nodes *nodes);
void ray_usages_release(struct ray_usages *usages);
void ray_actors_release(struct ray_actors *actors);
void ray_groups_release(struct ray_groups *groups);

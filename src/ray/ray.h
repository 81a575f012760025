/* SPDX-License-Identifier: Apache-2.0 */
/* ray.h - client of one Ray cluster: its Jobs API and state API over HTTP.
 *
 * Lives on the caller's uv loop (libcurl's multi interface, sockets polled by the
 * loop), never blocks, opens a bounded number of connections and keeps them. It
 * holds no truth about jobs, decides nothing and retries nothing: each call ends
 * in one callback that says what is known, and "unknown" is an answer.
 *
 * Calls. Each returns a handle. The callback comes exactly once, from the loop,
 * never from inside the call; after it the handle is gone. ray_call_free() or
 * ray_client_free() before that: the callback never comes, and what was sent may
 * still take effect. Both may be called from inside a callback. What a callback
 * is given is borrowed until it returns. Texts passed in are copied.
 *
 * Rules that it keeps: a User-Agent that is no browser's, no Origin, one POST of a
 * job after another, at least 60 s patience for it, only keys which the version
 * knows, the token as `Authorization: Bearer`. */
#pragma once
#include <uv.h>

#include "ray/reply.h"

struct ray_client;
struct ray_call;

/* Zero means the default in brackets. */
struct ray_options {
    uv_loop_t *loop;             /* borrowed */
    const char *base_url;        /* "http://10.0.0.1:8265", https too, a path prefix too */
    const char *token;           /* Ray's token, NULL = none */
    const char *user_agent;      /* "argus/0.1.0"; not "Mozilla…" [argus] */
    const char *ca_file;         /* of https, PEM [the system's] */
    usec_t connect_timeout;      /* [5 s] */
    usec_t read_timeout;         /* of a whole call that only reads, stops or deletes [30 s] */
    usec_t submit_timeout;       /* [60 s], never less unless `impatient` */
    bool impatient;              /* take submit_timeout as it is: for tests */
    double submits_per_second;   /* [no limit] */
    unsigned parallel_max;       /* requests at once; more wait inside [8] */
    size_t reply_max_bytes;      /* of a reply about one thing [4 MiB] */
    size_t list_reply_max_bytes; /* of a list [16 MiB]: parsed in one turn, so bounded */
};

/* Is this the URL of a dashboard that ray_client_new() takes? ERR_USAGE with a code. */
must_check int ray_check_address(const char *url, struct err *err);

/* ERR_USAGE: a URL or User-Agent that cannot be used. */
must_check int ray_client_new(const struct ray_options *opt,
                              struct ray_client **ret,
                              struct err *err);
/* NULL is fine. Calls under way end without callback and their handles are gone. The loop must turn
 * until its handles are closed (uv_run as usual at the end of a program). */
void ray_client_free(struct ray_client *rc);

/* NULL is fine; not after the callback. */
void ray_call_free(struct ray_call *call);

/* -- version -------------------------------------------------------------- */

/* version NULL: unknown, err says why (ERR_UNREACHABLE, ERR_UNAUTHORISED for a wrong
 * or missing token, ERR_TIMEOUT, ERR_UNAVAILABLE, ERR_TOO_LARGE, ERR_BAD_REQUEST;
 * so everywhere below). */
typedef void (*ray_version_f)(const struct ray_version *version, const struct err *err, void *arg);
struct ray_call *ray_get_version(struct ray_client *rc, ray_version_f cb, void *arg);

/* -- submit --------------------------------------------------------------- */

struct ray_submit {
    const char *submission_id;    /* chosen and committed before */
    const char *entrypoint;       /* a shell line */
    const char *runtime_env;      /* JSON object, NULL = {} */
    const struct pairs *env;      /* into runtime_env's env_vars, over what is there; NULL = none.
                                     Ray expands $NAME and ${NAME} in values, there is no escape */
    const struct pairs *metadata; /* NULL = none */
    double num_cpus, num_gpus;    /* of the entrypoint; 0 = not sent */
    uint64_t memory_bytes;        /* 0 = not sent */
    const struct ray_amounts *resources; /* entrypoint_resources; NULL = none */
    const struct pairs *labels; /* entrypoint_label_selector; left out where Ray is too old */
};

#define RAY_SUBMIT_TABLE(X)                                                                        \
    X(ACCEPTED)  /* Ray has it, under our id */                                                    \
    X(DUPLICATE) /* the id is taken: by our earlier POST, or by another client (look at the mark)  \
                  */                                                                               \
    X(REFUSED)   /* definitely not taken, and never will be like this; err quotes Ray */           \
    X(UNREACHABLE) /* definitely not taken: nothing was sent, or not let in; err says why */       \
    X(NO_AGENT)    /* definitely not taken: Ray's head agent is away; try again later */           \
    X(DOUBT)       /* sent, no usable answer: GET the id; on NOT_FOUND the same POST is safe */

#define X(word) RAY_SUBMIT_##word,
enum ray_submit_outcome { RAY_SUBMIT_TABLE(X) RAY_SUBMIT_END };
#undef X
const char *ray_submit_outcome_to_string(enum ray_submit_outcome outcome); /* "ACCEPTED" */

/* err is NULL for ACCEPTED only. */
typedef void (*ray_submit_f)(enum ray_submit_outcome outcome, const struct err *err, void *arg);
/* Asks for the version first when it is not known. NULL with err ERR_USAGE: an empty id or
 * entrypoint, a runtime_env that is no JSON object, text that is not UTF-8. */
must_check struct ray_call *ray_submit(struct ray_client *rc,
                                       const struct ray_submit *what,
                                       ray_submit_f cb,
                                       void *arg,
                                       struct err *err);

/* -- one job -------------------------------------------------------------- */

enum ray_found {
    RAY_FOUND,
    RAY_NOT_FOUND, /* Ray says so itself (not after its memory was lost: see session_name) */
    RAY_UNKNOWN,   /* no usable answer; err says why */
};

/* job is NULL but for FOUND, err is NULL but for UNKNOWN. */
typedef void (*ray_job_f)(enum ray_found found,
                          const struct ray_job *job,
                          const struct err *err,
                          void *arg);
/* id: submission id or hex job id. Costs Ray a scan: poll few. */
struct ray_call *ray_get_job(struct ray_client *rc, const char *id, ray_job_f cb, void *arg);

enum ray_stop_outcome {
    RAY_STOP_ASKED, /* "asked": poll until terminal; a PENDING job stays PENDING */
    RAY_STOP_ENDED, /* it was terminal already */
    RAY_STOP_NOT_FOUND,
    RAY_STOP_UNKNOWN, /* err says why */
};
typedef void (*ray_stop_f)(enum ray_stop_outcome outcome, const struct err *err, void *arg);
struct ray_call *ray_stop_job(struct ray_client *rc, const char *id, ray_stop_f cb, void *arg);

enum ray_delete_outcome {
    RAY_DELETE_DONE,
    RAY_DELETE_NOT_FOUND,
    RAY_DELETE_TOO_EARLY, /* it is not terminal; err quotes Ray */
    RAY_DELETE_UNKNOWN,   /* err says why */
};
typedef void (*ray_delete_f)(enum ray_delete_outcome outcome, const struct err *err, void *arg);
/* Not before 5 s after the first terminal status: the record would come back (ray_job_is_ghost).
 * Never use the id again. */
struct ray_call *ray_delete_job(struct ray_client *rc, const char *id, ray_delete_f cb, void *arg);

/* The name of the actor that watches a submission: this, and the submission's id. */
#define RAY_SUPERVISOR "_ray_internal_job_actor_"
/* That actor: FOUND with a live one; NOT_FOUND with none or a dead
 * one. A job PENDING for long with NOT_FOUND here is an orphan that nothing will ever start. */
typedef void (*ray_supervisor_f)(enum ray_found found,
                                 const struct ray_actor *actor,
                                 const struct err *err,
                                 void *arg);
struct ray_call *ray_find_supervisor(struct ray_client *rc,
                                     const char *submission_id,
                                     ray_supervisor_f cb,
                                     void *arg);

/* -- lists: NULL with err when unknown ------------------------------------- */

typedef void (*ray_jobs_f)(const struct ray_jobs *jobs, const struct err *err, void *arg);
struct ray_call *ray_list_jobs(struct ray_client *rc, ray_jobs_f cb, void *arg);

typedef void (*ray_nodes_f)(const struct ray_nodes *nodes, const struct err *err, void *arg);
struct ray_call *ray_list_nodes(struct ray_client *rc, ray_nodes_f cb, void *arg);

/* The port of a live node's metrics page, on the node's own address; err ERR_NOT_FOUND: Ray knows
 * no such node, or no port of it. port is 0 with err. */
typedef void (*ray_port_f)(int port, const struct err *err, void *arg);
struct ray_call *ray_get_metrics_port(struct ray_client *rc,
                                      const char *node_id,
                                      ray_port_f cb,
                                      void *arg);

/* A cross-check of our own ledger, never the truth. */
typedef void (*ray_usages_f)(const struct ray_usages *usages, const struct err *err, void *arg);
struct ray_call *ray_list_usages(struct ray_client *rc, ray_usages_f cb, void *arg);

/* job_id (hex) narrows to one driver's; NULL = all. */
typedef void (*ray_actors_f)(const struct ray_actors *actors, const struct err *err, void *arg);
struct ray_call *ray_list_actors(struct ray_client *rc,
                                 const char *job_id,
                                 ray_actors_f cb,
                                 void *arg);
typedef void (*ray_groups_f)(const struct ray_groups *groups, const struct err *err, void *arg);
struct ray_call *ray_list_groups(struct ray_client *rc,
                                 const char *job_id,
                                 ray_groups_f cb,
                                 void *arg);

/* -- Ray Serve -------------------------------------------------------------- */

/* text: the answer of Serve, NULL with err when it is not known. The first call of a cluster takes
 * seconds. ERR_UNAVAILABLE with the code ray_no_serve: Ray was installed without it. */
typedef void (*ray_serve_f)(const char *text, size_t len, const struct err *err, void *arg);
struct ray_call *ray_get_serve(struct ray_client *rc, ray_serve_f cb, void *arg);
/* The whole list of applications. err NULL: it was accepted, which says nothing of what becomes of
 * it; text is then "". The first one starts Serve and may take half a minute. */
struct ray_call *ray_put_serve(struct ray_client *rc, const char *list, ray_serve_f cb, void *arg);

/* SPDX-License-Identifier: Apache-2.0 */
/* call.h - inside of the client, for ray.c, query.c and submit.c only.
 *
 * A call is one request that ends in one callback. ray.c owns their list and
 * their end, query.c reads the answers of what only asks, submit.c has the queue
 * of POSTs. After a callback returned, rc may be dead (its memory is not gone
 * before the next turn) and the call is gone. */
#pragma once
#include "ray/ray.h"
#include "ray/wire.h"

struct submit; /* submit.c: what is to be posted */

struct ray_client {
    struct wire *wire;
    char *base_url; /* without a slash at its end */
    usec_t read_timeout, submit_timeout;
    uint64_t gap_ms; /* between two POSTs */
    size_t reply_max_bytes, list_reply_max_bytes;
    bool is_dead;
    bool has_version;
    struct ray_version version;    /* of the last answer */
    struct ray_call *first, *last; /* under way */

    /* submit.c */
    uv_loop_t *loop;
    uv_timer_t gap;
    uint64_t next_post; /* loop time, ms */
    struct ray_call *version_call;
    struct ray_call *posting;
    struct ray_call *first_submit, *last_submit; /* waiting, in order, by next_submit */
};

struct ray_call {
    struct ray_client *rc;
    struct ray_call *prev, *next;
    struct wire_request *request; /* NULL while it waits for its turn to be posted */
    /* Reads the reply and calls back; the call is off the list by then. */
    void (*finish)(struct ray_call *call, const struct wire_reply *reply);
    union {
        ray_version_f version;
        ray_submit_f submit;
        ray_job_f job;
        ray_stop_f stop;
        ray_delete_f removal;
        ray_supervisor_f supervisor;
        ray_jobs_f jobs;
        ray_nodes_f nodes;
        ray_port_f port;
        ray_usages_f usages;
        ray_actors_f actors;
        ray_groups_f groups;
        ray_serve_f serve;
    } cb;
    void *arg;
    char *id;
    struct submit *submit;
    struct ray_call *next_submit;
};

/* A call on rc's list, not sent yet. */
struct ray_call *call_new(struct ray_client *rc,
                          void (*finish)(struct ray_call *, const struct wire_reply *),
                          void *arg);
/* path is joined to the base URL. */
void call_send(struct ray_call *call, const char *path, const struct wire_order *order);
/* Off the list and freed, without callback. */
void call_drop(struct ray_call *call);
/* Off the list, finish(reply), freed. */
void call_finish(struct ray_call *call, const struct wire_reply *reply);
/* text as one segment of a path or one value of a query. To be freed. */
char *call_escape(const char *text);

/* The sentence for a reply that is not the one hoped for: why there is none, or
 * what Ray said (the last line of its traceback). Returns the code. */
int reply_error(const struct wire_reply *reply, const char *what, struct err *err);
bool reply_has(const struct wire_reply *reply, const char *text);

/* submit.c: end of a call that waits or is being posted. */
void submit_init(struct ray_client *rc);
void submit_drop(struct ray_call *call);
void submit_free(struct submit *s); /* NULL is fine */

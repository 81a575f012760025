/* SPDX-License-Identifier: Apache-2.0 */
/* query.c - the calls that ask, stop and delete: one path, one reading of the
 * reply each. Whatever is not the one expected answer is "unknown". */
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "ray/call.h"
#include "ray/parse.h"

/* The filters are those of the state API; the default limit of 100 is too small
 * for anything that absence is read from, 10,000 is the most that Ray allows. */
#define LIMIT "limit=10000"
#define FILTER(key, predicate, value)                                                              \
    "&filter_keys=" key "&filter_predicates=" predicate "&filter_values=" value
#define IS "%%3D"
#define IS_NOT "%%21%%3D"

static void send_get(struct ray_call *call, const char *path, size_t max_bytes)
{
    const struct ray_client *rc = call->rc;
    struct wire_order order = {
        .method = "GET", .timeout = rc->read_timeout, .max_bytes = max_bytes};
    call_send(call, path, &order);
}

/* 200 is the only good status of a GET. 0, or negative with the sentence in err. */
static int check_status(const struct wire_reply *reply, const char *what, struct err *err)
{
    return reply->status == 200 ? 0 : reply_error(reply, what, err);
}

static bool is_no_such_job(const struct wire_reply *reply)
{
    /* Another 404 is that of a route which is not there (yet). */
    return reply->status == 404 && reply_has(reply, "does not exist");
}

/* -- version ---------------------------------------------------------------------- */

static void finish_version(struct ray_call *call, const struct wire_reply *reply)
{
    struct ray_client *rc = call->rc;
    struct err err = {0};
    struct ray_version version = {0};
    int r = check_status(reply, "asking ray for its version", &err);
    if (r == 0)
        r = ray_parse_version(reply->body, reply->len, &version, &err);
    if (r == 0) {
        ray_version_copy(&rc->version, &version);
        rc->has_version = true;
    }
    call->cb.version(r < 0 ? NULL : &version, r < 0 ? &err : NULL, call->arg);
    ray_version_release(&version);
}

struct ray_call *ray_get_version(struct ray_client *rc, ray_version_f cb, void *arg)
{
    struct ray_call *call = call_new(rc, finish_version, arg);
    call->cb.version = cb;
    send_get(call, "/api/version", rc->reply_max_bytes);
    return call;
}

/* -- one job ------------------------------------------------------------------------ */

static struct ray_call *job_call(struct ray_client *rc,
                                 const char *id,
                                 void (*finish)(struct ray_call *, const struct wire_reply *),
                                 void *arg)
{
    struct ray_call *call = call_new(rc, finish, arg);
    call->id = xstrdup(id);
    return call;
}

static void send_job(struct ray_call *call, const char *method, const char *verb)
{
    struct ray_client *rc = call->rc;
    struct wire_order order = {
        .method = method, .timeout = rc->read_timeout, .max_bytes = rc->reply_max_bytes};
    _cleanup_(freep) char *id = call_escape(call->id);
    _cleanup_(freep) char *path = xasprintf("/api/jobs/%s%s", id, verb);
    call_send(call, path, &order);
}

static void finish_job(struct ray_call *call, const struct wire_reply *reply)
{
    if (is_no_such_job(reply)) {
        call->cb.job(RAY_NOT_FOUND, NULL, NULL, call->arg);
        return;
    }
    struct err err = {0};
    struct ray_job job = {0};
    int r = check_status(reply, "asking ray for a job", &err);
    if (r == 0)
        r = ray_parse_job(reply->body, reply->len, &job, &err);
    if (r == 0 && !str_eq(job.submission_id, call->id) && !str_eq(job.job_id, call->id))
        r = message_refuse(
            &err, ERR_BAD_REQUEST, "ray_other_job",
            MESSAGE_ARGS(MESSAGE_STR("asked", call->id),
                         MESSAGE_STR("answered", str_or(job.submission_id, "another one"))));
    if (r < 0)
        call->cb.job(RAY_UNKNOWN, NULL, &err, call->arg);
    else
        call->cb.job(RAY_FOUND, &job, NULL, call->arg);
    ray_job_release(&job);
}

struct ray_call *ray_get_job(struct ray_client *rc, const char *id, ray_job_f cb, void *arg)
{
    struct ray_call *call = job_call(rc, id, finish_job, arg);
    call->cb.job = cb;
    send_job(call, "GET", "");
    return call;
}

static void finish_stop(struct ray_call *call, const struct wire_reply *reply)
{
    if (is_no_such_job(reply)) {
        call->cb.stop(RAY_STOP_NOT_FOUND, NULL, call->arg);
        return;
    }
    struct err err = {0};
    bool asked = false;
    int r = check_status(reply, "asking ray to stop a job", &err);
    if (r == 0)
        r = ray_parse_flag(reply->body, reply->len, "stopped", &asked, &err);
    if (r < 0)
        call->cb.stop(RAY_STOP_UNKNOWN, &err, call->arg);
    else
        call->cb.stop(asked ? RAY_STOP_ASKED : RAY_STOP_ENDED, NULL, call->arg);
}

struct ray_call *ray_stop_job(struct ray_client *rc, const char *id, ray_stop_f cb, void *arg)
{
    struct ray_call *call = job_call(rc, id, finish_stop, arg);
    call->cb.stop = cb;
    send_job(call, "POST", "/stop");
    return call;
}

static void finish_delete(struct ray_call *call, const struct wire_reply *reply)
{
    if (is_no_such_job(reply)) {
        call->cb.removal(RAY_DELETE_NOT_FOUND, NULL, call->arg);
        return;
    }
    struct err err = {0};
    bool deleted = false;
    int r = check_status(reply, "asking ray to delete a job", &err);
    if (r == 0)
        r = ray_parse_flag(reply->body, reply->len, "deleted", &deleted, &err);
    if (r < 0)
        call->cb.removal(reply_has(reply, "non-terminal state") ? RAY_DELETE_TOO_EARLY
                                                                : RAY_DELETE_UNKNOWN,
                         &err, call->arg);
    else
        call->cb.removal(deleted ? RAY_DELETE_DONE : RAY_DELETE_NOT_FOUND, NULL, call->arg);
}

struct ray_call *ray_delete_job(struct ray_client *rc, const char *id, ray_delete_f cb, void *arg)
{
    struct ray_call *call = job_call(rc, id, finish_delete, arg);
    call->cb.removal = cb;
    send_job(call, "DELETE", "");
    return call;
}

/* -- the supervisor of a job ----------------------------------------------------------- */

static void finish_supervisor(struct ray_call *call, const struct wire_reply *reply)
{
    struct err err = {0};
    struct ray_actors actors = {0};
    const struct ray_actor *found = NULL;
    int r = check_status(reply, "asking ray for a job's supervisor", &err);
    if (r == 0)
        r = ray_parse_actors(reply->body, reply->len, &actors, &err);
    for (size_t i = 0; r == 0 && i < actors.n; i++)
        if (str_eq(actors.v[i].name, call->id))
            found = &actors.v[i];
    if (r == 0 && !found && actors.is_partial)
        r = message_refuse(&err, ERR_BAD_REQUEST, "ray_some_actors", MESSAGE_NO_ARGS);
    if (r < 0)
        call->cb.supervisor(RAY_UNKNOWN, NULL, &err, call->arg);
    else
        call->cb.supervisor(found ? RAY_FOUND : RAY_NOT_FOUND, found, NULL, call->arg);
    ray_actors_release(&actors);
}

struct ray_call *ray_find_supervisor(struct ray_client *rc,
                                     const char *submission_id,
                                     ray_supervisor_f cb,
                                     void *arg)
{
    struct ray_call *call = call_new(rc, finish_supervisor, arg);
    call->cb.supervisor = cb;
    call->id = xasprintf(RAY_SUPERVISOR "%s", submission_id);
    _cleanup_(freep) char *name = call_escape(call->id);
    _cleanup_(freep) char *path = xasprintf("/api/v0/actors?" LIMIT FILTER("name", IS, "%s"), name);
    send_get(call, path, rc->list_reply_max_bytes);
    return call;
}

/* -- lists -------------------------------------------------------------------------- */

/* Each list ends alike: parse or say why not, call back, release. */
#define DEFINE_FINISH(noun, phrase)                                                                \
    static void finish_##noun(struct ray_call *call, const struct wire_reply *reply)               \
    {                                                                                              \
        struct err err = {0};                                                                      \
        struct ray_##noun list = {0};                                                              \
        int r = check_status(reply, "asking ray for " phrase, &err);                               \
        if (r == 0)                                                                                \
            r = ray_parse_##noun(reply->body, reply->len, &list, &err);                            \
        call->cb.noun(r < 0 ? NULL : &list, r < 0 ? &err : NULL, call->arg);                       \
        ray_##noun##_release(&list);                                                               \
    }

DEFINE_FINISH(jobs, "its jobs")
DEFINE_FINISH(nodes, "its nodes")
DEFINE_FINISH(usages, "its status")
DEFINE_FINISH(actors, "its actors")
DEFINE_FINISH(groups, "its placement groups")

struct ray_call *ray_list_jobs(struct ray_client *rc, ray_jobs_f cb, void *arg)
{
    struct ray_call *call = call_new(rc, finish_jobs, arg);
    call->cb.jobs = cb;
    send_get(call, "/api/jobs/", rc->list_reply_max_bytes);
    return call;
}

struct ray_call *ray_list_nodes(struct ray_client *rc, ray_nodes_f cb, void *arg)
{
    struct ray_call *call = call_new(rc, finish_nodes, arg);
    call->cb.nodes = cb;
    send_get(call, "/api/v0/nodes?" LIMIT, rc->list_reply_max_bytes);
    return call;
}

static void finish_port(struct ray_call *call, const struct wire_reply *reply)
{
    struct err err = {0};
    int port = 0, r = check_status(reply, "asking ray for a node", &err);
    if (r == 0)
        r = ray_parse_metrics_port(reply->body, reply->len, call->id, &port, &err);
    call->cb.port(port, r < 0 ? &err : NULL, call->arg);
}

struct ray_call *ray_get_metrics_port(struct ray_client *rc,
                                      const char *node_id,
                                      ray_port_f cb,
                                      void *arg)
{
    struct ray_call *call = call_new(rc, finish_port, arg);
    _cleanup_(freep) char *id = call_escape(node_id);
    _cleanup_(freep) char *path = xasprintf("/nodes/%s", id);
    call->id = xstrdup(node_id);
    call->cb.port = cb;
    send_get(call, path, rc->reply_max_bytes);
    return call;
}

struct ray_call *ray_list_usages(struct ray_client *rc, ray_usages_f cb, void *arg)
{
    struct ray_call *call = call_new(rc, finish_usages, arg);
    call->cb.usages = cb;
    send_get(call, "/api/cluster_status", rc->list_reply_max_bytes);
    return call;
}

/* ended: the state of what is over, left out. */
static void send_detail(struct ray_call *call,
                        const char *resource,
                        const char *ended,
                        const char *job_key,
                        const char *job_id)
{
    _cleanup_(freep) char *job =
        job_id ? xasprintf(FILTER("%s", IS, "%s"), job_key, job_id) : xstrdup("");
    _cleanup_(freep) char *path =
        xasprintf("/api/v0/%s?" LIMIT "&detail=true" FILTER("state", IS_NOT, "%s") "%s", resource,
                  ended, job);
    send_get(call, path, call->rc->list_reply_max_bytes);
}

struct ray_call *ray_list_actors(struct ray_client *rc,
                                 const char *job_id,
                                 ray_actors_f cb,
                                 void *arg)
{
    struct ray_call *call = call_new(rc, finish_actors, arg);
    _cleanup_(freep) char *id = job_id ? call_escape(job_id) : NULL;
    call->cb.actors = cb;
    send_detail(call, "actors", "DEAD", "job_id", id);
    return call;
}

struct ray_call *ray_list_groups(struct ray_client *rc,
                                 const char *job_id,
                                 ray_groups_f cb,
                                 void *arg)
{
    struct ray_call *call = call_new(rc, finish_groups, arg);
    _cleanup_(freep) char *id = job_id ? call_escape(job_id) : NULL;
    call->cb.groups = cb;
    send_detail(call, "placement_groups", "REMOVED", "creator_job_id", id);
    return call;
}

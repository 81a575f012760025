/* SPDX-License-Identifier: Apache-2.0 */
/* services_deploy.c - see services_deploy.h.
 *
 *   a model, an application ─▶ the version
 *   a job ─▶ the step ─▶ merged before, or being merged? ─▶ the version, which awaits its model
 *                         └ no: may it be served? ─▶ export ─▶ the version, in the batch of the
 * merge
 *
 * A client that goes before its answer has asked for nothing. The body is read again once the job
 * is found: nothing of it is held meanwhile. */
#include "argusd/services/services_deploy.h"

#include <stdlib.h>

#include "argusd/api/content/ckptexport.h"
#include "argusd/checkpoints/checkpoints.h"
#include "argusd/kit/resource.h"
#include "argusd/services/serving.h"
#include "base/message.h"
#include "base/str.h"

/* ---- what is asked ---- */

/* The path names a service: a new version of one that is there. */
static bool deploy_has_path(const struct resource_ask *q)
{
    return q->name && *q->name;
}

/* The service that the path names, or one of this name; NULL: there is none yet. He may change it.
 */
static int deploy_find_service(struct resource_ask *q, const char *name, const struct served **ret)
{
    const struct served *s = deploy_has_path(q) ? resource_find(q, RESOURCE_TO_CHANGE, "deploy")
                                                : serving_find(q->a->serving, name);
    *ret = s;
    if (deploy_has_path(q))
        return s ? 0 : ERR_NOT_FOUND; /* or what q->err says */
    if (s && s->removed)
        return message_refuse(&q->err, ERR_CONFLICT, "serve_leaves",
                              MESSAGE_ARGS(MESSAGE_STR("service", s->name)));
    return s ? resource_may(q, RESOURCE_TO_CHANGE, "deploy", s, NULL) : resource_can_store(q);
}

/* Beside what the version before has, where the path names a service. */
static int deploy_read_ask(struct resource_ask *q, struct serve_ask *ret)
{
    size_t len;
    const char *body = http_req_body(q->req, &len);
    const struct served *old = NULL;
    *ret = (struct serve_ask){0};
    int r = deploy_has_path(q) ? deploy_find_service(q, NULL, &old) : 0;
    if (r < 0)
        return r;
    const struct service_version *base =
        old ? service_find_version(old, old->current ? old->current : old->wanted) : NULL;
    r = serve_ask_read(body, len, base ? &base->spec : NULL, ret, &q->problems);
    if (r == 0 && old)
        set_str(&ret->name, old->name);
    return r < 0 || old ? r : serving_fill_name(ret, &q->err);
}

/* The version is made, and the request answered. */
static void deploy_answer(struct resource_ask *q, struct serve_ask *taken)
{
    const struct served *s = NULL;
    int r = deploy_find_service(q, taken->name, &s);
    if (r == 0)
        r = serving_deploy(q->a->serving, http_req_principal(q->req), s, taken, &s, &q->err);
    if (r < 0)
        resource_refuse(q);
    else
        resource_reply(q, s, 201, api_barrier(q->a));
}

/* ---- a checkpoint ---- */

struct job_deploy {
    struct http_req *req;
    struct api *a;
    struct serve_ask ask;
    struct ckptexport *export;
};

static void job_deploy_free(struct job_deploy *d)
{
    serve_ask_release(&d->ask);
    free(d);
}

/* This model is served, which may still be in the making. Where that is refused now (its service
 * was removed in between), the merge goes on and is an export like any other. */
static void deploy_answer_model(struct resource_ask *q,
                                struct serve_ask *taken,
                                const struct registry_entry *e)
{
    char ref[REGISTRY_REF_MAX];
    _cleanup_(freep) char *model =
        xasprintf("%s:%s", e->is_common ? "common" : e->owner, registry_ref(e, ref));
    set_str(&taken->spec.model, model);
    deploy_answer(q, taken);
}

static void deploy_on_exported(struct registry_entry *e,
                               const struct registry_export *plan,
                               const struct err *err,
                               void *arg)
{
    struct job_deploy *d = arg;
    struct resource_ask q;
    (void)plan;
    http_req_on_close(d->req, NULL, NULL);
    resource_begin(&q, d->req, d->a);
    if (e)
        deploy_answer_model(&q, &d->ask, e);
    else
        api_fail(d->req, err, 0);
    resource_end(&q);
    job_deploy_free(d);
}

static void deploy_on_gone(struct http_req *req, void *arg)
{
    struct job_deploy *d = arg;
    (void)req;
    ckptexport_forget(d->export);
    job_deploy_free(d);
}

/* Nothing is merged that could not be served. taken: where 0 is returned; it is answered later. */
static int deploy_export(struct resource_ask *q,
                         struct serve_ask *taken,
                         const struct job *job,
                         int64_t step)
{
    const struct http_principal *p = http_req_principal(q->req);
    const struct registry_entry made = {
        .name = job->id, .version = step, .owner = job->user, .project = job->project};
    const struct served *s = NULL;
    int r = deploy_find_service(q, taken->name, &s);
    if (r == 0)
        r = serving_check_made(q->a->serving, p, s, taken, &made, &q->err);
    if (r < 0)
        return r;
    struct job_deploy *d = xcalloc(1, sizeof(*d));
    *d = (struct job_deploy){.req = q->req, .a = q->a, .ask = *taken};
    const struct ckptexport_ask ask = {
        .job = job, .step = step, .done = deploy_on_exported, .arg = d};
    r = ckptexport_begin(q->a, p, &ask, &d->export, &q->err);
    if (r < 0) {
        free(d);
        return r;
    }
    *taken = (struct serve_ask){0};
    http_req_on_close(q->req, deploy_on_gone, d);
    return 0;
}

static int deploy_find_best(struct resource_ask *q, const char *job, int64_t *ret)
{
    struct checkpoints_shown shown;
    checkpoints_show(q->a->checkpoints, job, &shown);
    const struct ckpt *best = ckpt_list_best(&shown.list, shown.is_min);
    int r = best ? 0 : ckpt_refuse_best(job, shown.metric, &q->err);
    if (best)
        *ret = best->step;
    checkpoints_shown_release(&shown);
    return r;
}

static int deploy_find_newest(struct resource_ask *q, const char *job, int64_t *ret)
{
    const struct ckpt_list *known = checkpoints_of(q->a->checkpoints, job);
    const struct ckpt *newest = known ? ckpt_list_newest(known) : NULL;
    if (!newest)
        return message_refuse(&q->err, ERR_REFUSED, "no_finished",
                              MESSAGE_ARGS(MESSAGE_STR("job", job)));
    *ret = newest->step;
    return 0;
}

static int deploy_find_step(struct resource_ask *q,
                            const struct serve_ask *ask,
                            const char *job,
                            int64_t *ret)
{
    *ret = ask->at;
    if (ask->at > 0)
        return 0;
    if (checkpoints_is_looking(q->a->checkpoints, job)) /* there may be a newer, a better one */
        return message_refuse(&q->err, ERR_NOT_YET, "job_just_ended",
                              MESSAGE_ARGS(MESSAGE_STR("job", job)));
    int r = ask->at == SERVE_STEP_BEST ? deploy_find_best(q, job, ret)
                                       : deploy_find_newest(q, job, ret);
    if (r == ERR_NOT_FOUND)
        q->err.code = ERR_REFUSED; /* the job is there */
    return r;
}

static void deploy_on_job(struct http_req *req,
                          struct api *a,
                          const struct job *job,
                          const struct record_extra *extra,
                          struct live *l)
{
    struct resource_ask q;
    struct serve_ask ask;
    const struct registry_entry *e = NULL;
    int64_t step = 0;
    (void)extra;
    (void)l;
    resource_begin(&q, req, a);
    int r = deploy_read_ask(&q, &ask);
    if (r == 0)
        r = api_may_change(a, http_req_principal(req), "export", job, &q.err);
    if (r == 0)
        r = deploy_find_step(&q, &ask, job->id, &step);
    if (r == 0)
        e = registry_export_find(&a->importer, &q.who, job->user, job->id, step);
    if (r == 0 && !e)
        r = deploy_export(&q, &ask, job, step);
    if (r < 0)
        resource_refuse(&q);
    else if (e)
        deploy_answer_model(&q, &ask, e);
    serve_ask_release(&ask);
    resource_end(&q);
}

/* ---- the request ---- */

void services_deploy(struct http_req *req, void *app)
{
    struct resource_ask q;
    struct serve_ask ask;
    const struct served *s;
    resource_begin(&q, req, app);
    int r = deploy_read_ask(&q, &ask);
    if (r == 0 && ask.job)
        r = deploy_find_service(&q, ask.name, &s);
    if (r < 0)
        resource_refuse(&q);
    else if (ask.job)
        api_find_job_named(req, app, ask.job, deploy_on_job);
    else
        deploy_answer(&q, &ask);
    serve_ask_release(&ask);
    resource_end(&q);
}

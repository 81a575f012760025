/* SPDX-License-Identifier: Apache-2.0 */
/* pipes_deploy.c - a step that deploys: the next version of a service, or a new service, is made as
 * the run's user would make it, and the step has succeeded once that version has the traffic.
 *
 * The version's row and the item's `left`, which names service and version, are in one batch of the
 * store: a restart finds both or none, and an item with `left` is never begun twice. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/content/registry.h"
#include "argusd/pipes/pipes_state.h"
#include "argusd/services/serving.h"
#include "base/message.h"
#include "base/str.h"
#include "core/spec/dataref.h"

static int deploy_read(const char *with, struct serve_ask *ret, struct err *err)
{
    struct problems ps = {0};
    int x = serve_ask_read(with, strlen(with), NULL, ret, &ps);
    if (x < 0)
        (void)problem_to_err(problems_first(&ps), ERR_BAD_SPEC, err); /* only fills err */
    if (x == 0 && ret->job)                                           /* said in its config */
        x = message_refuse(err, ERR_BAD_SPEC, "pipe_with_key",
                           MESSAGE_ARGS(MESSAGE_STR("key", "job"), MESSAGE_STR("uses", "deploy")));
    if (x == 0)
        x = serving_fill_name(ret, err);
    problems_release(&ps);
    return x;
}

/* ---- it begins ---- */

static int deploy_may(const struct pipe_life *r,
                      const struct http_principal *p,
                      const struct served *s,
                      struct err *err)
{
    struct access_who who;
    struct access_thing thing = service_thing(s);
    if (s->removed)
        return message_refuse(err, ERR_BUSY, "serve_leaves",
                              MESSAGE_ARGS(MESSAGE_STR("service", s->name)));
    people_who(r->pipes->a->people, p, &who);
    return access_check(&who, ACCESS_SERVICE_CHANGE, "deploy", &thing, err);
}

static void deploy_put_left(struct pipe_item *i,
                            const struct served *s,
                            const struct service_before *before)
{
    _cleanup_(freep) char *url = xasprintf("/v1/services/%s/v1", s->name);
    json_t *left = json_pack("{s:s,s:I,s:s,s:I,s:{s:I,s:b}}", "service", s->name, "version",
                             (json_int_t)s->versions[0]->n, "url", url, "made_at",
                             (json_int_t)s->versions[0]->created_at, "before", "replicas",
                             (json_int_t)before->replicas, "stopped", before->stopped);
    char *text = json_dumps(left, JSON_COMPACT);
    json_decref(left);
    set_str(&i->left, text);
    free(text);
}

int pipes_begin_deploy(struct pipe_life *r, size_t item, const char *with, struct err *err)
{
    struct serving *sv = r->pipes->a->serving;
    const struct http_principal p = pipes_principal(r);
    const struct served *s = NULL;
    struct service_before before = {0};
    struct serve_ask ask;
    int x = deploy_read(with, &ask, err);
    if (x == 0)
        s = serving_find(sv, ask.name);
    if (x == 0 && !s && !ask.project && *r->project)
        set_str(&ask.project, r->project);
    if (x == 0 && s)
        x = deploy_may(r, &p, s, err);
    if (x == 0 && s)
        before = (struct service_before){.replicas = s->replicas, .stopped = s->stopped};
    if (x == 0)
        x = serving_deploy(sv, &p, s, &ask, &s, err);
    if (x == 0) {
        deploy_put_left(&r->run.v[item], s, &before);
        pipes_save_run(r);
    }
    serve_ask_release(&ask);
    return x;
}

/* ---- how it goes ---- */

const struct service_version *pipes_deployed_version(const struct pipe_life *r,
                                                     const struct pipe_item *i,
                                                     bool *ret_is_sure)
{
    _cleanup_(json_unrefp) json_t *left = i->left ? json_loads(i->left, 0, NULL) : NULL;
    const char *name = json_get_str(left, "service", NULL);
    const struct served *s = name ? serving_find(r->pipes->a->serving, name) : NULL;
    const struct service_version *v =
        s && !s->removed ? service_find_version(s, json_get_int(left, "version", 0)) : NULL;
    int64_t made_at = json_get_int(left, "made_at", 0);
    if (ret_is_sure)
        *ret_is_sure = made_at != 0;
    return v && (!made_at || (usec_t)made_at == v->created_at) ? v : NULL;
}

bool pipes_is_deployed(const struct pipe_life *r, const struct pipe_item *i)
{
    const struct http_principal p = pipes_principal(r);
    bool is_sure = false;
    const struct service_version *v = pipes_deployed_version(r, i, &is_sure);
    return v && is_sure && v->of->current == v->n && !v->of->stopped &&
           deploy_may(r, &p, v->of, NULL) == 0;
}

static void deploy_undo(const struct pipe_life *r,
                        const struct pipe_item *i,
                        const struct service_version *v,
                        const char *actor)
{
    _cleanup_(json_unrefp) json_t *left = json_loads(i->left, 0, NULL);
    const json_t *old = json_get_object(left, "before");
    const struct service_before before = {.replicas = json_get_int(old, "replicas", 0),
                                          .stopped = json_is_true(json_object_get(old, "stopped"))};
    serving_undo_deploy(r->pipes->a->serving, v, &before, actor);
}

void pipes_call_off(struct pipe_life *r, size_t item, const char *actor)
{
    const struct pipe_item *i = &r->run.v[item];
    const struct service_version *v = pipes_deployed_version(r, i, NULL);
    if (v && v->of->wanted == v->n)
        deploy_undo(r, i, v, actor);
}

static void deploy_over(struct pipe_life *r,
                        size_t item,
                        const char *code,
                        const struct message_arg *args)
{
    char text[JOB_REASON_TEXT_MAX];
    _cleanup_(freep) char *left = xstrdup(r->run.v[item].left);
    message_write(text, sizeof(text), args);
    pipes_item_over(r, item, code ? PIPE_FAILED : PIPE_SUCCEEDED, left, code, code ? text : NULL);
    pipes_drive(r);
}

void pipes_look_deploy(struct pipe_life *r, size_t item, usec_t now)
{
    const struct pipe_item *i = &r->run.v[item];
    const struct pipe_step *s = &r->pipe->steps[i->step];
    const struct service_version *v = pipes_deployed_version(r, i, NULL);
    if (!i->left)
        return; /* it is begun in this turn, or what it names is being looked at */
    if (!v)
        deploy_over(r, item, "pipe_deploy_gone", MESSAGE_NO_ARGS);
    else if (v->ready_at && v->of->current == v->n)
        deploy_over(r, item, NULL, MESSAGE_NO_ARGS);
    else if (v->failed) {
        if (!v->of->wanted && v->of->current != v->n && v->of->last == v->n)
            deploy_undo(r, i, v, "argusd");
        deploy_over(r, item, "pipe_deploy_failed",
                    MESSAGE_ARGS(MESSAGE_NUM("version", v->n), MESSAGE_STR("service", v->of->name),
                                 MESSAGE_OF("why", v->code, v->text)));
    } else if (v->of->wanted != v->n)
        deploy_over(
            r, item, "pipe_deploy_off",
            MESSAGE_ARGS(MESSAGE_NUM("version", v->n), MESSAGE_STR("service", v->of->name)));
    else if (s->timeout && now - i->started_at >= s->timeout) {
        pipes_call_off(r, item, "argusd");
        deploy_over(r, item, "pipe_step_timeout",
                    MESSAGE_ARGS(MESSAGE_NUM("seconds", s->timeout / USEC_SEC)));
    }
}

/* ---- back to the version before ---- */

/* The item deployed by itself; no earlier run stands in for it. */
static bool deploy_is_own(const struct pipe_life *r, const struct pipe_item *i)
{
    return i->state == PIPE_SUCCEEDED && !i->cached &&
           r->pipe->steps[i->step].uses == PIPE_USES_DEPLOY;
}

/* NULL: the version of this item does not have the traffic. */
static const struct service_version *deploy_with_traffic(const struct pipe_life *r,
                                                         const struct pipe_item *i)
{
    const struct service_version *v =
        deploy_is_own(r, i) ? pipes_deployed_version(r, i, NULL) : NULL;
    return v && v->of->current == v->n && !v->of->stopped ? v : NULL;
}

static int deploy_may_go_back(const struct service_version *v,
                              const struct access_who *who,
                              struct err *err)
{
    const struct served *s = v->of;
    struct access_thing thing = service_thing(s);
    int x = access_check(who, ACCESS_SERVICE_CHANGE, "roll back", &thing, err);
    if (x == 0 && (!s->previous || !service_find_version(s, s->previous)))
        x = message_refuse(err, ERR_NOT_FOUND, "serve_no_previous",
                           MESSAGE_ARGS(MESSAGE_STR("noun", ""), MESSAGE_STR("name", s->name)));
    return x;
}

int pipes_roll_back(struct pipes *ps,
                    const struct pipe_life *run,
                    const struct access_who *who,
                    struct err *err)
{
    const struct pipe_life *r = map_find(ps->runs, run->id);
    /* Found before any goes back: then an earlier one of the same service may have the traffic. */
    _cleanup_(freep) const struct service_version **v =
        xcalloc(r->run.n + 1, sizeof(const struct service_version *));
    size_t deployed = 0, standing = 0;
    for (size_t i = 0; i < r->run.n; i++) {
        deployed += deploy_is_own(r, &r->run.v[i]);
        v[i] = deploy_with_traffic(r, &r->run.v[i]);
        int x = v[i] ? deploy_may_go_back(v[i], who, err) : 0;
        if (x < 0)
            return x;
        standing += v[i] != NULL;
    }
    if (!standing)
        return message_refuse(err, ERR_CONFLICT,
                              deployed ? "pipe_rollback_past" : "pipe_rollback_none",
                              MESSAGE_ARGS(MESSAGE_STR("run", r->id)));
    for (size_t i = 0; i < r->run.n; i++) {
        int x = v[i] ? serving_roll_back(ps->a->serving, v[i]->of, 0, who->user, err) : 0;
        if (x < 0)
            return x;
        if (v[i])
            pipes_note(r, &(struct pipes_said){.kind = "pipeline_rolled_back",
                                               .actor = who->user,
                                               .item = r->run.v[i].name});
    }
    return 0;
}

/* ---- its inputs ---- */

bool pipes_name_deploy(const struct pipe_life *r, const char *with, struct pipes_inputs *out)
{
    const struct api *a = r->pipes->a;
    const struct http_principal p = pipes_principal(r);
    struct access_who who;
    struct serve_ask ask;
    struct dataref name;
    struct registry_entry *e = NULL;
    bool ok = deploy_read(with, &ask, NULL) == 0;
    people_who(a->people, &p, &who);
    if (ok && ask.spec.model)
        ok = dataref_read(ask.spec.model, &name) &&
             registry_find(a->registry, REGISTRY_MODEL, &who, &name, &e, NULL) == 0 &&
             e->state == REGISTRY_ready;
    if (ok && e) {
        char ref[REGISTRY_REF_MAX];
        (void)buf_addf(&out->all, "\n%s\n%s", registry_ref(e, ref),
                       str_or(e->hash, "")); /* a failure shows in all.failed */
    }
    if (ok && ask.spec.code) { /* resolved as the lease's job would resolve it */
        json_t *job = json_pack("{s:s,s:s,s:s}", "workload", "ray", "entrypoint", "true",
                                "working_dir", ask.spec.code);
        char *text = json_dumps(job, JSON_COMPACT);
        json_decref(job);
        ok = pipes_name_inputs(r, text, out);
        free(text);
    }
    serve_ask_release(&ask);
    return ok;
}

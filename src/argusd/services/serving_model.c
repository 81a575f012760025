/* SPDX-License-Identifier: Apache-2.0 */
/* serving_model.c - the model of a version: what its name means for him who deploys, and, where a
 * checkpoint is still being merged to it, what has become of that.
 *
 * A version with a model_job has no replica. That job's id and the model's name and path stand in
 * the version's row, which is in the batch in which the merge was submitted: all that follows is
 * read off the registry at each turn, so that a restart goes on where it was. */
#include <stdlib.h>
#include <string.h>

#include "argusd/content/registry.h"
#include "argusd/kit/removal.h"
#include "argusd/services/serving_state.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/spec/dataref.h"

/* ---- at the deploy ---- */

int serving_find_model(struct serving *sv,
                       const struct http_principal *p,
                       const struct serve_ask *ask,
                       struct registry_entry **ret,
                       struct err *err)
{
    char ref[REGISTRY_REF_MAX];
    struct access_who who;
    struct dataref name;
    struct registry_entry *e;
    if (!ask->spec.model)
        return 0;
    people_who(sv->a->people, p, &who);
    if (!dataref_read(ask->spec.model, &name))
        return message_refuse(
            err, ERR_NOT_FOUND, "not_found",
            MESSAGE_ARGS(MESSAGE_STR("noun", "model"), MESSAGE_STR("name", ask->spec.model)));
    int r = registry_find(sv->a->registry, REGISTRY_MODEL, &who, &name, &e, err);
    if (r < 0)
        return r;
    if (e->state != REGISTRY_ready && !ask->job)
        return message_refuse(err, ERR_CONFLICT, "serve_model_state",
                              MESSAGE_ARGS(MESSAGE_STR("model", registry_ref(e, ref))));
    *ret = e;
    return 0;
}

int serving_check_model(const struct http_principal *p,
                        const char *project,
                        const struct registry_entry *e,
                        struct err *err)
{
    char ref[REGISTRY_REF_MAX];
    if (e->is_common || str_eq(e->owner, p->user) || str_eq(project, e->project))
        return 0;
    return message_refuse(err, ERR_FORBIDDEN, "serve_model_project",
                          MESSAGE_ARGS(MESSAGE_STR("model", registry_ref(e, ref)),
                                       MESSAGE_STR("project", str_or(e->project, ""))));
}

void serving_take_model(struct service_version *v, const struct registry_entry *e)
{
    char ref[REGISTRY_REF_MAX];
    set_str(&v->spec.model, registry_ref(e, ref));
    set_str(&v->spec.model_path, e->path);
    set_str(&v->spec.model_hash, e->hash);
    set_str(&v->model_job, e->state == REGISTRY_ready ? NULL : e->job);
}

/* ---- while it is made ---- */

/* NULL: it is not in the registry any more. The path tells it from another's of the same name. */
static const struct registry_entry *model_entry(const struct service_version *v)
{
    const struct registry *rg = v->of->serving->a->registry;
    const struct registry_entry *e;
    char ref[REGISTRY_REF_MAX];
    for (size_t pos = 0; (e = registry_next(rg, REGISTRY_MODEL, &pos));)
        if (e->state != REGISTRY_removing && str_eq(e->path, v->spec.model_path) &&
            str_eq(registry_ref(e, ref), v->spec.model))
            return e;
    return NULL;
}

/* ended: the job that was to make it, NULL: the model was taken away. */
static void model_came_to_nothing(struct service_version *v, const struct job *ended)
{
    char text[JOB_REASON_TEXT_MAX];
    if (ended)
        message_write(text, sizeof(text),
                      MESSAGE_ARGS(MESSAGE_STR("model", v->spec.model),
                                   MESSAGE_STR("merge", ended->id),
                                   MESSAGE_STR("state", job_state_to_string(ended->state))));
    else
        message_write(text, sizeof(text), MESSAGE_ARGS(MESSAGE_STR("model", v->spec.model)));
    serving_give_up(v, "serve_model_failed", text);
}

void serving_job_ended(struct serving *sv, const struct live *l)
{
    struct served *s;
    if (!sv)
        return;
    serving_lease_ended(sv, l);
    if (sv->closing || l->job->state == JOB_SUCCEEDED)
        return;
    for (size_t pos = 0; (s = map_next(sv->by_name, &pos, NULL));)
        for (size_t i = 0; i < s->n_versions; i++)
            if (!s->versions[i]->failed && str_eq(s->versions[i]->model_job, l->job->id))
                model_came_to_nothing(s->versions[i], l->job);
}

/* One that failed is loaded no more, and of a service that is removed only what still finishes
 * its requests is there. A model that is still being made may go: its version then fails. */
static bool model_is_kept(const struct service_version *v)
{
    return v->spec.model && !v->model_job && (v->n_units || (!v->failed && !v->of->removed));
}

/* The version that serves this model, or could be gone back to; NULL: none of this service. */
static const struct service_version *model_version(const struct served *s,
                                                   const struct registry_entry *e)
{
    char ref[REGISTRY_REF_MAX];
    (void)registry_ref(e, ref);
    for (size_t i = 0; i < s->n_versions; i++) {
        const struct service_version *v = s->versions[i];
        if (model_is_kept(v) && str_eq(v->spec.model_path, e->path) && str_eq(v->spec.model, ref))
            return v;
    }
    return NULL;
}

bool serving_keeps(const struct registry_entry *e,
                   const struct access_who *who,
                   struct registry_keeper *ret,
                   void *arg)
{
    const struct serving *sv = arg;
    const struct served *s;
    for (size_t pos = 0; (s = serving_next(sv, &pos));) {
        const struct service_version *v = model_version(s, e);
        if (!v)
            continue;
        *ret = (struct registry_keeper){service_is_seen(s, who) ? s->name : "", v->n};
        return true;
    }
    return false;
}

void serving_add_removal_users(const struct serving *sv, struct removal *r)
{
    const struct served *s;
    if (!r->entry || r->entry->kind != REGISTRY_MODEL)
        return;
    for (size_t pos = 0; (s = serving_next(sv, &pos));) {
        const struct removal_user user = {
            .kind = REMOVAL_SERVICE, .name = s->name, .owner = s->owner, .keeps = true};
        if (model_version(s, r->entry))
            removal_add(r, &user, service_is_seen(s, r->who));
    }
}

void serving_turn_model(struct service_version *v)
{
    if (!v->model_job || v->failed)
        return;
    const struct registry_entry *e = model_entry(v);
    if (!e) {
        model_came_to_nothing(v, NULL);
    } else if (e->state == REGISTRY_ready || !str_eq(e->job, v->model_job)) {
        serving_take_model(v, e);
        if (!v->model_job && v->n == v->of->wanted) {
            service_take_replicas(v->of, v);
            service_changed(v->of);
        }
        serving_save_version(v);
    }
}

void service_version_reason(const struct service_version *v, struct reason *ret)
{
    *ret = (struct reason){0};
    if (v->failed) {
        text_copy(ret->code, str_or(v->code, ""));
        text_copy(ret->text, str_or(v->text, ""));
    } else if (service_version_sleeps(v)) {
        serving_say_asleep(v->of, ret);
    } else if (v->model_job) {
        const struct registry_entry *e = model_entry(v);
        text_copy(ret->code, e && !e->is_made ? "serve_model_looked_at" : "serve_model_merged");
        message_write(
            ret->text, sizeof(ret->text),
            MESSAGE_ARGS(MESSAGE_STR("model", v->spec.model), MESSAGE_STR("job", v->model_job)));
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* onward_page.c - /v1/models/{name}/uses: where a version of a model went. Services that have it,
 * steps of runs that made it or read it, models that were made of it, and jobs that had it among
 * their inputs. It stands in this room because no lower one knows services and runs.
 *
 * Of each kind the newest ONWARD_OF_KIND are told, each one only to who may see it. Jobs that are
 * over are asked for in the store, one after the other: a model remembers REGISTRY_USED_MAX. */
#include <stdlib.h>
#include <string.h>

#include "argusd/content/registry.h"
#include "argusd/kit/part.h"
#include "argusd/people/people_rules.h"
#include "argusd/pipes/pipes_state.h"
#include "argusd/services/serving.h"
#include "base/message.h"
#include "base/str.h"

enum { ONWARD_OF_KIND = 100, ONWARD_BYTES_MAX = 1 << 20 };

/* X(enumerator, word) */
#define ONWARD_KINDS(X)                                                                            \
    X(ONWARD_SERVICE, "service")                                                                   \
    X(ONWARD_RUN, "run")                                                                           \
    X(ONWARD_MODEL, "model")                                                                       \
    X(ONWARD_JOB, "job")
enum onward_kind {
#define X(e, word) e,
    ONWARD_KINDS(X)
#undef X
        ONWARD_KIND_COUNT
};
#define X(e, word) word,
static const char *const onward_words[] = {ONWARD_KINDS(X) NULL};
#undef X

struct onward_use {
    int kind; /* enum onward_kind */
    char *name, *owner;
    char *step, *state, *endpoint; /* NULL: it has none */
    int64_t version;
    bool made, has_traffic, said;
};
#define USE(key, ftype, ...) FIELD_AT(onward_use, #key, ftype, key, __VA_ARGS__)
static const struct field onward_use_rows[] = {
    USE(kind, FIELD_ENUM, .names = onward_words),
    USE(name,
        FIELD_STR,
        .flags = FIELD_ALWAYS,
        .doc = "of the service, the run of a pipeline, the model with its version, or the job"),
    USE(owner, FIELD_STR, .flags = FIELD_ALWAYS),
    USE(step, FIELD_STR, .doc = "step of the run"),
    USE(made, FIELD_BOOL, .doc = "the step made the model; else it read it"),
    USE(state, FIELD_STR, .doc = "of the step or the job"),
    USE(version, FIELD_INT, .doc = "version of the service; 0: it is none"),
    USE(has_traffic, FIELD_BOOL, .doc = "that version answers requests"),
    USE(endpoint, FIELD_STR, .doc = "base URL of the service, below this server"),
    USE(said, FIELD_BOOL, .doc = "only the importer of that model says so"),
};
static const struct field_table onward_use_table =
    FIELD_TABLE("ModelUse", onward_use_rows, onward_use);

struct onward_page {
    char ref[REGISTRY_REF_MAX];
    struct field_list uses;
    int64_t jobs;
    bool more;
};
#define SHOWS(key, ftype, ...) FIELD_AT(onward_page, #key, ftype, key, __VA_ARGS__)
static const struct field onward_rows[] = {
    SHOWS(ref, FIELD_TEXT, .size = REGISTRY_REF_MAX, .flags = FIELD_ALWAYS),
    SHOWS(uses,
          FIELD_LIST,
          .of = &onward_use_table,
          .flags = FIELD_ALWAYS,
          .doc = "services, runs, models and jobs that you may see; jobs are the newest 50"),
    SHOWS(jobs, FIELD_INT, .doc = "jobs that had it among their inputs, in all"),
    SHOWS(more, FIELD_BOOL, .doc = "there are more services, runs or models than are told"),
};
static const struct field_table onward_table = FIELD_TABLE("ModelUses", onward_rows, onward_page);

/* One request. */
struct onward {
    struct http_req *req;
    struct api *a;
    struct access_who who;           /* until the loop goes on */
    const struct registry_entry *of; /* the same */
    struct onward_page page;
    size_t told[ONWARD_KIND_COUNT]; /* those beyond the ceiling counted */
    struct strv jobs;               /* ids, the oldest first */
    size_t left;                    /* the first so many were not asked for yet */
    struct store_read *read;
};

static void onward_free(struct onward *o)
{
    field_release(&onward_table, &o->page);
    strv_release(&o->jobs);
    free(o);
}

/* NULL: there are enough of that kind. */
static struct onward_use *onward_add(struct onward *o,
                                     enum onward_kind kind,
                                     const char *name,
                                     const char *owner)
{
    if (o->told[kind]++ >= ONWARD_OF_KIND) {
        o->page.more = true;
        return NULL;
    }
    struct onward_use *v = xrealloc(o->page.uses.v, o->page.uses.n + 1, sizeof(*v));
    o->page.uses.v = v;
    v += o->page.uses.n++;
    *v = (struct onward_use){.kind = (int)kind, .name = xstrdup(name), .owner = xstrdup(owner)};
    return v;
}

/* ---- services ---- */

static bool onward_serves(const struct onward *o, const struct service_version *v)
{
    return v && v->spec.model && str_eq(v->spec.model, o->page.ref) &&
           str_eq(v->spec.model_path, o->of->path);
}

static void onward_add_services(struct onward *o)
{
    const struct served *s;
    for (size_t pos = 0; (s = serving_next(o->a->serving, &pos));) {
        if (s->removed || !service_is_seen(s, &o->who))
            continue;
        for (size_t i = 0; i < s->n_versions; i++) {
            const struct service_version *v = s->versions[i];
            struct onward_use *u =
                onward_serves(o, v) ? onward_add(o, ONWARD_SERVICE, s->name, s->owner) : NULL;
            if (!u)
                continue;
            u->version = v->n;
            u->has_traffic = s->current == v->n && !s->stopped;
            u->endpoint = xasprintf("/v1/services/%s/v1", s->name);
        }
    }
}

/* ---- runs of pipelines ---- */

/* Among the inputs that it was given by a name of the registry. A data set may have the name, too.
 */
static bool onward_item_reads(const struct onward *o, const struct pipe_item *i)
{
    const char *key;
    json_t *v;
    bool found = false;
    if (!i->contents || !strstr(i->contents, o->page.ref)) /* reading one costs */
        return false;
    _cleanup_(freep) char *value = pipes_content(o->page.ref, str_or(o->of->hash, ""));
    _cleanup_(json_unrefp) json_t *all = json_loads(i->contents, 0, NULL);
    json_object_foreach (all, key, v)
        found = found || (str_starts(key, "model_id ") && str_eq(json_string_value(v), value));
    return found;
}

/* The version of a service that it made has the model. */
static bool onward_item_serves(const struct onward *o,
                               const struct pipe_life *r,
                               const struct pipe_item *i)
{
    bool is_sure = false;
    const struct service_version *v = pipes_deployed_version(r, i, &is_sure);
    return is_sure && onward_serves(o, v);
}

static void onward_add_item(struct onward *o, const struct pipe_life *r, const struct pipe_item *i)
{
    const struct pipe_step *s = &r->pipe->steps[i->step];
    bool made = s->uses == PIPE_USES_PUBLISH && i->job && str_eq(i->job, o->of->job);
    if (!made && !onward_item_reads(o, i) &&
        !(s->uses == PIPE_USES_DEPLOY && onward_item_serves(o, r, i)))
        return;
    struct onward_use *u = onward_add(o, ONWARD_RUN, r->id, r->user);
    if (!u)
        return;
    u->step = xstrdup(i->name);
    u->state = xstrdup(pipe_state_names[i->state]);
    u->made = made;
}

static void onward_add_runs(struct onward *o)
{
    const struct pipe_life *r;
    for (size_t pos = 0;
         o->told[ONWARD_RUN] <= ONWARD_OF_KIND && (r = pipes_next_run(o->a->pipes, &pos));) {
        const struct access_thing thing = pipe_life_thing(r);
        if (!r->pipe || access_check(&o->who, ACCESS_PIPELINE_SEE, "see", &thing, NULL) < 0)
            continue;
        for (size_t i = 0; i < r->run.n; i++)
            onward_add_item(o, r, &r->run.v[i]);
    }
}

/* ---- models ---- */

/* Its base model is this one, by name and content. What argusd recorded of a job is for who may see
 * the job and for the owner. */
static bool onward_is_base_of(const struct onward *o, const struct registry_entry *e)
{
    struct api_eyes eyes = {o->a, http_req_principal(o->req)};
    const json_t *base = json_get_object(e->lineage, "model");
    if (!base || !str_eq(json_get_str(base, "ref", NULL), o->page.ref) ||
        !str_eq(json_get_str(base, "hash", ""), str_or(o->of->hash, "")))
        return false;
    return !e->is_recorded || str_eq(e->owner, o->who.user) ||
           api_sees_job(json_get_str(e->lineage, "job", ""), &eyes);
}

static void onward_add_models(struct onward *o)
{
    const struct registry_entry *e;
    char ref[REGISTRY_REF_MAX];
    for (size_t pos = 0; (e = registry_next(o->a->registry, REGISTRY_MODEL, &pos));) {
        if (e->state == REGISTRY_removing || !onward_is_base_of(o, e) ||
            registry_check(e, &o->who, ACCESS_DATA_SEE, "see", NULL) < 0)
            continue;
        struct onward_use *u = onward_add(o, ONWARD_MODEL, registry_ref(e, ref), e->owner);
        if (u)
            u->said = !e->is_recorded;
    }
}

/* ---- jobs ---- */

static void onward_add_job(struct onward *o, const struct job *job)
{
    if (people_check_job(o->a->people, http_req_principal(o->req), ACCESS_JOB_SEE, "see", job,
                         NULL) < 0)
        return;
    struct onward_use *u = onward_add(o, ONWARD_JOB, job->id, job->user);
    if (u)
        u->state = xstrdup(job_state_to_string(job->state));
}

static void onward_answer(struct onward *o)
{
    struct buf out = BUF_INIT(ONWARD_BYTES_MAX);
    struct jout j = jout_begin(&out);
    http_req_on_close(o->req, NULL, NULL);
    field_to_json(&onward_table, &o->page, FIELD_ALL, FIELD_PAGE, &j, NULL);
    http_reply_json(o->req, 200, &out, api_reader_barrier(o->a));
    buf_release(&out);
    onward_free(o);
}

static void onward_on_close(struct http_req *req, void *arg)
{
    struct onward *o = arg;
    (void)req;
    store_read_cancel(o->read); /* the request waits for nothing else */
    onward_free(o);
}

static void onward_ask_jobs(struct onward *o);

static void onward_on_job(const struct store_result *r, void *arg)
{
    struct onward *o = arg;
    struct record_extra extra = {0};
    struct job *job = NULL;
    const char *id = o->jobs.v[o->left];
    o->read = NULL;
    if (!r->err.code && r->njobs == 1 && str_eq(r->jobs[0].id, id) &&
        record_to_job(&r->jobs[0], &job, &extra, NULL) == 0)
        onward_add_job(o, job);
    record_extra_release(&extra);
    job_free(job);
    onward_ask_jobs(o);
}

/* The newest first. What the store does not have any more is left out. */
static void onward_ask_jobs(struct onward *o)
{
    while (o->left) {
        const char *id = o->jobs.v[--o->left];
        const struct live *l = jobs_find_any(o->a->jobs, id);
        if (l) {
            onward_add_job(o, l->job);
            continue;
        }
        const struct store_job_ref ref = {.ref = id, .is_id = true};
        const struct store_then then = {.done = onward_on_job, .arg = o};
        o->read = store_find_job(o->a->store, &ref, &then);
        if (o->read) {
            http_req_on_close(o->req, onward_on_close, o);
            return;
        }
    }
    onward_answer(o);
}

static void onward_get(struct http_req *req, void *app)
{
    struct api *a = app;
    struct err err = {0};
    struct dataref name;
    struct registry_entry *e = NULL;
    struct onward *o = xcalloc(1, sizeof(*o));
    *o = (struct onward){.req = req, .a = a};
    people_who(a->people, http_req_principal(req), &o->who);
    const char *asked = http_req_param(req, "name");
    int r = dataref_read(asked, &name) && !name.file
                ? registry_find(a->registry, REGISTRY_MODEL, &o->who, &name, &e, &err)
                : message_refuse(
                      &err, ERR_NOT_FOUND, "not_found",
                      MESSAGE_ARGS(MESSAGE_STR("noun", "model"), MESSAGE_STR("name", asked)));
    if (r == 0)
        r = registry_check(e, &o->who, ACCESS_DATA_SEE, "see", &err);
    if (r < 0 || !e) {
        api_fail(req, &err, 0);
        onward_free(o);
        return;
    }
    o->of = e;
    (void)registry_ref(e, o->page.ref);
    o->page.jobs = e->uses;
    strv_copy(&o->jobs, &e->used);
    o->left = o->jobs.n;
    onward_add_services(o);
    onward_add_models(o);
    onward_add_runs(o);
    o->of = NULL;
    onward_ask_jobs(o);
}

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/models/{name}/uses",
     .least = HTTP_ROLE_VIEWER,
     .handle = onward_get,
     .summary = "where a version of a model went: services, runs of pipelines, models, jobs",
     .reply_schema = "ModelUses"},
};
static const struct http_schema schemas[] = {
    {.name = "ModelUses", .table = &onward_table},
    {.name = "ModelUse", .table = &onward_use_table},
};
const struct api_part part_onward_page = {rows, array_len(rows), schemas, array_len(schemas)};

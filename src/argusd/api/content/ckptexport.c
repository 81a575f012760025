/* SPDX-License-Identifier: Apache-2.0 */
/* ckptexport.c - POST /v1/jobs/{id}/checkpoints/{step}:export: a checkpoint as a model; and the
 * same for others, see ckptexport.h.
 *
 *   look (worker): can it be read? ─▶ lineage ─▶ entry of the registry ─▶ submit of the merge ─▶
 * 201
 *
 * The checkpoint is in use from before the look until the merge says so itself. A client that goes
 * meanwhile has asked for nothing. What follows is imports/registry_export.h's. */
#include "argusd/api/content/ckptexport.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/api/jobs/retry.h"
#include "argusd/archive/archives.h"
#include "argusd/checkpoints/checkpoints.h"
#include "argusd/ground/work.h"
#include "argusd/imports/lineage.h"
#include "argusd/kit/part.h"
#include "argusd/submit/submit.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "fsroot/ckpt/checkpoint.h"

enum { ANSWER_MAX = 4096 };

struct ckptexport {
    struct api *a;
    struct http_principal by, who; /* who asks; whose job and model it will be */
    char *root, *id, *project;     /* of the training */
    char *name;                    /* of the model */
    bool is_common;
    int64_t step;
    struct ckptexport_ask ask; /* done is NULL: nobody waits for it any more */
    struct ckptexport **place; /* where its asker has it */
    struct registry_export plan;
    struct checkpoints_use use; /* by the plan's spec */
    struct ckpt_list known;
    struct registry_entry *entry; /* NULL: not yet */
    struct submit *submit;        /* NULL: none is under way */
    int result;                   /* of the look */
    struct err err;
};

static void export_free(struct ckptexport *x)
{
    checkpoints_unuse(&x->use);
    ckpt_list_release(&x->known);
    registry_export_release(&x->plan);
    free(x->root);
    free(x->id);
    free(x->project);
    free(x->name);
    free(x);
}

static void export_freep(struct ckptexport **x)
{
    if (*x)
        export_free(*x);
}

/* e NULL: it comes to nothing. */
static void export_end(struct ckptexport *x, struct registry_entry *e, const struct err *err)
{
    *x->place = NULL;
    x->ask.done(e, e ? &x->plan : NULL, err, x->ask.arg);
    export_free(x);
}

void ckptexport_forget(struct ckptexport *x)
{
    if (x && x->submit) {
        submit_own_forget(x->submit);
        registry_drop(x->a->registry, x->entry);
        export_free(x);
    } else if (x) {
        x->ask.done = NULL; /* a worker or the store is asked: they free it */
    }
}

/* ---- the submit ---- */

static void export_tell(const struct ckptexport *x)
{
    _cleanup_(freep) char *object = xasprintf("model/%s", x->entry->key);
    struct access_thing thing = registry_thing(x->entry);
    const struct events_note note = {
        .thing = &thing, .kind = "model_import", .actor = x->by.user, .object = object};
    events_add(x->a->events, &note, clock_wall());
}

static void export_on_submitted(struct live *l, const struct err *err, void *arg)
{
    struct ckptexport *x = arg;
    if (!l) {
        registry_drop(x->a->registry, x->entry);
        export_end(x, NULL, err);
        return;
    }
    registry_export_begun(x->entry);
    export_tell(x);
    export_end(x, x->entry, NULL);
}

static void export_on_lineage(json_t *lineage, void *arg)
{
    struct ckptexport *x = arg;
    struct err err = {0};
    const struct registry_export_as as = {
        .who = &x->who, .name = x->name, .project = x->project, .is_common = x->is_common};
    if (!x->ask.done) {
        json_decref(lineage);
        export_free(x);
        return;
    }
    int r = registry_export_add(&x->a->importer, &x->plan, &as, lineage, &x->entry, &err);
    if (r < 0) {
        export_end(x, NULL, &err);
        return;
    }
    const struct submit_own own = {
        .who = x->who,
        .spec = xstrdup(x->plan.spec),
        .done = export_on_submitted,
        .arg = x,
        .origin = {.job = xstrdup(x->id), .how = FAMILY_EXPORT, .step = x->step}};
    submit_own(x->a, &own, &x->submit); /* x may be gone behind it */
}

/* ---- the look ---- */

static void export_run_look(void *arg)
{
    struct ckptexport *x = arg;
    x->result = fsroot_checkpoint_find(x->root, x->id, &x->known, x->step, &x->step, &x->err);
}

static void export_done_look(void *arg)
{
    struct ckptexport *x = arg;
    if (!x->ask.done) {
        export_free(x);
    } else if (x->result < 0) {
        const struct ckpt *c = ckpt_list_find(&x->known, x->step);
        x->err.code = x->result != ERR_NOT_FOUND ? ERR_UNAVAILABLE : c ? ERR_REFUSED : x->result;
        export_end(x, NULL, &x->err);
    } else {
        lineage_find(&x->a->importer, &x->who, x->plan.source, export_on_lineage, x);
    }
}

/* ---- it begins ---- */

/* As the job is called, cut to what a model may be called, with the step. */
static char *export_name(const struct ckptexport *x)
{
    char step[24];
    text_printf(step, "-%lld", (long long)x->step);
    return xasprintf("%.*s%s", DATAREF_NAME_MAX - (int)strlen(step), x->id, step);
}

static void export_keep(struct ckptexport *x)
{
    const struct ckpt_list *known = checkpoints_of(x->a->checkpoints, x->id);
    x->use.user = x->who.user;
    x->use.text = x->plan.spec;
    checkpoints_use(x->a->checkpoints, &x->use);
    if (known)
        ckpt_list_copy(&x->known, known);
}

static int export_check(struct ckptexport *x, const struct job *job, struct err *err)
{
    int r = api_may_change(x->a, &x->by, "export", job, err);
    if (r == 0)
        r = api_find_owner(x->a, &x->by, job, "not_exported", &x->who, err);
    if (r == 0)
        r = dataref_check_name("model", x->name, err);
    if (r == 0)
        r = archives_check_files(x->a->archives, job->id, err);
    if (r == 0)
        r = cluster_check_root_answers(x->a->cluster, err);
    if (r == 0)
        r = registry_export_plan(&x->a->importer, job, x->step, &x->plan, err);
    if (r < 0)
        return r;
    export_keep(x);
    return checkpoints_check_use(&x->use, err);
}

int ckptexport_begin(struct api *a,
                     const struct http_principal *p,
                     const struct ckptexport_ask *ask,
                     struct ckptexport **ret,
                     struct err *err)
{
    _cleanup_(export_freep) struct ckptexport *x = xcalloc(1, sizeof(*x));
    *x = (struct ckptexport){.a = a,
                             .by = *p,
                             .root = xstrdup(a->settings->shared_root),
                             .id = xstrdup(ask->job->id),
                             .project = xstrdup(str_or(ask->job->project, "")),
                             .is_common = ask->is_common,
                             .step = ask->step,
                             .ask = *ask,
                             .place = ret};
    x->name = ask->name ? xstrdup(ask->name) : export_name(x);
    int r = export_check(x, ask->job, err);
    if (r < 0)
        return r;
    *ret = x;
    work_start_for(a->loop, p->user, export_run_look, export_done_look, x);
    x = NULL;
    return 0;
}

/* ---- the request ---- */

struct export_page {
    const char *job, *path;
    char model[REGISTRY_REF_MAX];
};
static const struct field export_rows[] = {
    FIELD_AT(export_page, "job", FIELD_STR, job, .flags = FIELD_ALWAYS, .doc = "job that merges"),
    FIELD_AT(export_page,
             "model",
             FIELD_TEXT,
             model,
             .size = REGISTRY_REF_MAX,
             .doc = "entry of the registry, ready once its files were looked at"),
    FIELD_AT(export_page,
             "path",
             FIELD_STR,
             path,
             .flags = FIELD_ALWAYS,
             .doc = "directory of the model"),
};
static const struct field_table export_table =
    FIELD_TABLE("CheckpointExported", export_rows, export_page);

static const struct field export_form_rows[] = {OPT_TEXT("name"), OPT_BOOLEAN("hf"),
                                                OPT_BOOLEAN("common")};
static const struct field_table export_form = ACTION_FORM(export_form_rows);

struct export_request {
    struct http_req *req;
    struct api *a;
    struct ckptexport *export;
};

static void export_answer(const struct export_request *r,
                          const struct registry_entry *e,
                          const struct registry_export *plan)
{
    struct buf out = BUF_INIT(ANSWER_MAX);
    struct jout j = jout_begin(&out);
    struct export_page page = {.job = plan->id, .path = plan->target};
    (void)registry_ref(e, page.model);
    field_to_json(&export_table, &page, FIELD_ALL, FIELD_PAGE, &j, NULL);
    http_reply_json(r->req, 201, &out, api_barrier(r->a));
    buf_release(&out);
}

static void export_on_done(struct registry_entry *e,
                           const struct registry_export *plan,
                           const struct err *err,
                           void *arg)
{
    struct export_request *r = arg;
    http_req_on_close(r->req, NULL, NULL);
    if (e)
        export_answer(r, e, plan);
    else
        api_fail(r->req, err, 0);
    free(r);
}

static void export_on_gone(struct http_req *req, void *arg)
{
    struct export_request *r = arg;
    (void)req;
    ckptexport_forget(r->export);
    free(r);
}

static int export_read_step(const struct http_req *req, int64_t *ret, struct err *err)
{
    const char *text = str_or(http_req_param(req, "step"), "");
    if (str_to_int(text, 1, INT32_MAX, ret, NULL) < 0)
        return message_refuse(err, ERR_BAD_REQUEST, "no_step",
                              MESSAGE_ARGS(MESSAGE_STR("step", text)));
    return 0;
}

static int export_begin(struct export_request *x,
                        const struct job *job,
                        const json_t *body,
                        struct err *err)
{
    struct ckptexport_ask ask = {.job = job,
                                 .name = json_get_str(body, "name", NULL),
                                 .is_common = json_get_bool(body, "common", false),
                                 .done = export_on_done,
                                 .arg = x};
    int r = export_read_step(x->req, &ask.step, err);
    if (r == 0 && !json_get_bool(body, "hf", true))
        r = message_refuse(err, ERR_BAD_REQUEST, "export_format", MESSAGE_NO_ARGS);
    return r < 0 ? r : ckptexport_begin(x->a, http_req_principal(x->req), &ask, &x->export, err);
}

static void export_job(struct http_req *req,
                       struct api *a,
                       const struct job *job,
                       const struct record_extra *extra,
                       struct live *l)
{
    struct err err = {0};
    (void)extra;
    (void)l;
    _cleanup_(json_unrefp) json_t *body = api_read_action(req, &export_form);
    if (!body)
        return; /* that was answered */
    struct export_request *x = xcalloc(1, sizeof(*x));
    *x = (struct export_request){.req = req, .a = a};
    if (export_begin(x, job, body, &err) < 0) {
        api_fail(req, &err, 0);
        free(x);
        return;
    }
    http_req_on_close(req, export_on_gone, x);
}

static void api_jobs_checkpoints_export(struct http_req *req, void *app)
{
    api_find_job(req, app, export_job);
}

static const struct http_route rows[] = {
    {.method = "POST",
     .pattern = "/v1/jobs/{id}/checkpoints/{step}:export",
     .example = "10",
     .least = HTTP_ROLE_USER,
     .max_body = 4096,
     .handle = api_jobs_checkpoints_export,
     .summary =
         "merge a checkpoint's shards, as a job, to a model that is registered once it ended "
         "well",
     .request_schema = "CheckpointExport",
     .reply_schema = "CheckpointExported",
     .reply_status = 201},
};
static const struct http_schema schemas[] = {
    {.name = "CheckpointExport", .table = &export_form, .is_form = true},
    {.name = "CheckpointExported", .table = &export_table},
};
const struct api_part part_ckptexport = {rows, array_len(rows), schemas, array_len(schemas)};

/* SPDX-License-Identifier: Apache-2.0 */
/* ckptexport.c - POST /v1/jobs/{id}/checkpoints/{step}:export: a checkpoint as a model.
 *
 *   look (worker): can it be read? ─▶ lineage ─▶ entry of the registry ─▶ submit of the merge ─▶
 * 201
 *
 * The checkpoint is in use from before the look until the merge says so itself. A client that goes
 * meanwhile has asked for nothing. What follows is imports/registry_export.h's. */
#include <stdlib.h>
#include <string.h>

#include "argusd/api/jobs/retry.h"
#include "argusd/archive/archives.h"
#include "argusd/checkpoints/checkpoints.h"
#include "argusd/ground/work.h"
#include "argusd/imports/lineage.h"
#include "argusd/imports/registry_export.h"
#include "argusd/kit/api.h"
#include "argusd/kit/part.h"
#include "argusd/submit/submit.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "fsroot/ckpt/checkpoint.h"

enum { ANSWER_MAX = 4096 };

struct exporting {
    struct http_req *req; /* NULL: the client has gone */
    struct api *a;
    struct http_principal who; /* whose job and model it will be */
    char *root, *id, *project; /* of the training */
    char *name;                /* of the model */
    bool is_common;
    int64_t step;
    struct registry_export plan;
    struct checkpoints_use use; /* by the plan's spec */
    struct ckpt_list known;
    struct registry_entry *entry; /* NULL: not yet */
    struct submit *submit;        /* NULL: none is under way */
    int result;                   /* of the look */
    struct err err;
};

static void export_free(struct exporting *x)
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

static void export_freep(struct exporting **x)
{
    if (*x)
        export_free(*x);
}

static void export_refuse(struct exporting *x, const struct err *err)
{
    http_req_on_close(x->req, NULL, NULL);
    api_fail(x->req, err, 0);
    export_free(x);
}

/* While a worker or the store is asked: they free it. */
static void export_on_gone(struct http_req *req, void *arg)
{
    struct exporting *x = arg;
    (void)req;
    x->req = NULL;
}

/* ---- the answer ---- */

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

static void export_tell(const struct exporting *x)
{
    _cleanup_(freep) char *object = xasprintf("model/%s", x->entry->key);
    struct access_thing thing = registry_thing(x->entry);
    const struct events_note note = {.thing = &thing,
                                     .kind = "model_import",
                                     .actor = http_req_principal(x->req)->user,
                                     .object = object};
    events_add(x->a->events, &note, clock_wall());
}

static void export_answer(struct exporting *x)
{
    struct buf out = BUF_INIT(ANSWER_MAX);
    struct jout j = jout_begin(&out);
    struct export_page page = {.job = x->plan.id, .path = x->plan.target};
    (void)registry_ref(x->entry, page.model);
    field_to_json(&export_table, &page, FIELD_ALL, FIELD_PAGE, &j, NULL);
    http_reply_json(x->req, 201, &out, api_barrier(x->a));
    buf_release(&out);
}

/* ---- the submit ---- */

static void export_on_submitted(struct live *l, const struct err *err, void *arg)
{
    struct exporting *x = arg;
    if (!l) {
        registry_drop(x->a->registry, x->entry);
        export_refuse(x, err);
        return;
    }
    registry_export_begun(x->entry);
    http_req_on_close(x->req, NULL, NULL);
    export_tell(x);
    export_answer(x);
    export_free(x);
}

static void export_on_gone_late(struct http_req *req, void *arg)
{
    struct exporting *x = arg;
    (void)req;
    submit_own_forget(x->submit);
    registry_drop(x->a->registry, x->entry);
    export_free(x);
}

static void export_on_lineage(json_t *lineage, void *arg)
{
    struct exporting *x = arg;
    struct err err = {0};
    const struct registry_export_as as = {
        .who = &x->who, .name = x->name, .project = x->project, .is_common = x->is_common};
    if (!x->req) {
        json_decref(lineage);
        export_free(x);
        return;
    }
    int r = registry_export_add(&x->a->importer, &x->plan, &as, lineage, &x->entry, &err);
    if (r < 0) {
        export_refuse(x, &err);
        return;
    }
    http_req_on_close(x->req, export_on_gone_late, x);
    const struct submit_own own = {
        .who = x->who, .spec = xstrdup(x->plan.spec), .done = export_on_submitted, .arg = x};
    submit_own(x->a, &own, &x->submit); /* x may be gone behind it */
}

/* ---- the look ---- */

static void export_run_look(void *arg)
{
    struct exporting *x = arg;
    x->result = fsroot_checkpoint_find(x->root, x->id, &x->known, x->step, &x->step, &x->err);
}

static void export_done_look(void *arg)
{
    struct exporting *x = arg;
    if (!x->req) {
        export_free(x);
    } else if (x->result < 0) {
        const struct ckpt *c = ckpt_list_find(&x->known, x->step);
        x->err.code = x->result != ERR_NOT_FOUND ? ERR_UNAVAILABLE : c ? ERR_REFUSED : x->result;
        export_refuse(x, &x->err);
    } else {
        lineage_find(&x->a->importer, &x->who, x->plan.source, export_on_lineage, x);
    }
}

/* ---- what is asked ---- */

static const struct field export_form_rows[] = {OPT_TEXT("name"), OPT_BOOLEAN("hf"),
                                                OPT_BOOLEAN("common")};
static const struct field_table export_form = ACTION_FORM(export_form_rows);

/* As the job is called, cut to what a model may be called, with the step. */
static char *export_name(const struct exporting *x)
{
    char step[24];
    text_printf(step, "-%lld", (long long)x->step);
    return xasprintf("%.*s%s", DATAREF_NAME_MAX - (int)strlen(step), x->id, step);
}

static int export_read_body(struct exporting *x, struct err *err)
{
    _cleanup_(json_unrefp) json_t *body = api_read_action(x->req, &export_form);
    if (!body)
        return -ECANCELED;
    const char *name = json_get_str(body, "name", NULL);
    if (!json_get_bool(body, "hf", true))
        return message_refuse(err, ERR_BAD_REQUEST, "export_format", MESSAGE_NO_ARGS);
    x->is_common = json_get_bool(body, "common", false);
    x->name = name ? xstrdup(name) : export_name(x);
    return dataref_check_name("model", x->name, err);
}

static int export_read_step(struct exporting *x, struct err *err)
{
    const char *text = str_or(http_req_param(x->req, "step"), "");
    if (str_to_int(text, 1, INT32_MAX, &x->step, NULL) < 0)
        return message_refuse(err, ERR_BAD_REQUEST, "no_step",
                              MESSAGE_ARGS(MESSAGE_STR("step", text)));
    return 0;
}

static void export_keep(struct exporting *x)
{
    const struct ckpt_list *known = checkpoints_of(x->a->checkpoints, x->id);
    x->use.user = x->who.user;
    x->use.text = x->plan.spec;
    checkpoints_use(x->a->checkpoints, &x->use);
    if (known)
        ckpt_list_copy(&x->known, known);
}

static int export_check(struct exporting *x, const struct job *job, struct err *err)
{
    const struct http_principal *p = http_req_principal(x->req);
    int r = api_may_change(x->a, p, "export", job, err);
    if (r == 0)
        r = api_find_owner(x->a, p, job, "not_exported", &x->who, err);
    if (r == 0)
        r = export_read_step(x, err);
    if (r == 0)
        r = export_read_body(x, err);
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

static void export_job(struct http_req *req,
                       struct api *a,
                       const struct job *job,
                       const struct record_extra *extra,
                       struct live *l)
{
    _cleanup_(export_freep) struct exporting *x = xcalloc(1, sizeof(*x));
    struct err err = {0};
    (void)extra;
    (void)l;
    *x = (struct exporting){.req = req,
                            .a = a,
                            .root = xstrdup(a->settings->shared_root),
                            .id = xstrdup(job->id),
                            .project = xstrdup(str_or(job->project, ""))};
    int r = export_check(x, job, &err);
    if (r < 0) {
        if (r != -ECANCELED) /* that was answered */
            api_fail(req, &err, 0);
        return;
    }
    http_req_on_close(req, export_on_gone, x);
    work_start_for(a->loop, http_req_principal(req)->user, export_run_look, export_done_look, x);
    x = NULL;
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

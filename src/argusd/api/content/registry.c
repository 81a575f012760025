/* SPDX-License-Identifier: Apache-2.0 */
/* registry.c - data sets and models: list, look, import, remove. */
#include <stdlib.h>
#include <string.h>

#include "argusd/api/content/removalplan.h"
#include "argusd/content/registry.h"
#include "argusd/imports/lineage.h"
#include "argusd/imports/registry_import.h"
#include "argusd/imports/registry_prepare.h"
#include "argusd/kit/part.h"
#include "argusd/kit/resource.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

/* ---- the page ---- */

struct entry_page {
    struct registry_entry entry; /* borrowed, and so are the texts */
    char ref[REGISTRY_REF_MAX];
    const char *project, *progress, *lineage_by;
    struct strv shared;                                                             /* a copy */
    char *note, *format, *rows, *fit, *architecture, *parameters, *lineage, *about; /* JSON */
};
#define EVERYWHERE (FIELD_SHOWN | FIELD_LISTED)
#define PAGE(key, ftype, ...)                                                                      \
    {                                                                                              \
        .name = #key, .type = ftype, .offset = offsetof(struct entry_page, key), __VA_ARGS__       \
    }
#define FOUND(key, kind, words)                                                                    \
    PAGE(key, FIELD_JSON, .flags = EVERYWHERE, .schema = (kind), .doc = (words))
#define ANY_OBJECT OBJECT_AS_IT_CAME("of what was imported")
#define ENTRY_PAGE                                                                                 \
    {.name = "",                                                                                   \
     .type = FIELD_INLINE,                                                                         \
     .offset = offsetof(struct entry_page, entry),                                                 \
     .of = &registry_entry_table,                                                                  \
     .flags = FIELD_BORROWED},                                                                     \
        PAGE(ref, FIELD_TEXT, .flags = EVERYWHERE, .size = REGISTRY_REF_MAX, .doc = "gsm8k@2"),    \
        PAGE(project, FIELD_STR, .flags = EVERYWHERE | FIELD_BORROWED,                             \
             .doc = "project whose members see it too"),                                           \
        PAGE(shared, FIELD_STRV, .flags = EVERYWHERE,                                              \
             .doc = "user/bob, project/rl: who sees it beside these; shown to the owner and to "   \
                    "who sees everything"),                                                        \
        PAGE(progress, FIELD_JSON, .flags = EVERYWHERE | FIELD_BORROWED, .schema = ANY_OBJECT,     \
             .doc = "progress of an import that has begun"),                                       \
        FOUND(note, TEXT, "note of the importer"), FOUND(format, TEXT, "format of the files"),     \
        FOUND(lineage, ANY_OBJECT, "what it was made of, as much as you may see"),                 \
        PAGE(lineage_by, FIELD_STR, .flags = EVERYWHERE | FIELD_BORROWED,                          \
             .doc = "argusd, or the importer"),                                                    \
        PAGE(about, FIELD_JSON, .flags = FIELD_SHOWN, .schema = ANY_OBJECT,                        \
             .doc = "all that was found in it")
static const struct field dataset_rows[] = {ENTRY_PAGE, FOUND(rows, INTEGER, "how many"),
                                            FOUND(fit, ANY_OBJECT, "what its rows are good for")};
static const struct field model_rows[] = {ENTRY_PAGE,
                                          FOUND(architecture, TEXT, "architecture of the model"),
                                          FOUND(parameters, INTEGER, "how many")};
static const struct field_table dataset_table = {.name = "Dataset",
                                                 .rows = dataset_rows,
                                                 .n = array_len(dataset_rows),
                                                 .size = sizeof(struct entry_page)};
static const struct field_table model_table = {.name = "Model",
                                               .rows = model_rows,
                                               .n = array_len(model_rows),
                                               .size = sizeof(struct entry_page)};

static char *entry_json(const json_t *o, const char *member)
{
    const json_t *v = member ? json_object_get(o, member) : o;
    return v ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
}

/* As it was written down, and what judged the checkpoint since. */
static char *entry_whole_lineage(const struct resource_ask *q, const struct registry_entry *e)
{
    json_t *eval = e->is_recorded ? lineage_eval(q->a->checkpoints, e->lineage) : NULL;
    if (!eval)
        return entry_json(e->lineage, NULL);
    _cleanup_(json_unrefp) json_t *now = json_copy(e->lineage);
    (void)json_object_set_new(now, "eval", eval); /* fails for lack of memory alone */
    return entry_json(now, NULL);
}

/* What argusd wrote down of a job is for those who may see the job, and for the owner, who could;
 * not for an audit event. Others learn which step it is, and what the importer said himself. */
static char *entry_lineage(struct resource_ask *q, const struct registry_entry *e)
{
    static const char *const keys[] = {"job", "step", "said"};
    struct api_eyes eyes = {q->a, http_req_principal(q->req)};
    const char *job = json_get_str(e->lineage, "job", "");
    if (!e->lineage || !e->is_recorded ||
        (!q->is_trail && (str_eq(q->who.user, e->owner) || api_sees_job(job, &eyes))))
        return entry_whole_lineage(q, e);
    _cleanup_(json_unrefp) json_t *some = json_object();
    for (size_t i = 0; i < array_len(keys); i++)
        if (json_object_get(e->lineage, keys[i]))
            (void)json_object_set(some, keys[i], json_object_get(e->lineage, keys[i])); /* ours */
    return entry_json(some, NULL);
}

static void entry_fill(struct resource_ask *q, const void *x, void *out)
{
    const struct registry_entry *e = x;
    struct entry_page *page = out;
    *page = (struct entry_page){.entry = *e,
                                .project = *e->project ? e->project : NULL,
                                .progress = e->progress,
                                .lineage_by = !e->lineage      ? NULL
                                              : e->is_recorded ? "argusd"
                                                               : "importer",
                                .note = entry_json(e->about, "note"),
                                .format = entry_json(e->about, "format"),
                                .lineage = entry_lineage(q, e),
                                .about = entry_json(e->about, NULL)};
    bool is_theirs = str_eq(q->who.user, e->owner) || q->who.sees_all;
    if (is_theirs && !q->is_trail)
        strv_copy(&page->shared, &e->shared);
    (void)registry_ref(e, page->ref);
    if (e->kind == REGISTRY_DATASET) {
        page->rows = entry_json(e->about, "rows");
        page->fit = entry_json(e->about, "fit");
    } else {
        page->architecture = entry_json(e->about, "architecture");
        page->parameters = entry_json(e->about, "parameters");
    }
}

/* ---- which there are ---- */

static enum registry_kind entry_kind(const struct resource_ask *q)
{
    return q->of->kind == ACCESS_KIND_MODEL ? REGISTRY_MODEL : REGISTRY_DATASET;
}

/* What is being removed is in no list. */
static const void *entry_next(struct resource_ask *q, size_t *pos)
{
    const struct registry_entry *e;
    do
        e = registry_next(q->a->registry, entry_kind(q), pos);
    while (e && e->state == REGISTRY_removing);
    return e;
}

/* By name; of one owner's the newest version first. */
static int entry_compare(const void *a, const void *b)
{
    const struct registry_entry *x = *(struct registry_entry *const *)a;
    const struct registry_entry *y = *(struct registry_entry *const *)b;
    int c = strcmp(x->name, y->name);
    if (c == 0)
        c = strcmp(x->key, y->key);
    return c != 0 && str_eq(x->name, y->name) && x->is_common == y->is_common &&
                   str_eq(x->owner, y->owner)
               ? (x->version < y->version ? 1 : -1)
               : c;
}

static bool entry_wants(struct resource_ask *q, const void *x)
{
    const struct registry_entry *e = x;
    const char *part = http_req_query(q->req, "q"), *user = http_req_query(q->req, "user");
    return (!part || strstr(e->name, part)) && (!user || str_eq(user, e->owner));
}

static const void *entry_find(struct resource_ask *q, const void *asked)
{
    struct registry_entry *e = NULL;
    struct dataref ref;
    (void)asked;
    if (!dataref_read(q->name, &ref) || ref.file ||
        registry_find(q->a->registry, entry_kind(q), &q->who, &ref, &e, &q->err) < 0)
        return NULL;
    return e;
}

static void entry_thing(struct resource_ask *q,
                        const void *x,
                        const void *asked,
                        struct access_thing *ret)
{
    (void)q;
    (void)asked;
    *ret = registry_thing(x);
}

static int entry_may(struct resource_ask *q,
                     enum access_action action,
                     const char *verb,
                     const void *x)
{
    return registry_check(x, &q->who, action, verb, &q->err);
}

/* ---- remove ---- */

static int entry_check_remove(struct resource_ask *q, const void *x)
{
    char ref[REGISTRY_REF_MAX];
    struct api_eyes eyes = {q->a, http_req_principal(q->req)};
    const char *job = registry_user_of(q->a->registry, x);
    if (!job)
        return registry_check_kept(q->a->registry, x, &q->who, &q->err);
    bool sees = api_sees_job(job, &eyes);
    return message_refuse(&q->err, ERR_CONFLICT, "entry_used",
                          MESSAGE_ARGS(MESSAGE_STR("entry", registry_ref(x, ref)),
                                       MESSAGE_STR("job", sees ? job : "")));
}

/* What is not there yet goes when its job has ended: that is how imports end. */
static void entry_cancel(struct resource_ask *q, const struct registry_entry *e)
{
    char text[HTTP_USER_MAX + 64];
    struct live *l = jobs_find_id(q->a->jobs, e->job);
    message_write(text, sizeof(text), MESSAGE_ARGS(MESSAGE_STR("by", q->who.user)));
    struct job_event stop = {
        .kind = JOB_EV_STOP, .cause = STOP_USER, .message = "job_cancelled", .text = text};
    if (l)
        (void)jobs_apply(l, &stop, q->who.user, clock_wall()); /* it may be stopping already */
}

static void entry_plan_remove(struct resource_ask *q, const void *x)
{
    api_plan_removal(q, x, NULL);
}

static bool entry_take_away(struct resource_ask *q, const void *x)
{
    const struct registry_entry *e = x;
    if (e->state == REGISTRY_importing) {
        resource_say(q, "registry_import_stopped", MESSAGE_NO_ARGS);
        entry_cancel(q, e);
    } else {
        resource_say(q, e->in_place ? "registry_leaves_in_place" : "registry_leaves",
                     MESSAGE_NO_ARGS);
        registry_remove(q->a->registry, (struct registry_entry *)(uintptr_t)e); /* its own */
    }
    return true;
}

/* ---- share ---- */

struct share_form {
    struct strv users, projects;
    bool off;
};
#define SHARE(key, ftype, words)                                                                   \
    {                                                                                              \
        .name = #key, .type = (ftype), .offset = offsetof(struct share_form, key),                 \
        .flags = FIELD_ASKED, .doc = (words)                                                       \
    }
static const struct field share_rows[] = {
    SHARE(users, FIELD_STRV, "names of users"),
    SHARE(projects, FIELD_STRV, "names of projects: for their members"),
    SHARE(off, FIELD_BOOL, "they see it no more; without names nobody does"),
};
static const struct field_table share_table = {"ShareForm", share_rows, array_len(share_rows),
                                               sizeof(struct share_form), 0};

/* Whether somebody has a name is not told: not everybody sees every user. */
static int entry_check_names(struct resource_ask *q, const char *what, const struct strv *names)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < names->n; i++)
        r = access_check_name(what, names->v[i], &q->err);
    return r;
}

static int entry_check_share(struct resource_ask *q, const struct share_form *f)
{
    int r = entry_check_names(q, "user", &f->users);
    if (r == 0)
        r = entry_check_names(q, "project", &f->projects);
    if (r == 0 && !f->users.n && !f->projects.n && !f->off)
        r = message_refuse(&q->err, ERR_BAD_REQUEST, "share_with_whom", MESSAGE_NO_ARGS);
    if (r == 0 && strv_has(&f->projects, ACCESS_DEFAULT_PROJECT))
        r = message_refuse(&q->err, ERR_BAD_REQUEST, "share_default",
                           MESSAGE_ARGS(MESSAGE_STR("project", ACCESS_DEFAULT_PROJECT)));
    return r;
}

static void entry_share(struct http_req *req, void *app)
{
    static const struct resource_act acts[REGISTRY_KINDS] = {{"dataset_share", "share"},
                                                             {"model_share", "share"}};
    struct resource_ask q;
    struct share_form f = {0};
    resource_begin(&q, req, app);
    const void *x = resource_find(&q, RESOURCE_TO_CHANGE, "share");
    struct registry_entry *e = (struct registry_entry *)(uintptr_t)x; /* the registry's own */
    if (!e || resource_read_form(&q, false, &f) < 0 || entry_check_share(&q, &f) < 0 ||
        registry_share(q.a->registry, e, &f.users, &f.projects, f.off, &q.err) < 0) {
        resource_refuse(&q);
    } else {
        resource_note(&q, &acts[e->kind], e, NULL, resource_trail(&q, e));
        resource_reply(&q, e, 200, api_barrier(q.a));
    }
    field_release(&share_table, &f);
    resource_end(&q);
}

/* ---- the nouns ---- */

#define ENTRY(called, many, of, table, word)                                                       \
    .noun = (called), .kind = (of), .collection = (many), .param = "name", .page = &(table),       \
    .form = &share_table, .item = FIELD_LISTED, .trail = FIELD_LISTED, .may_see = ACCESS_DATA_SEE, \
    .may_change = ACCESS_DATA_CHANGE, .add = {word "_import", "import"},                           \
    .remove = {word "_remove", "remove"}, .flags = RESOURCE_STAYS, .next = entry_next,             \
    .wants = entry_wants, .compare = entry_compare, .find = entry_find, .thing = entry_thing,      \
    .may = entry_may, .fill = entry_fill, .check_remove = entry_check_remove,                      \
    .plan_remove = entry_plan_remove, .take_away = entry_take_away
static const struct resource dataset_noun = {
    ENTRY("data set", "datasets", ACCESS_KIND_DATASET, dataset_table, "dataset")};
static const struct resource model_noun = {
    ENTRY("model", "models", ACCESS_KIND_MODEL, model_table, "model")};

static void entry_answer_new(struct resource_ask *q,
                             const struct resource_act *act,
                             const struct registry_entry *e)
{
    resource_note(q, act, e, NULL, resource_trail(q, e));
    resource_reply(q, e, 201, api_barrier(q->a));
}

/* ---- import ---- */

/* While the job that made its source is looked for. */
struct import {
    struct resource_ask ask; /* req NULL: the client has gone */
    struct registry_form form;
    char *job; /* that one */
};

static void import_free(struct import *x)
{
    registry_form_release(&x->form);
    resource_end(&x->ask);
    free(x->job);
    free(x);
}

static void import_begin(struct import *x)
{
    struct resource_ask *q = &x->ask;
    struct registry_entry *e;
    const struct http_principal *p = http_req_principal(q->req);
    if (registry_import(&q->a->importer, p, entry_kind(q), &x->form, &e, &q->field, &q->err) < 0)
        resource_refuse(q);
    else
        entry_answer_new(q, &q->of->add, e);
    import_free(x);
}

static void on_importer_gone(struct http_req *req, void *arg)
{
    struct import *x = arg;
    (void)req;
    x->ask.req = NULL;
}

static void on_lineage(json_t *lineage, void *arg)
{
    struct import *x = arg;
    if (!x->ask.req) {
        json_decref(lineage);
        import_free(x);
        return;
    }
    http_req_on_close(x->ask.req, NULL, NULL);
    if (lineage) {
        registry_form_take_lineage(&x->form, x->job, lineage);
        x->job = NULL;
    }
    import_begin(x);
}

static void entry_import(struct http_req *req, void *app)
{
    struct api *a = app;
    _cleanup_(freep) char *path = NULL;
    size_t n;
    const char *body = http_req_body(req, &n);
    struct import *x = xcalloc(1, sizeof(*x));
    resource_begin(&x->ask, req, app);
    if (registry_form_read(body, n, &x->form, &x->ask.problems) < 0) {
        resource_refuse(&x->ask);
        import_free(x);
    } else if ((x->job = registry_source_job(&a->importer, http_req_principal(req), x->form.source,
                                             &path))) {
        http_req_on_close(req, on_importer_gone, x);
        lineage_find(&a->importer, http_req_principal(req), path, on_lineage, x);
    } else {
        import_begin(x);
    }
}

static void dataset_prepare(struct http_req *req, void *app)
{
    static const struct resource_act act = {"dataset_prepare", "prepare"};
    struct api *a = app;
    struct resource_ask q;
    struct registry_preparation x = {0};
    struct registry_entry *e;
    size_t n;
    const char *body = http_req_body(req, &n);
    resource_begin(&q, req, app);
    if (registry_preparation_read(body, n, &x, &q.problems) < 0 ||
        registry_prepare(&a->importer, http_req_principal(req), &x, &e, &q.field, &q.err) < 0)
        resource_refuse(&q);
    else
        entry_answer_new(&q, &act, e);
    resource_end(&q);
    registry_preparation_release(&x);
}

/* ---- routes ---- */

static const struct http_param list_params[] = {{"q", HTTP_PARAM_STRING, "part of the name"},
                                                {"user", HTTP_PARAM_STRING, "only this owner's"},
                                                {0}};
static const struct http_param remove_params[] = {
    {"dry_run", HTTP_PARAM_BOOLEAN, "answer what uses it, and remove nothing"},
    {0}};
static const struct http_route rows[] = {
    RESOURCE_LIST(&dataset_noun,
                  "/v1/datasets",
                  VIEWER,
                  "data sets: common ones, yours and those of your projects, or all",
                  .params = list_params,
                  .reply_schema = "DatasetList"),
    RESOURCE_ROUTE("POST",
                   entry_import,
                   &dataset_noun,
                   "/v1/datasets",
                   USER,
                   "import a data set, as a job; it is ready once the job has SUCCEEDED",
                   .max_body = RESOURCE_BODY_MAX,
                   .request_schema = "ImportForm",
                   .reply_schema = "Dataset",
                   .reply_status = 201),
    RESOURCE_ROUTE("POST",
                   dataset_prepare,
                   &dataset_noun,
                   "/v1/datasets:prepare",
                   USER,
                   "make a data set that verl reads from a raw one, as a job",
                   .max_body = RESOURCE_BODY_MAX,
                   .request_schema = "PrepareForm",
                   .reply_schema = "Dataset",
                   .reply_status = 201),
    RESOURCE_GET(&dataset_noun,
                 "/v1/datasets/{name}",
                 VIEWER,
                 "one data set, [owner:]name[@version], with columns, sample and fit",
                 .reply_schema = "Dataset",
                 .example = "gsm8k"),
    RESOURCE_REMOVE(&dataset_noun,
                    "/v1/datasets/{name}",
                    USER,
                    "remove a data set and its bytes; refused while a job uses it",
                    .params = remove_params,
                    .reply_schema = "DatasetOrPlan"),
    RESOURCE_ROUTE("POST",
                   entry_share,
                   &dataset_noun,
                   "/v1/datasets/{name}:share",
                   USER,
                   "let users and projects see and use a data set, or no more",
                   .max_body = RESOURCE_BODY_MAX,
                   .request_schema = "ShareForm",
                   .reply_schema = "Dataset"),
    RESOURCE_LIST(&model_noun,
                  "/v1/models",
                  VIEWER,
                  "models: common ones, yours and those of your projects, or all",
                  .params = list_params,
                  .reply_schema = "ModelList"),
    RESOURCE_ROUTE("POST",
                   entry_import,
                   &model_noun,
                   "/v1/models",
                   USER,
                   "import a model, as a job; it is ready once the job has SUCCEEDED",
                   .max_body = RESOURCE_BODY_MAX,
                   .request_schema = "ImportForm",
                   .reply_schema = "Model",
                   .reply_status = 201),
    RESOURCE_GET(&model_noun,
                 "/v1/models/{name}",
                 VIEWER,
                 "one model, [owner:]name[@version], with lineage",
                 .reply_schema = "Model",
                 .example = "qwen"),
    RESOURCE_REMOVE(
        &model_noun,
        "/v1/models/{name}",
        USER,
        "remove a model and its bytes; refused while a job uses it or a service keeps it",
        .params = remove_params,
        .reply_schema = "ModelOrPlan"),
    RESOURCE_ROUTE("POST",
                   entry_share,
                   &model_noun,
                   "/v1/models/{name}:share",
                   USER,
                   "let users and projects see and use a model, or no more",
                   .max_body = RESOURCE_BODY_MAX,
                   .request_schema = "ShareForm",
                   .reply_schema = "Model"),
};
static const struct http_schema schemas[] = {
    {.name = "ShareForm", .table = &share_table, .which = FIELD_ASKED, .is_form = true},
    {.name = "ImportForm", .table = &registry_form_table, .which = FIELD_ALL, .is_form = true},
    {.name = "PrepareForm",
     .table = &registry_preparation_table,
     .which = FIELD_ALL,
     .is_form = true},
    {.name = "Dataset", .table = &dataset_table, .which = FIELD_SHOWN},
    {.name = "DatasetItem", .table = &dataset_table, .which = FIELD_LISTED},
    LIST_OF("DatasetList", "datasets", "DatasetItem"),
    {.name = "Model", .table = &model_table, .which = FIELD_SHOWN},
    {.name = "ModelItem", .table = &model_table, .which = FIELD_LISTED},
    LIST_OF("ModelList", "models", "ModelItem"),
};
const struct api_part part_registry = {rows, array_len(rows), schemas, array_len(schemas)};

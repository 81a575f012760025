/* SPDX-License-Identifier: Apache-2.0 */
/* pipes_page.c - /v1/pipelines: list, look, store, remove; a run of one, and its schedule. */
#include <stdlib.h>
#include <string.h>

#include "argusd/api/routes.h"
#include "argusd/kit/resource.h"
#include "argusd/pipes/pipes.h"
#include "argusd/pipes/runs_page.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/pipe/pipe_jobs.h"

enum { TIMES_SHOWN = 5 };

/* ---- the page ---- */

struct pipe_param_page {
    const char *name, *type, *description;
    bool required;
    char *dflt; /* JSON */
};
#define OF_PARAM(key, ftype, member, ...) FIELD_AT(pipe_param_page, key, ftype, member, __VA_ARGS__)
static const struct field param_rows[] = {
    OF_PARAM("name", FIELD_STR, name, .flags = FIELD_ALWAYS | FIELD_BORROWED),
    OF_PARAM("type", FIELD_STR, type, .flags = FIELD_ALWAYS | FIELD_BORROWED),
    OF_PARAM("required", FIELD_BOOL, required),
    OF_PARAM("default", FIELD_JSON, dflt, .schema = "{\"description\":\"of its type\"}"),
    OF_PARAM("description", FIELD_STR, description, .flags = FIELD_BORROWED),
};
static const struct field_table param_table =
    FIELD_TABLE("PipelineParam", param_rows, pipe_param_page);

struct pipeline_page {
    struct pipeline p; /* borrowed, and so are the texts */
    const char *description;
    struct strv steps, next_times;
    struct field_list params;
};
#define EVERYWHERE (FIELD_SHOWN | FIELD_LISTED)
static const struct field page_rows[] = {
    {.name = "",
     .type = FIELD_INLINE,
     .offset = offsetof(struct pipeline_page, p),
     .of = &pipeline_table,
     .flags = FIELD_BORROWED},
    FIELD_AT(pipeline_page,
             "description",
             FIELD_STR,
             description,
             .flags = EVERYWHERE | FIELD_BORROWED),
    FIELD_AT(pipeline_page,
             "steps",
             FIELD_STRV,
             steps,
             .flags = EVERYWHERE | FIELD_ALWAYS,
             .doc = "each behind all that it needs"),
    FIELD_AT(pipeline_page,
             "next_times",
             FIELD_STRV,
             next_times,
             .flags = FIELD_SHOWN | FIELD_ALWAYS,
             .doc = "next few times of its schedule"),
    FIELD_AT(pipeline_page,
             "params",
             FIELD_LIST,
             params,
             .of = &param_table,
             .flags = FIELD_SHOWN | FIELD_ALWAYS),
};
static const struct field_table page_table = {.name = "Pipeline",
                                              .rows = page_rows,
                                              .n = array_len(page_rows),
                                              .size = sizeof(struct pipeline_page)};

static char *pipeline_default(const struct pipe_param *param)
{
    struct buf out = BUF_INIT(PIPE_MAX_BYTES);
    struct jout j = jout_begin(&out);
    struct node alone;
    if (!param->dflt)
        return NULL;
    alone = *param->dflt;
    alone.key = NULL;
    node_to_json(&alone, &j, NULL);
    return buf_take(&out);
}

static void pipeline_fill_params(const struct pipe *p, struct pipeline_page *page)
{
    struct pipe_param_page *v = xcalloc(p->n_params + 1, sizeof(*v));
    for (size_t i = 0; i < p->n_params; i++)
        v[i] =
            (struct pipe_param_page){.name = p->params[i].name,
                                     .type = pipe_type_to_string((enum pipe_type)p->params[i].type),
                                     .description = p->params[i].description,
                                     .required = p->params[i].required,
                                     .dflt = pipeline_default(&p->params[i])};
    page->params = (struct field_list){.v = v, .n = p->n_params};
}

static void pipeline_fill(struct resource_ask *q, const void *x, void *out)
{
    const struct pipeline *p = x;
    struct pipeline_page *page = out;
    usec_t times[TIMES_SHOWN];
    (void)q;
    page->p = *p;
    size_t n = pipes_next_times(p, times, TIMES_SHOWN);
    for (size_t i = 0; i < n; i++) {
        char text[CLOCK_TEXT_MAX];
        strv_add(&page->next_times, clock_to_string(times[i], text));
    }
    for (size_t i = 0; p->pipe && i < p->pipe->n_steps; i++)
        strv_add(&page->steps, p->pipe->steps[p->pipe->order[i]].name);
    if (p->pipe) {
        page->description = p->pipe->description;
        pipeline_fill_params(p->pipe, page);
    }
}

/* ---- which there are ---- */

static const void *pipeline_next(struct resource_ask *q, size_t *pos)
{
    return pipes_next(q->a->pipes, pos);
}

static int pipeline_compare(const void *x, const void *y)
{
    const struct pipeline *a = *(const struct pipeline *const *)x;
    const struct pipeline *b = *(const struct pipeline *const *)y;
    int r = strcmp(a->name, b->name);
    return r ? r : strcmp(a->owner, b->owner);
}

/* His own, or (?user=) somebody else's; one that is to be stored is his own. */
static const void *pipeline_find(struct resource_ask *q, const void *asked)
{
    const char *owner = asked ? q->who.user : str_or(http_req_query(q->req, "user"), q->who.user);
    return pipes_find(q->a->pipes, owner, q->name);
}

static void pipeline_ask_thing(struct resource_ask *q,
                               const void *x,
                               const void *asked,
                               struct access_thing *ret)
{
    (void)asked;
    if (x)
        *ret = pipeline_thing(x);
    else
        *ret = (struct access_thing){
            .kind = ACCESS_KIND_PIPELINE, .name = q->name, .owner = q->who.user};
}

static char *pipeline_object(const void *x)
{
    return xasprintf("pipeline/%s", ((const struct pipeline *)x)->name);
}

/* ---- store ---- */

struct pipeline_form {
    const char *text; /* borrowed: the body */
    size_t len;
};
static const struct field form_rows[] = {
    FIELD_AT(pipeline_form, "text", FIELD_STR, text, .flags = FIELD_BORROWED)};
static const struct field_table form_table = FIELD_TABLE(NULL, form_rows, pipeline_form);

static int pipeline_read(struct resource_ask *q, bool is_change, void *asked)
{
    struct pipeline_form *f = asked;
    (void)is_change;
    f->text = http_req_body(q->req, &f->len);
    return 0;
}

static const char *pipeline_project(struct resource_ask *q)
{
    return str_or(http_req_query(q->req, "project"), ACCESS_DEFAULT_PROJECT);
}

static int pipeline_check(struct resource_ask *q, const void *old, void *asked)
{
    const struct pipeline_form *f = asked;
    struct pipe *p = NULL;
    (void)old;
    int r = access_check_submit(&q->who, pipeline_project(q), &q->err);
    if (r == 0)
        r = pipe_read(f->text, f->len, &p, &q->problems);
    if (r == 0)
        pipe_jobs_check(p, &q->problems);
    if (r == 0 && q->problems.errors)
        r = ERR_BAD_SPEC;
    if (r == 0 && !str_eq(p->name, q->name))
        r = message_refuse(
            &q->err, ERR_BAD_SPEC, "pipe_other_name",
            MESSAGE_ARGS(MESSAGE_STR("name", p->name), MESSAGE_STR("path", q->name)));
    pipe_free(p);
    return r;
}

static const void *pipeline_write(struct resource_ask *q, const void *old, void *asked)
{
    const struct pipeline_form *f = asked;
    const struct pipeline *p = NULL;
    (void)old;
    _cleanup_(freep) char *text = xstrndup(f->text, f->len);
    if (pipes_put(q->a->pipes, q->who.user, pipeline_project(q), text, &p, &q->problems, &q->err) <
        0)
        return NULL;
    return p;
}

static bool pipeline_take_away(struct resource_ask *q, const void *x)
{
    pipes_remove(q->a->pipes, x);
    return true;
}

static const struct resource pipeline_noun = {
    .noun = "pipeline",
    .kind = ACCESS_KIND_PIPELINE,
    .collection = "pipelines",
    .param = "name",
    .page = &page_table,
    .item = FIELD_LISTED,
    .trail = FIELD_LISTED,
    .form = &form_table,
    .may_see = ACCESS_PIPELINE_SEE,
    .may_change = ACCESS_PIPELINE_CHANGE,
    .add = {"pipeline_added", "store"},
    .change = {"pipeline_changed", "change"},
    .remove = {"pipeline_removed", "remove"},
    .next = pipeline_next,
    .compare = pipeline_compare,
    .find = pipeline_find,
    .thing = pipeline_ask_thing,
    .object = pipeline_object,
    .fill = pipeline_fill,
    .read = pipeline_read,
    .check = pipeline_check,
    .write = pipeline_write,
    .take_away = pipeline_take_away,
};

/* ---- run ---- */

static const struct field run_form_rows[] = {
    OPT_AS("params", RUNS_PARAMS),
    OPT_BOOLEAN("force"),
    OPT_BOOLEAN("dry_run"),
};
static const struct field_table run_form = ACTION_FORM(run_form_rows);

static void pipeline_run_seeing(struct http_req *req,
                                struct api *a,
                                struct pipes_sight *taken_sight);

/* *sight becomes NULL where the request waits for it. */
static int pipeline_begin_run(struct resource_ask *q,
                              const struct pipeline *p,
                              json_t *body,
                              struct pipes_sight **sight)
{
    const struct pipe_life *run = NULL;
    const struct pipes_start_ask ask = {.pipeline = p,
                                        .user = q->who.user,
                                        .params = json_object_get(body, "params"),
                                        .force = json_get_bool(body, "force", false)};
    int r =
        access_check_submit(&q->who, *p->project ? p->project : ACCESS_DEFAULT_PROJECT, &q->err);
    if (r == 0 && json_get_bool(body, "dry_run", false)) {
        struct pipes_plan plan = {0};
        r = pipes_plan_run(q->a->pipes, &ask, *sight, &plan, &q->problems, &q->err);
        if (r == 0)
            runs_answer_plan(q->req, q->a, &plan, sight, pipeline_run_seeing);
        return r;
    }
    if (r == 0)
        r = pipes_run(q->a->pipes, &ask, &run, &q->problems, &q->err);
    if (r == 0)
        runs_answer(q->req, q->a, run, 201);
    return r;
}

static void pipeline_run_seeing(struct http_req *req,
                                struct api *a,
                                struct pipes_sight *taken_sight)
{
    struct resource_ask q;
    resource_begin(&q, req, a);
    const struct pipeline *p = resource_find(&q, RESOURCE_TO_SEE, "run");
    _cleanup_(json_unrefp) json_t *body = NULL;
    bool is_asked = p && (body = api_read_action(req, &run_form));
    if (!p || (is_asked &&
               (resource_can_store(&q) < 0 || pipeline_begin_run(&q, p, body, &taken_sight) < 0)))
        resource_refuse(&q);
    pipes_sight_free(taken_sight);
    resource_end(&q);
}

static void pipeline_run(struct http_req *req, void *app)
{
    pipeline_run_seeing(req, app, pipes_sight_new(app));
}

/* ---- schedule ---- */

static const struct field schedule_form_rows[] = {
    OPT_AS("cron", TEXT_OR_NULL),
    OPT_AS("zone", TEXT_OR_NULL),
    OPT_AS("params", RUNS_PARAMS),
};
static const struct field_table schedule_form = ACTION_FORM(schedule_form_rows);

static int pipeline_check_params(struct resource_ask *q, const struct pipeline *p, json_t *given)
{
    json_t *all = NULL;
    if (!p->pipe)
        return message_refuse(&q->err, ERR_REFUSED, "pipe_unreadable",
                              MESSAGE_ARGS(MESSAGE_STR("pipe", p->name)));
    int r = pipe_fill_params(p->pipe, given, &all, &q->problems);
    json_decref(all);
    return r;
}

static int pipeline_set_schedule(struct resource_ask *q, const struct pipeline *p, json_t *body)
{
    const char *cron = json_get_str(body, "cron", NULL);
    json_t *given = json_object_get(body, "params");
    char *params = json_is_object(given) ? json_dumps(given, JSON_COMPACT) : NULL;
    int r = cron ? pipeline_check_params(q, p, given) : 0;
    if (r == 0)
        r = pipes_set_schedule(q->a->pipes, p, cron, json_get_str(body, "zone", NULL), params,
                               &q->err);
    free(params);
    return r;
}

static void pipeline_schedule(struct http_req *req, void *app)
{
    static const struct resource_act act = {"pipeline_scheduled", "schedule"};
    struct resource_ask q;
    resource_begin(&q, req, app);
    const struct pipeline *p = resource_find(&q, RESOURCE_TO_CHANGE, "schedule");
    _cleanup_(json_unrefp) json_t *body = NULL;
    if (!p) {
        resource_refuse(&q);
    } else if ((body = api_read_action(req, &schedule_form))) {
        char *before = resource_trail(&q, p);
        if (pipeline_set_schedule(&q, p, body) < 0) {
            free(before);
            resource_refuse(&q);
        } else {
            resource_note(&q, &act, p, before, resource_trail(&q, p));
            resource_reply(&q, p, 200, api_barrier(q.a));
        }
    }
    resource_end(&q);
}

#define PIPE_YAML                                                                                  \
    "application/yaml, application/json, application/x-yaml, text/yaml, text/plain, "              \
    "application/x-www-form-urlencoded"
static const struct http_param whose_params[] = {
    {"user", HTTP_PARAM_STRING, "owner of the pipeline; you if absent"},
    {0}};
static const struct http_param put_params[] = {
    {"project", HTTP_PARAM_STRING, "project whose members see it and its runs; default if absent"},
    {0}};
static const struct http_route rows[] = {
    RESOURCE_LIST(&pipeline_noun,
                  "/v1/pipelines",
                  VIEWER,
                  "pipelines: yours and those of your projects, or all",
                  .reply_schema = "PipelineList"),
    RESOURCE_GET(&pipeline_noun,
                 "/v1/pipelines/{name}",
                 VIEWER,
                 "one pipeline, with its text and parameters",
                 .params = whose_params,
                 .reply_schema = "Pipeline",
                 .example = "sft-to-model"),
    RESOURCE_PUT(&pipeline_noun,
                 "/v1/pipelines/{name}",
                 USER,
                 "store a pipeline: steps that need each other; the text's own name is {name}",
                 .max_body = PIPE_MAX_BYTES,
                 .params = put_params,
                 .request_type = PIPE_YAML,
                 .request_schema = "PipelineForm",
                 .reply_schema = "Pipeline",
                 .reply_status = 201,
                 .other_schema = "Pipeline"),
    RESOURCE_REMOVE(&pipeline_noun,
                    "/v1/pipelines/{name}",
                    USER,
                    "remove a pipeline; its runs stay",
                    .params = whose_params,
                    .reply_schema = "Pipeline"),
    RESOURCE_ROUTE("POST",
                   pipeline_run,
                   &pipeline_noun,
                   "/v1/pipelines/{name}:run",
                   USER,
                   "run it, with values for its parameters; force: no earlier run stands in for a "
                   "step; dry_run: what it would do, and nothing is begun",
                   .max_body = RESOURCE_BODY_MAX,
                   .params = whose_params,
                   .request_schema = "PipelineRunForm",
                   .reply_schema = "PipelineRun",
                   .reply_status = 201,
                   .other_schema = "PipelinePlan"),
    RESOURCE_ROUTE("POST",
                   pipeline_schedule,
                   &pipeline_noun,
                   "/v1/pipelines/{name}:schedule",
                   USER,
                   "run it by itself: cron (five fields; null: not any more), zone and parameters",
                   .max_body = RESOURCE_BODY_MAX,
                   .params = whose_params,
                   .request_schema = "PipelineScheduleForm",
                   .reply_schema = "Pipeline"),
};
static const struct http_schema schemas[] = {
    {.name = "PipelineForm",
     .json =
         "{\"type\":\"object\",\"required\":[\"name\",\"steps\"],\"additionalProperties\":"
         "false,\"properties\":{\"name\":" TEXT ",\"description\":" TEXT_OR_NULL
         ",\"concurrency\":" WORDS("\"queue\",\"skip\",\"replace\",\"allow\"") ",\"params\":" OBJECT_AS_IT_CAME(
             "parameters by name: type, required, default, description") ",\"steps\":" OBJECT_AS_IT_CAME("steps by name") "}}"},
    {.name = "Pipeline", .table = &page_table, .which = FIELD_SHOWN},
    {.name = "PipelineParam", .table = &param_table},
    {.name = "PipelineItem", .table = &page_table, .which = FIELD_LISTED},
    LIST_OF("PipelineList", "pipelines", "PipelineItem"),
    {.name = "PipelineRunForm", .table = &run_form, .is_form = true},
    {.name = "PipelineScheduleForm", .table = &schedule_form, .is_form = true},
};
const struct api_part part_pipes_page = {rows, array_len(rows), schemas, array_len(schemas)};

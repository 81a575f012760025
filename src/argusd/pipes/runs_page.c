/* SPDX-License-Identifier: Apache-2.0 */
/* runs_page.c - /v1/pipeline-runs: list, look, cancel, retry. */
#include "argusd/pipes/runs_page.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/api/routes.h"
#include "argusd/kit/resource.h"
#include "argusd/kit/saying.h"
#include "argusd/kit/view.h"
#include "base/message.h"
#include "base/str.h"

enum { REASON_MAX = 4096, WITH_SHOWN_MAX = 32 << 10, PLAN_MAX = 4 << 20 };

/* ---- the page ---- */

#define ANY_OBJECT                                                                                 \
    "{\"type\":[\"object\",\"null\"],\"additionalProperties\":{\"description\":\"as it came\"}}"

/* An item, with what its step says. Borrowed but for reason and needs. */
struct run_step {
    struct pipe_item item;
    const char *step, *uses;
    struct strv needs;
    const char *when;
    double gpu_hours;
    char *reason, *when_value, *values, *inputs; /* JSON */
};
static const struct field run_step_rows[] = {
    {.name = "",
     .type = FIELD_INLINE,
     .offset = offsetof(struct run_step, item),
     .of = &pipe_item_table,
     .flags = FIELD_BORROWED},
    FIELD_AT(run_step,
             "step",
             FIELD_STR,
             step,
             .flags = FIELD_SHOWN | FIELD_BORROWED | FIELD_ALWAYS),
    FIELD_AT(run_step,
             "uses",
             FIELD_STR,
             uses,
             .flags = FIELD_SHOWN | FIELD_BORROWED | FIELD_ALWAYS),
    FIELD_AT(run_step, "needs", FIELD_STRV, needs, .flags = FIELD_SHOWN | FIELD_ALWAYS),
    FIELD_AT(run_step,
             "if",
             FIELD_STR,
             when,
             .flags = FIELD_SHOWN | FIELD_BORROWED,
             .doc = "condition of the step"),
    FIELD_AT(run_step,
             "if_value",
             FIELD_JSON,
             when_value,
             .flags = FIELD_SHOWN,
             .schema = "{\"description\":\"of its condition; null: not known yet\"}"),
    FIELD_AT(run_step,
             "gpu_hours",
             FIELD_REAL,
             gpu_hours,
             .flags = FIELD_SHOWN,
             .doc = "that the jobs of all its tries held; 0 where an earlier run stands in for it"),
    FIELD_AT(run_step,
             "values",
             FIELD_JSON,
             values,
             .flags = FIELD_SHOWN,
             .schema = ANY_OBJECT,
             .doc = "each reference in `if` and `with`, and what it stands for; null: nothing yet"),
    FIELD_AT(
        run_step,
        "inputs",
        FIELD_JSON,
        inputs,
        .flags = FIELD_SHOWN,
        .schema = ANY_OBJECT,
        .doc = "`with` of the step with all values, once it has begun; null: not yet, or too long"),
    FIELD_AT(run_step,
             "reason",
             FIELD_JSON,
             reason,
             .flags = FIELD_SHOWN,
             .schema = REF_OR_NULL("Reason"),
             .doc = "why it is where it is"),
};
static const struct field_table run_step_table = {.name = "PipelineStep",
                                                  .rows = run_step_rows,
                                                  .n = array_len(run_step_rows),
                                                  .size = sizeof(struct run_step)};

struct run_page {
    struct pipe_life life;
    struct field_list steps;
    int64_t done, total;
    double gpu_hours;
};
static const struct field page_rows[] = {
    {.name = "",
     .type = FIELD_INLINE,
     .offset = offsetof(struct run_page, life),
     .of = &pipe_life_table,
     .flags = FIELD_BORROWED},
    FIELD_AT(run_page,
             "done",
             FIELD_INT,
             done,
             .flags = FIELD_SHOWN | FIELD_LISTED,
             .doc = "steps that have ended, each combination of a matrix counted"),
    FIELD_AT(run_page, "total", FIELD_INT, total, .flags = FIELD_SHOWN | FIELD_LISTED),
    FIELD_AT(run_page,
             "gpu_hours",
             FIELD_REAL,
             gpu_hours,
             .flags = FIELD_SHOWN | FIELD_LISTED,
             .doc = "that all its jobs held, those of retries counted"),
    FIELD_AT(run_page,
             "steps",
             FIELD_LIST,
             steps,
             .of = &run_step_table,
             .flags = FIELD_SHOWN | FIELD_ALWAYS),
};
static const struct field_table page_table = {.name = "PipelineRun",
                                              .rows = page_rows,
                                              .n = array_len(page_rows),
                                              .size = sizeof(struct run_page)};

/* Why, in the language of who asks, as JSON; code NULL: nothing is said. Heap. */
static char *run_reason(struct http_req *req,
                        struct api *a,
                        const char *job,
                        const char *code,
                        const char *text)
{
    struct api_eyes eyes = {.a = a, .p = http_req_principal(req)};
    struct buf out = BUF_INIT(REASON_MAX);
    struct jout j = jout_begin(&out);
    struct said said;
    if (!code)
        return NULL;
    saying_say(&eyes, job, code, str_or(text, "{}"), &said);
    field_to_json(&said_table, &said, FIELD_ALL, FIELD_PAGE, &j, NULL);
    said_release(&said);
    return out.failed ? (buf_release(&out), NULL) : buf_take(&out);
}

/* Its `with` as it was filled. Heap; NULL: it has not begun, or that is too long for a page. */
static char *run_inputs(const struct pipe_run *run, size_t item)
{
    struct buf out = BUF_INIT(WITH_SHOWN_MAX);
    if (run->v[item].state == PIPE_WAITING || run->v[item].state == PIPE_SKIPPED ||
        pipe_run_fill(run, item, &out, NULL) < 0) {
        buf_release(&out);
        return NULL;
    }
    return buf_take(&out);
}

/* What its jobs held, the one under way up to now. */
static double run_item_hours(const struct api *a, const struct pipe_item *i)
{
    const struct live *l =
        i->state == PIPE_RUNNING && i->job ? jobs_find_any(a->jobs, i->job) : NULL;
    return i->gpu_hours + i->gpu_hours_before + (l ? view_gpu_hours(0, l) : 0);
}

static char *run_text_of(json_t *taken)
{
    char *text = taken ? json_dumps(taken, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    json_decref(taken);
    return text;
}

static void run_fill_step(const struct resource_ask *q,
                          const struct pipe_run *run,
                          size_t item,
                          struct run_step *ret)
{
    const struct pipe_item *i = &run->v[item];
    const struct pipe_step *s = &run->pipe->steps[i->step];
    *ret = (struct run_step){.item = *i,
                             .step = s->name,
                             .uses = pipe_uses_to_string((enum pipe_uses)s->uses),
                             .when = s->when_text,
                             .gpu_hours = run_item_hours(q->a, i),
                             .when_value = run_text_of(pipe_run_if(run, item)),
                             .values = run_text_of(pipe_run_values(run, item)),
                             .inputs = run_inputs(run, item),
                             .reason = run_reason(q->req, q->a, i->job, i->code, i->text)};
    for (int k = 0; k < s->n_before; k++)
        strv_add(&ret->needs, run->pipe->steps[s->before[k]].name);
}

static void run_fill(struct resource_ask *q, const void *x, void *out)
{
    const struct pipe_life *r = x;
    struct run_page *page = out;
    struct run_step *v = xcalloc(r->run.n + 1, sizeof(*v));
    page->life = *r;
    page->total = (int64_t)r->run.n;
    for (size_t i = 0; i < r->run.n; i++) {
        run_fill_step(q, &r->run, i, &v[i]);
        page->gpu_hours += v[i].gpu_hours;
        page->done += r->run.v[i].state >= PIPE_SUCCEEDED;
    }
    page->steps = (struct field_list){.v = v, .n = r->run.n};
}

/* ---- which there are ---- */

static const void *run_next(struct resource_ask *q, size_t *pos)
{
    return pipes_next_run(q->a->pipes, pos);
}

static int run_check_list(struct resource_ask *q)
{
    int64_t before;
    return http_req_query_int(q->req, "before", 0, INT64_MAX, INT64_MAX, &before, &q->err);
}

static bool run_is_wanted(struct resource_ask *q, const void *x)
{
    const struct pipe_life *r = x;
    const char *pipeline = http_req_query(q->req, "pipeline");
    const char *owner = http_req_query(q->req, "owner");
    const char *user = http_req_query(q->req, "user");
    const char *state = http_req_query(q->req, "state");
    int64_t before = INT64_MAX;
    if (http_req_query_int(q->req, "before", 0, INT64_MAX, INT64_MAX, &before, NULL) < 0)
        before = INT64_MAX; /* run_check_list() has refused it */
    return r->number < before && (!pipeline || str_eq(r->pipeline, pipeline)) &&
           (!owner || str_eq(r->owner, owner)) && (!user || str_eq(r->user, user)) &&
           (!state || str_list_has(state, pipe_state_names[r->state]));
}

static const void *run_find(struct resource_ask *q, const void *asked)
{
    (void)asked;
    return pipes_find_run(q->a->pipes, q->name);
}

static void run_thing(struct resource_ask *q,
                      const void *x,
                      const void *asked,
                      struct access_thing *ret)
{
    (void)q;
    (void)asked;
    if (x)
        *ret = pipe_life_thing(x);
}

static const struct resource run_noun = {
    .noun = "pipeline run",
    .kind = ACCESS_KIND_PIPELINE,
    .collection = "runs",
    .param = "run",
    .flags = RESOURCE_CUT,
    .page = &page_table,
    .item = FIELD_LISTED,
    .may_see = ACCESS_PIPELINE_SEE,
    .may_change = ACCESS_PIPELINE_CHANGE,
    .next = run_next,
    .check_list = run_check_list,
    .wants = run_is_wanted,
    .find = run_find,
    .thing = run_thing,
    .fill = run_fill,
};

void runs_answer(struct http_req *req, struct api *a, const struct pipe_life *run, int status)
{
    struct resource_ask q;
    resource_begin(&q, req, a);
    q.of = &run_noun;
    resource_reply(&q, run, status, api_barrier(a));
    resource_end(&q);
}

/* ---- what one would do ---- */

struct plan_step {
    const char *name, *step, *uses, *matrix, *earlier, *job;
    int would;
    struct strv needs;
    char *reason; /* JSON */
    struct field_list changes, paths;
};
#define OF_PLAN(key, ftype, member, ...) FIELD_AT(plan_step, key, ftype, member, __VA_ARGS__)
static const struct field plan_step_rows[] = {
    OF_PLAN("name", FIELD_STR, name, .flags = FIELD_ALWAYS | FIELD_BORROWED),
    OF_PLAN("step", FIELD_STR, step, .flags = FIELD_ALWAYS | FIELD_BORROWED),
    OF_PLAN("uses", FIELD_STR, uses, .flags = FIELD_ALWAYS | FIELD_BORROWED),
    OF_PLAN("needs", FIELD_STRV, needs, .flags = FIELD_ALWAYS),
    OF_PLAN("matrix", FIELD_JSON, matrix, .flags = FIELD_BORROWED, .schema = ANY_OBJECT),
    OF_PLAN("would", FIELD_ENUM, would, .names = pipes_would_names),
    OF_PLAN("earlier",
            FIELD_STR,
            earlier,
            .flags = FIELD_BORROWED,
            .doc = "the run that stands in for it, or that it is compared with"),
    OF_PLAN("job", FIELD_STR, job, .flags = FIELD_BORROWED, .doc = "job of that run"),
    OF_PLAN("reason", FIELD_JSON, reason, .schema = REF_OR_NULL("Reason"), .doc = "why"),
    OF_PLAN("changes",
            FIELD_LIST,
            changes,
            .of = &pipes_change_table,
            .flags = FIELD_ALWAYS | FIELD_BORROWED,
            .doc = "changes of its `with` since that run: values as JSON texts"),
    OF_PLAN("paths",
            FIELD_LIST,
            paths,
            .of = &pipes_path_table,
            .flags = FIELD_ALWAYS | FIELD_BORROWED,
            .doc = "paths that it names and no registry does, and what of them counts as input"),
};
static const struct field_table plan_step_table =
    FIELD_TABLE("PipelinePlanStep", plan_step_rows, plan_step);

struct plan_page {
    const char *params;
    struct field_list steps;
    int64_t to_run, reused;
};
static const struct field plan_rows[] = {
    FIELD_AT(plan_page,
             "params",
             FIELD_JSON,
             params,
             .flags = FIELD_BORROWED,
             .schema = ANY_OBJECT),
    FIELD_AT(plan_page, "to_run", FIELD_INT, to_run, .doc = "steps that would run, or may"),
    FIELD_AT(plan_page, "reused", FIELD_INT, reused, .doc = "steps that would not run again"),
    FIELD_AT(plan_page, "steps", FIELD_LIST, steps, .of = &plan_step_table, .flags = FIELD_ALWAYS),
};
static const struct field_table plan_table = FIELD_TABLE("PipelinePlan", plan_rows, plan_page);

static void plan_answer(struct http_req *req, struct api *a, const struct pipes_plan *plan)
{
    const struct pipes_planned *planned = plan->steps.v;
    const struct pipe_run *run = &plan->run->run;
    struct plan_step *v = xcalloc(plan->steps.n + 1, sizeof(*v));
    struct plan_page page = {.params = plan->params,
                             .steps = {.v = v, .n = plan->steps.n},
                             .to_run = plan->to_run,
                             .reused = plan->reused};
    struct buf out = BUF_INIT(PLAN_MAX);
    struct jout j = jout_begin(&out);
    for (size_t i = 0; i < plan->steps.n; i++) {
        const struct pipes_planned *p = &planned[i];
        const struct pipe_step *s = &run->pipe->steps[run->v[i].step];
        v[i] = (struct plan_step){.name = p->name,
                                  .step = p->step,
                                  .uses = p->uses,
                                  .matrix = p->matrix,
                                  .earlier = p->earlier,
                                  .job = p->job,
                                  .would = p->would,
                                  .changes = p->changes,
                                  .paths = p->paths,
                                  .reason = run_reason(req, a, p->job, p->code, p->text)};
        for (int k = 0; k < s->n_before; k++)
            strv_add(&v[i].needs, run->pipe->steps[s->before[k]].name);
    }
    field_to_json(&plan_table, &page, FIELD_ALL, FIELD_PAGE, &j, NULL);
    http_reply_json(req, 200, &out, api_reader_barrier(a));
    buf_release(&out);
    for (size_t i = 0; i < plan->steps.n; i++)
        v[i].changes = v[i].paths = (struct field_list){0}; /* they are the plan's */
    field_release(&plan_table, &page);
}

struct plan_wait {
    struct http_req *req;
    struct api *a;
    struct pipes_sight *sight;
    runs_seeing_f again;
};

static void plan_on_close(struct http_req *req, void *arg)
{
    struct plan_wait *w = arg;
    (void)req;
    pipes_sight_free(w->sight); /* plan_on_seen() is not called any more */
    free(w);
}

static void plan_on_seen(void *arg)
{
    struct plan_wait *w = arg, now = *w;
    free(w);
    http_req_on_close(now.req, NULL, NULL);
    now.again(now.req, now.a, now.sight);
}

void runs_answer_plan(struct http_req *req,
                      struct api *a,
                      struct pipes_plan *plan,
                      struct pipes_sight **sight,
                      runs_seeing_f again)
{
    if (pipes_sight_is_open(*sight)) {
        struct plan_wait *w = xcalloc(1, sizeof(*w));
        *w = (struct plan_wait){req, a, *sight, again};
        *sight = NULL;
        http_req_on_close(req, plan_on_close, w);
        pipes_sight_look(w->sight, http_req_principal(req)->user, plan_on_seen, w);
    } else {
        plan_answer(req, a, plan);
    }
    pipes_plan_release(plan);
}

/* ---- what is done to one ---- */

static void run_cancel(struct http_req *req, void *app)
{
    struct resource_ask q;
    resource_begin(&q, req, app);
    const struct pipe_life *r = resource_find(&q, RESOURCE_TO_CHANGE, "cancel");
    _cleanup_(json_unrefp) json_t *body = r ? api_read_action(req, NULL) : NULL;
    if (!r) {
        resource_refuse(&q);
    } else if (body) {
        (void)pipes_cancel(q.a->pipes, r, q.who.user); /* one that is over stays as it is */
        resource_reply(&q, r, 202, api_barrier(q.a));
    }
    resource_end(&q);
}

static void run_rollback(struct http_req *req, void *app)
{
    struct resource_ask q;
    resource_begin(&q, req, app);
    const struct pipe_life *r = resource_find(&q, RESOURCE_TO_CHANGE, "roll back");
    _cleanup_(json_unrefp) json_t *body = r ? api_read_action(req, NULL) : NULL;
    if (!r || (body && pipes_roll_back(q.a->pipes, r, &q.who, &q.err) < 0))
        resource_refuse(&q);
    else if (body)
        resource_reply(&q, r, 202, api_barrier(q.a));
    resource_end(&q);
}

static const struct field retry_rows[] = {OPT_AS("from", TEXT_OR_NULL),
                                          OPT_AS("params", RUNS_PARAMS), OPT_BOOLEAN("force"),
                                          OPT_BOOLEAN("dry_run")};
static const struct field_table retry_form_of_run = ACTION_FORM(retry_rows);

static void run_retry_seeing(struct http_req *req, struct api *a, struct pipes_sight *taken_sight);

/* *sight becomes NULL where the request waits for it. */
static int run_again(struct resource_ask *q,
                     const struct pipe_life *r,
                     json_t *body,
                     struct pipes_sight **sight)
{
    const struct pipes_retry_ask ask = {.step = json_get_str(body, "from", NULL),
                                        .params = json_object_get(body, "params"),
                                        .force = json_get_bool(body, "force", false)};
    struct pipes_plan plan = {0};
    int x;
    if (json_get_bool(body, "dry_run", false)) {
        x = pipes_plan_retry(r, &ask, *sight, &plan, &q->problems, &q->err);
        if (x == 0)
            runs_answer_plan(q->req, q->a, &plan, sight, run_retry_seeing);
        return x;
    }
    x = pipes_retry(q->a->pipes, r, &ask, q->who.user, &q->problems, &q->err);
    if (x == 0)
        resource_reply(q, r, 202, api_barrier(q->a));
    return x;
}

static void run_retry_seeing(struct http_req *req, struct api *a, struct pipes_sight *taken_sight)
{
    struct resource_ask q;
    resource_begin(&q, req, a);
    const struct pipe_life *r = resource_find(&q, RESOURCE_TO_CHANGE, "retry");
    _cleanup_(json_unrefp) json_t *body = NULL;
    if (!r || ((body = api_read_action(req, &retry_form_of_run)) &&
               run_again(&q, r, body, &taken_sight) < 0))
        resource_refuse(&q);
    pipes_sight_free(taken_sight);
    resource_end(&q);
}

static void run_retry(struct http_req *req, void *app)
{
    run_retry_seeing(req, app, pipes_sight_new(app));
}

static const struct http_param list_params[] = {
    {"pipeline", HTTP_PARAM_STRING, "only of this one"},
    {"owner", HTTP_PARAM_STRING, "only of this user's pipelines"},
    {"user", HTTP_PARAM_STRING, "only those that this user began"},
    {"state", HTTP_PARAM_STRING, "only in these, comma-separated"},
    {"before", HTTP_PARAM_INTEGER, "only those whose number is smaller"},
    {"limit", HTTP_PARAM_INTEGER, "how many at most, 1 to 2000; 200 if absent"},
    {0}};
static const struct http_route rows[] = {
    RESOURCE_LIST(&run_noun,
                  "/v1/pipeline-runs",
                  VIEWER,
                  "runs of pipelines, the newest first: yours and those of your projects, or all",
                  .params = list_params,
                  .reply_schema = "PipelineRunList"),
    RESOURCE_GET(&run_noun,
                 "/v1/pipeline-runs/{run}",
                 VIEWER,
                 "one run: its steps with their states, jobs and what they left behind",
                 .reply_schema = "PipelineRun",
                 .example = "sft-to-model-1"),
    RESOURCE_ROUTE("POST",
                   run_cancel,
                   &run_noun,
                   "/v1/pipeline-runs/{run}:cancel",
                   USER,
                   "stop its jobs and begin no other step",
                   .max_body = RESOURCE_BODY_MAX,
                   .reply_schema = "PipelineRun",
                   .reply_status = 202),
    RESOURCE_ROUTE("POST",
                   run_rollback,
                   &run_noun,
                   "/v1/pipeline-runs/{run}:rollback",
                   USER,
                   "the services that it deployed, where its version has the traffic, go back to "
                   "the version before",
                   .max_body = RESOURCE_BODY_MAX,
                   .reply_schema = "PipelineRun",
                   .reply_status = 202),
    RESOURCE_ROUTE(
        "POST",
        run_retry,
        &run_noun,
        "/v1/pipeline-runs/{run}:retry",
        USER,
        "run again what did not succeed, or (from) a step, and all that needs it; params: new "
        "values of some parameters, and what reads them goes again, too; dry_run: what it would "
        "do, and nothing is begun",
        .max_body = RESOURCE_BODY_MAX,
        .request_schema = "PipelineRetryForm",
        .reply_schema = "PipelineRun",
        .reply_status = 202,
        .other_schema = "PipelinePlan"),
};
static const struct http_schema schemas[] = {
    {.name = "PipelineRun", .table = &page_table, .which = FIELD_SHOWN},
    {.name = "PipelineStep", .table = &run_step_table, .which = FIELD_SHOWN},
    {.name = "PipelineRunItem", .table = &page_table, .which = FIELD_LISTED},
    LIST_OF("PipelineRunList", "runs", "PipelineRunItem"),
    {.name = "PipelinePlan", .table = &plan_table},
    {.name = "PipelinePlanStep", .table = &plan_step_table},
    {.name = "PipelineChange", .table = &pipes_change_table},
    {.name = "PipelinePath", .table = &pipes_path_table},
    {.name = "PipelineRetryForm", .table = &retry_form_of_run, .is_form = true},
};
const struct api_part part_runs_page = {rows, array_len(rows), schemas, array_len(schemas)};

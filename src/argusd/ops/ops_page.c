/* SPDX-License-Identifier: Apache-2.0 */
/* ops_page.c - /v1/ops: plan an action, look at plans, approve, apply.
 *
 * A POST of an action makes a plan and does nothing: what is done, :apply does. What an action
 * needs of who asks is asked when it is planned, and again when it is applied. */
#include <stdlib.h>
#include <string.h>

#include "argusd/api/routes.h"
#include "argusd/archive/archives.h"
#include "argusd/checkpoints/checkpoints.h"
#include "argusd/kit/resource.h"
#include "argusd/kit/saying.h"
#include "argusd/ops/ops.h"
#include "base/doc/conf.h"
#include "base/message.h"
#include "base/str.h"

/* ---- the page ---- */

struct ops_step_page {
    const char *step, *state;
    usec_t begun_at, ended_at;
    char *expected, *real; /* JSON */
};
#define STEP(key, ftype, ...) FIELD_AT(ops_step_page, #key, ftype, key, __VA_ARGS__)
static const struct field step_page_rows[] = {
    STEP(step, FIELD_STR, .flags = FIELD_ALWAYS | FIELD_BORROWED),
    STEP(state,
         FIELD_STR,
         .flags = FIELD_ALWAYS | FIELD_BORROWED,
         .doc = "waiting, running, done, failed, broken_off"),
    STEP(begun_at, FIELD_TIME),
    STEP(ended_at, FIELD_TIME),
    STEP(expected, FIELD_JSON, .flags = FIELD_ALWAYS, .schema = REF("Reason")),
    STEP(real,
         FIELD_JSON,
         .schema = REF_OR_NULL("Reason"),
         .doc = "what the look behind it found, or finds now; null: it has not begun"),
};
static const struct field_table step_page_table =
    FIELD_TABLE("OpsStep", step_page_rows, ops_step_page);

struct ops_page {
    struct ops_plan p; /* borrowed */
    const char *state, *then, *confirm;
    struct field_list steps, difference;
};
enum { EVERYWHERE = FIELD_SHOWN | FIELD_LISTED };
#define P(key, ftype, ...) FIELD_AT(ops_page, #key, ftype, key, __VA_ARGS__)
static const struct field page_rows[] = {
    {.name = "",
     .type = FIELD_INLINE,
     .offset = offsetof(struct ops_page, p),
     .of = &ops_plan_table,
     .flags = FIELD_BORROWED},
    P(state,
      FIELD_STR,
      .flags = EVERYWHERE | FIELD_ALWAYS | FIELD_BORROWED,
      .doc = "waiting (for approval or apply), expired, applying, done, failed, broken_off"),
    P(then,
      FIELD_STR,
      .flags = FIELD_SHOWN | FIELD_BORROWED,
      .doc = "what becomes of jobs at the deadline of a drain"),
    P(confirm,
      FIELD_STR,
      .flags = EVERYWHERE | FIELD_BORROWED,
      .doc = "the word that has to come with :apply; null: none"),
    P(steps, FIELD_LIST, .of = &step_page_table, .flags = FIELD_SHOWN),
    P(difference,
      FIELD_LIST,
      .of = &opsfacts_change_table,
      .flags = FIELD_SHOWN,
      .doc = "while it waits: what is not as it was; with any it is not applied"),
};
static const struct field_table page_table = FIELD_TABLE("OpsPlan", page_rows, ops_page);

/* Taken, as JSON; NULL of NULL. */
static char *ops_page_say(const struct resource_ask *q, char *kept_taken)
{
    const struct api_eyes eyes = {.a = q->a, .p = http_req_principal(q->req)};
    _cleanup_(freep) char *kept = kept_taken;
    struct said said = {0};
    if (!kept)
        return NULL;
    saying_say(&eyes, NULL, message_kept_code(kept), message_kept_text(kept), &said);
    char *json = field_to_text(&said_table, &said, FIELD_ALL, FIELD_PAGE);
    said_release(&said);
    return json;
}

static void ops_page_steps(const struct resource_ask *q,
                           const struct ops_plan *p,
                           struct ops_page *ret)
{
    const struct ops_step *v = p->steps.v;
    struct ops_step_page *rows = xcalloc(p->steps.n + 1, sizeof(*rows));
    for (size_t i = 0; i < p->steps.n; i++) {
        char *real = v[i].real                           ? xstrdup(v[i].real)
                     : v[i].state == OPS_STEP_IS_RUNNING ? ops_step_now(p, &v[i])
                                                         : NULL;
        rows[i] = (struct ops_step_page){.step = ops_step_words[v[i].what],
                                         .state = ops_step_states[v[i].state],
                                         .begun_at = v[i].begun_at,
                                         .ended_at = v[i].ended_at,
                                         .expected = ops_page_say(q, ops_step_expected(p, &v[i])),
                                         .real = ops_page_say(q, real)};
    }
    ret->steps = (struct field_list){.v = rows, .n = p->steps.n};
}

static void ops_page_fill(struct resource_ask *q, const void *object, void *out)
{
    const struct ops_plan *p = object;
    struct ops_page *page = out;
    page->p = *p;
    page->state = ops_is_expired(p) ? "expired" : ops_state_word(p);
    page->then = p->action == OPS_DRAIN_NODE || p->action == OPS_REMOVE_NODE
                     ? node_then_to_string((enum node_then)p->then)
                     : NULL;
    page->confirm = ops_confirmation(p);
    if (q->is_trail)
        return;
    ops_page_steps(q, p, page);
    struct err ignored = {0}; /* what is gone cannot be compared: :apply says it */
    if (p->state == OPS_IS_WAITING && ops_compare(p, p->role, &page->difference, &ignored) < 0)
        page->difference = (struct field_list){0};
}

/* ---- finding ---- */

static const void *ops_page_next(struct resource_ask *q, size_t *pos)
{
    return ops_next(q->a->ops, pos);
}

static int ops_page_newest_first(const void *a, const void *b)
{
    const struct ops_plan *x = *(const struct ops_plan *const *)a;
    const struct ops_plan *y = *(const struct ops_plan *const *)b;
    if (x->created_at != y->created_at)
        return x->created_at < y->created_at ? 1 : -1;
    return strcmp(x->id, y->id);
}

static const void *ops_page_find(struct resource_ask *q, const void *asked)
{
    (void)asked;
    return ops_find(q->a->ops, q->name);
}

static bool ops_page_wants(struct resource_ask *q, const void *x)
{
    return !http_req_query_bool(q->req, "waiting", false) ||
           (!ops_is_over(x) && ((const struct ops_plan *)x)->state == OPS_IS_WAITING);
}

static void ops_page_thing(struct resource_ask *q,
                           const void *x,
                           const void *asked,
                           struct access_thing *ret)
{
    (void)asked;
    if (x)
        *ret = ops_thing_of(x);
    else
        *ret = (struct access_thing){.kind = ACCESS_KIND_PLAN, .name = "new", .owner = q->who.user};
}

static const struct resource plan_noun = {
    .noun = "plan",
    .kind = ACCESS_KIND_PLAN,
    .collection = "plans",
    .param = "plan",
    .page = &page_table,
    .item = FIELD_LISTED,
    .trail = FIELD_LISTED,
    .may_see = ACCESS_PLAN_SEE,
    .may_change = ACCESS_PLAN_CHANGE,
    .next = ops_page_next,
    .compare = ops_page_newest_first,
    .wants = ops_page_wants,
    .find = ops_page_find,
    .thing = ops_page_thing,
    .fill = ops_page_fill,
};

/* ---- plan ---- */

static const char *const then_words[] = {"wait", "stop", "restart", NULL};
_Static_assert(NODE_THEN_WAIT == 0 && NODE_THEN_STOP == 1 && NODE_THEN_RESTART == 2 &&
                   NODE_THEN_END == 3,
               "then_words is in the order of enum node_then");

/* A body. */
struct ops_form {
    bool dry_run;
    struct ops_plan p;
};
#define ASK(key, ftype, member, ...) FIELD_AT(ops_form, key, ftype, member, __VA_ARGS__)
#define ASK_DRY                                                                                    \
    ASK("dry_run", FIELD_BOOL, dry_run, .dflt = "true",                                            \
        .doc = "a POST only plans: false is refused, :apply does it")
#define ASK_DRAIN                                                                                  \
    ASK("deadline", FIELD_SPAN, p.within, .doc = "how long what runs there may go on"),            \
        ASK("then", FIELD_ENUM, p.then, .names = then_words, .dflt = "wait",                       \
            .doc = "at the deadline: wait on, stop the jobs, or restart them elsewhere")
#define ASK_STOP_FOREIGN                                                                           \
    ASK("stop_foreign", FIELD_BOOL, p.stop_foreign,                                                \
        .doc = "jobs that Argus did not submit are not waited for, but stopped with the machine")
static const struct field drain_rows[] = {
    ASK("node", FIELD_STR, p.target, .flags = FIELD_REQUIRED),
    ASK_DRAIN,
    ASK_STOP_FOREIGN,
    ASK_DRY,
};
static const struct field remove_rows[] = {
    ASK("node", FIELD_STR, p.target, .flags = FIELD_REQUIRED),
    ASK_DRAIN,
    ASK("force",
        FIELD_BOOL,
        p.force,
        .doc = "at once: its jobs end, none is waited for but those that Argus did not submit"),
    ASK_STOP_FOREIGN,
    ASK_DRY,
};
static const struct field head_rows[] = {
    ASK("cluster", FIELD_STR, p.target, .doc = "the one there is, if not given"),
    ASK("force", FIELD_BOOL, p.force, .doc = "though jobs run"),
    ASK_STOP_FOREIGN,
    ASK_DRY,
};
static const struct field cleanup_rows[] = {
    ASK("job", FIELD_STR, p.target, .flags = FIELD_REQUIRED),
    ASK_DRY,
};
static const struct field stop_rows[] = {
    ASK("jobs", FIELD_STRV, p.ids, .doc = "these alone"),
    ASK("user", FIELD_STR, p.of_user, .doc = "jobs of this user"),
    ASK("project", FIELD_STR, p.of_project, .doc = "jobs of this project"),
    ASK("pool", FIELD_STR, p.of_pool, .doc = "jobs for this pool"),
    ASK_DRY,
};
static const struct field_table forms[OPS_ACTIONS] = {
    [OPS_DRAIN_NODE] = FIELD_TABLE(NULL, drain_rows, ops_form),
    [OPS_REMOVE_NODE] = FIELD_TABLE(NULL, remove_rows, ops_form),
    [OPS_RESTART_RAY_HEAD] = FIELD_TABLE(NULL, head_rows, ops_form),
    [OPS_CLEANUP_JOB_ARTIFACTS] = FIELD_TABLE(NULL, cleanup_rows, ops_form),
    [OPS_STOP_MANY] = FIELD_TABLE(NULL, stop_rows, ops_form),
};

static int ops_read_form(struct resource_ask *q, enum ops_action action, struct ops_form *ret)
{
    const struct http_principal *who = http_req_principal(q->req);
    struct doc *d = NULL;
    size_t n;
    const char *body = http_req_body(q->req, &n);
    if (doc_parse(n ? body : "{}", n ? n : 2, n > 0, &d, &q->problems) == 0)
        conf_read(forms[action].rows, forms[action].n, doc_root(d), ret, &q->problems);
    doc_free(d);
    ret->p.action = (int)action;
    ret->p.role = (int)who->role;
    set_str(&ret->p.user, who->user);
    if (q->problems.errors)
        return ERR_BAD_SPEC;
    if (!ret->dry_run)
        return message_refuse(&q->err, ERR_BAD_REQUEST, "ops_plans_only", MESSAGE_NO_ARGS);
    return 0;
}

static void ops_form_release(struct ops_form *f)
{
    field_release(&ops_plan_table, &f->p);
}

/* Only an admin plans for machines; for jobs, each job is asked when the jobs are looked at. */
static int ops_check_action(struct resource_ask *q, int action, const char *verb)
{
    const struct access_thing cluster = {.kind = ACCESS_KIND_CLUSTER,
                                         .name = q->a->settings->cluster};
    if (action == OPS_STOP_MANY || action == OPS_CLEANUP_JOB_ARTIFACTS)
        return 0;
    return access_check_common(&q->who, ACCESS_MACHINE_CHANGE, verb, &cluster, &q->err);
}

static void ops_plan_made(struct resource_ask *q,
                          struct ops_form *f,
                          const struct checkpoints_answer *goes)
{
    const struct ops_plan *p;
    if (ops_add(q->a->ops, &f->p, goes, &p, &q->err) < 0) {
        resource_refuse(q);
        return;
    }
    _cleanup_(freep) char *at = xasprintf("/v1/ops/plans/%s", p->id);
    http_reply_header(q->req, "Location", at);
    resource_reply(q, p, 201, api_barrier(q->a));
}

static int ops_begin_plan(struct resource_ask *q, enum ops_action action, struct ops_form *f)
{
    int r = resource_may(q, RESOURCE_TO_CHANGE, "plan", NULL, NULL);
    if (r == 0)
        r = ops_check_action(q, (int)action, "change");
    return r == 0 ? ops_read_form(q, action, f) : r;
}

static void ops_plan_now(struct http_req *req, struct api *a, enum ops_action action)
{
    struct resource_ask q;
    struct ops_form f = {0};
    resource_begin(&q, req, a);
    if (ops_begin_plan(&q, action, &f) < 0)
        resource_refuse(&q);
    else
        ops_plan_made(&q, &f, NULL);
    ops_form_release(&f);
    resource_end(&q);
}

static void ops_plan_drain(struct http_req *req, void *app)
{
    ops_plan_now(req, app, OPS_DRAIN_NODE);
}

static void ops_plan_remove(struct http_req *req, void *app)
{
    ops_plan_now(req, app, OPS_REMOVE_NODE);
}

static void ops_plan_head(struct http_req *req, void *app)
{
    ops_plan_now(req, app, OPS_RESTART_RAY_HEAD);
}

static void ops_plan_stop(struct http_req *req, void *app)
{
    ops_plan_now(req, app, OPS_STOP_MANY);
}

/* ---- plan of a clean-up: what would go is looked at on disk first ---- */

struct ops_cleanup {
    struct http_req *req;
    struct api *a;
    struct checkpoints_ask *ask;
    char *job;
};

static void ops_cleanup_free(struct ops_cleanup *c)
{
    free(c->job);
    free(c);
}

static void ops_cleanup_gone(struct http_req *req, void *arg)
{
    struct ops_cleanup *c = arg;
    (void)req;
    checkpoints_unask(c->ask);
    ops_cleanup_free(c);
}

static void ops_cleanup_looked(const struct checkpoints_answer *goes, void *arg)
{
    struct ops_cleanup *c = arg;
    struct resource_ask q;
    struct ops_form f = {0};
    http_req_on_close(c->req, NULL, NULL);
    resource_begin(&q, c->req, c->a);
    int r = ops_read_form(&q, OPS_CLEANUP_JOB_ARTIFACTS, &f);
    if (r == 0 && goes->err->code) {
        q.err = *goes->err;
        r = q.err.code = ERR_UNAVAILABLE;
    }
    set_str(&f.p.target, c->job); /* it may have been named by a beginning */
    if (r < 0)
        resource_refuse(&q);
    else
        ops_plan_made(&q, &f, goes);
    ops_form_release(&f);
    resource_end(&q);
    ops_cleanup_free(c);
}

static void ops_cleanup_found(struct http_req *req,
                              struct api *a,
                              const struct job *job,
                              const struct record_extra *extra,
                              struct live *l)
{
    const struct http_principal *p = http_req_principal(req);
    struct err err = {0};
    (void)extra;
    (void)l;
    int r = api_may_change(a, p, "clean up", job, &err);
    if (r == 0)
        r = archives_check_files(a->archives, job->id, &err);
    if (r == 0)
        r = cluster_check_root_answers(a->cluster, &err);
    if (r < 0) {
        api_fail(req, &err, 0);
        return;
    }
    struct ops_cleanup *c = xcalloc(1, sizeof(*c));
    *c = (struct ops_cleanup){.req = req, .a = a, .job = xstrdup(job->id)};
    http_req_on_close(req, ops_cleanup_gone, c);
    c->ask = checkpoints_gc(a->checkpoints, job, true, p->user, ops_cleanup_looked, c);
}

static void ops_plan_cleanup(struct http_req *req, void *app)
{
    struct resource_ask q;
    struct ops_form f = {0};
    resource_begin(&q, req, app);
    if (ops_begin_plan(&q, OPS_CLEANUP_JOB_ARTIFACTS, &f) < 0)
        resource_refuse(&q);
    else
        api_find_job_named(req, app, f.p.target, ops_cleanup_found);
    ops_form_release(&f);
    resource_end(&q);
}

/* ---- approve, apply ---- */

static void ops_plan_approve(struct http_req *req, void *app)
{
    struct resource_ask q;
    resource_begin(&q, req, app);
    const struct ops_plan *p = resource_find(&q, RESOURCE_TO_SEE, "approve");
    const struct access_thing thing = p ? ops_thing_of(p) : (struct access_thing){0};
    if (p && access_check(&q.who, ACCESS_PLAN_APPROVE, "approve", &thing, &q.err) == 0 &&
        resource_can_store(&q) == 0 && ops_approve(q.a->ops, p, q.who.user, &q.err) == 0)
        resource_reply(&q, p, 200, api_barrier(q.a));
    else
        resource_refuse(&q);
    resource_end(&q);
}

/* Somebody waits for the end of a plan. */
struct ops_end_wait {
    struct http_req *req;
    struct api *a;
    struct ops_waiter *waiter;
    int status;
};

static void ops_answer_wait(struct ops_end_wait *w)
{
    struct resource_ask q;
    http_req_on_close(w->req, NULL, NULL);
    resource_begin(&q, w->req, w->a);
    const struct ops_plan *p = ops_find(q.a->ops, q.name);
    resource_reply(&q, p, w->status, api_barrier(q.a));
    resource_end(&q);
    free(w);
}

static void ops_on_over(void *arg)
{
    ops_answer_wait(arg); /* the waiter is gone with the call */
}

static void ops_on_wait_late(struct http_req *req, void *arg)
{
    struct ops_end_wait *w = arg;
    (void)req;
    ops_unwait(w->waiter);
    ops_answer_wait(w);
}

static void ops_on_waiter_gone(struct http_req *req, void *arg)
{
    struct ops_end_wait *w = arg;
    (void)req;
    ops_unwait(w->waiter);
    free(w);
}

/* At once, or with ?wait= when it is over. */
static void ops_reply_over(struct resource_ask *q, const struct ops_plan *p, int status)
{
    usec_t span = http_req_wait(q->req);
    if (!span || p->state != OPS_IS_APPLYING) {
        resource_reply(q, p, status, api_barrier(q->a));
        return;
    }
    struct ops_end_wait *w = xcalloc(1, sizeof(*w));
    *w = (struct ops_end_wait){.req = q->req, .a = q->a, .status = status};
    w->waiter = ops_wait(p, ops_on_over, w);
    http_req_on_close(q->req, ops_on_waiter_gone, w);
    http_req_park(q->req, span, ops_on_wait_late, w);
}

static void ops_plan_get(struct http_req *req, void *app)
{
    struct resource_ask q;
    resource_begin(&q, req, app);
    const struct ops_plan *p = resource_find(&q, RESOURCE_TO_SEE, "see");
    if (p)
        ops_reply_over(&q, p, 200);
    else
        resource_refuse(&q);
    resource_end(&q);
}

static const struct field apply_rows[] = {OPT_TEXT("confirm")};
static const struct field_table apply_form = ACTION_FORM(apply_rows);

static void ops_plan_apply(struct http_req *req, void *app)
{
    struct resource_ask q;
    _cleanup_(json_unrefp) json_t *body = NULL;
    resource_begin(&q, req, app);
    const struct ops_plan *p = resource_find(&q, RESOURCE_TO_CHANGE, "apply");
    if (!p || ops_check_action(&q, p->action, "change") < 0) {
        resource_refuse(&q);
    } else if ((body = api_read_action(req, &apply_form))) {
        if (ops_apply(q.a->ops, p, http_req_principal(req), json_get_str(body, "confirm", NULL),
                      &q.err) < 0)
            resource_refuse(&q);
        else
            ops_reply_over(&q, p, 202);
    }
    resource_end(&q);
}

/* ---- routes ---- */

static const struct http_param list_params[] = {
    {"waiting", HTTP_PARAM_BOOLEAN, "those alone that wait for approval or apply"},
    {NULL, 0, NULL}};
static const struct http_param wait_params[] = {
    {"wait", HTTP_PARAM_SPAN, "while it is applied: answer when it is over, at most 60s"},
    {NULL, 0, NULL}};

#define PLANS(path, handler, role, form, words)                                                    \
    RESOURCE_ROUTE("POST", handler, &plan_noun, path, role, words, .max_body = RESOURCE_BODY_MAX,  \
                   .request_schema = (form), .reply_schema = "OpsPlan", .reply_status = 201)
static const struct http_route rows[] = {
    PLANS("/v1/ops/drain_node",
          ops_plan_drain,
          ADMIN,
          "OpsDrainNode",
          "plan to let a machine run empty; nothing is done before :apply"),
    PLANS("/v1/ops/remove_node",
          ops_plan_remove,
          ADMIN,
          "OpsRemoveNode",
          "plan to let a machine run empty and forget it"),
    PLANS("/v1/ops/restart_ray_head",
          ops_plan_head,
          ADMIN,
          "OpsRestartRayHead",
          "plan to restart the managed head with its machines; jobs that may go back to the queue"),
    PLANS(
        "/v1/ops/cleanup_job_artifacts",
        ops_plan_cleanup,
        USER,
        "OpsCleanupJobArtifacts",
        "plan to remove the checkpoints of a job that nothing needs; the newest verified one stays"),
    PLANS("/v1/ops/stop_many", ops_plan_stop, USER, "OpsStopMany", "plan to stop jobs"),
    RESOURCE_LIST(&plan_noun,
                  "/v1/ops/plans",
                  VIEWER,
                  "plans: yours, or all; the newest first",
                  .params = list_params,
                  .reply_schema = "OpsPlanList"),
    RESOURCE_ROUTE("GET",
                   ops_plan_get,
                   &plan_noun,
                   "/v1/ops/plans/{plan}",
                   VIEWER,
                   "one plan: what it touches, its steps, and what each came to",
                   .params = wait_params,
                   .reply_schema = "OpsPlan",
                   .example = "plan-0123456789"),
    RESOURCE_ROUTE("POST",
                   ops_plan_approve,
                   &plan_noun,
                   "/v1/ops/plans/{plan}:approve",
                   ADMIN,
                   "say that a plan of somebody else may be applied",
                   .max_body = RESOURCE_BODY_MAX,
                   .reply_schema = "OpsPlan"),
    RESOURCE_ROUTE("POST",
                   ops_plan_apply,
                   &plan_noun,
                   "/v1/ops/plans/{plan}:apply",
                   USER,
                   "do what the plan says, if the state is still the one that it was made for",
                   .params = wait_params,
                   .max_body = RESOURCE_BODY_MAX,
                   .request_schema = "OpsApply",
                   .reply_schema = "OpsPlan",
                   .reply_status = 202),
};
static const struct http_schema schemas[] = {
    {.name = "OpsDrainNode", .table = &forms[OPS_DRAIN_NODE], .is_form = true},
    {.name = "OpsRemoveNode", .table = &forms[OPS_REMOVE_NODE], .is_form = true},
    {.name = "OpsRestartRayHead", .table = &forms[OPS_RESTART_RAY_HEAD], .is_form = true},
    {.name = "OpsCleanupJobArtifacts", .table = &forms[OPS_CLEANUP_JOB_ARTIFACTS], .is_form = true},
    {.name = "OpsStopMany", .table = &forms[OPS_STOP_MANY], .is_form = true},
    {.name = "OpsApply", .table = &apply_form, .is_form = true},
    {.name = "OpsDifference", .table = &opsfacts_change_table},
    {.name = "OpsStep", .table = &step_page_table},
    {.name = "OpsPlan", .table = &page_table, .which = FIELD_SHOWN},
    {.name = "OpsPlanItem", .table = &page_table, .which = FIELD_LISTED},
    LIST_OF("OpsPlanList", "plans", "OpsPlanItem"),
};
const struct api_part part_ops_page = {rows, array_len(rows), schemas, array_len(schemas)};

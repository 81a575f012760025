/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - what a submit with ?dry_run would do: the command line, the nodes it would
 * get now or why not, what it adds to its quotas, when it would start.
 *
 * The page is begun on the loop with what is known there. A worker makes the command line
 * and asks copies of the scheduler: nothing is written, nothing is queued. */
#include <stdlib.h>
#include <string.h>

#include "argusd/checkpoints/checkpoints.h"
#include "argusd/content/snapshots.h"
#include "argusd/ground/work.h"
#include "argusd/kit/api.h"
#include "argusd/kit/saying.h"
#include "argusd/kit/view.h"
#include "argusd/launch/drytrial.h"
#include "argusd/launch/fitcheck.h"
#include "argusd/launch/launchplan.h"
#include "argusd/launch/pastruns.h"
#include "argusd/submit/jobshift.h"
#include "argusd/submit/plan.h"
#include "argusd/submit/plan_checks.h"
#include "base/said.h"
#include "base/str.h"
#include "base/text.h"
#include "core/past/advise.h"

enum { ANSWER_MAX = 2 << 20, FORESEEN_MAX = 1000 };

/* ---- the page ---- */

struct plan_demand {
    int nnodes;
    double gpus, cpus, memory;
};
static const struct field demand_rows[] = {
    FIELD_AT(plan_demand, "nnodes", FIELD_INT32, nnodes),
    FIELD_AT(plan_demand, "gpus", FIELD_REAL, gpus),
    FIELD_AT(plan_demand, "cpus", FIELD_REAL, cpus),
    FIELD_AT(plan_demand, "memory", FIELD_REAL, memory),
};
static const struct field_table demand_table = FIELD_TABLE(NULL, demand_rows, plan_demand);

struct plan_placement {
    struct field_list nodes;
    const char *driver_node;
};
static const struct field placement_rows[] = {
    FIELD_AT(plan_placement, "nodes", FIELD_LIST, nodes, .of = &view_node_gpus_table),
    FIELD_AT(plan_placement, "driver_node", FIELD_STR, driver_node),
};
static const struct field_table placement_table = FIELD_TABLE(NULL, placement_rows, plan_placement);

struct plan_why {
    struct said reason, hint;
    int position;
};
static const struct field why_rows[] = {
    FIELD_AT(plan_why, "", FIELD_INLINE, reason, .of = &said_table),
    FIELD_AT(plan_why, "position", FIELD_INT32, position),
    FIELD_AT(plan_why, "hint_text", FIELD_STR, hint.text, .flags = FIELD_ALWAYS),
};
static const struct field_table why_table = FIELD_TABLE(NULL, why_rows, plan_why);

struct plan_account {
    const char *name;
    double gpus_used, gpus_after, guaranteed, ceiling, borrowed_after;
    int running, queued;
};
#define ACCOUNT(key, ftype, member, ...) FIELD_AT(plan_account, key, ftype, member, __VA_ARGS__)
static const struct field account_rows[] = {
    ACCOUNT("name", FIELD_STR, name, .flags = FIELD_ALWAYS),
    ACCOUNT("gpus_used", FIELD_REAL, gpus_used),
    ACCOUNT("gpus_after", FIELD_REAL, gpus_after),
    ACCOUNT("running", FIELD_INT32, running),
    ACCOUNT("queued", FIELD_INT32, queued),
    ACCOUNT("gpus_guaranteed", FIELD_REAL, guaranteed, .flags = FIELD_NO_LIMIT | FIELD_OMIT),
    ACCOUNT("gpus_ceiling", FIELD_REAL, ceiling, .flags = FIELD_NO_LIMIT | FIELD_OMIT),
    ACCOUNT("gpus_borrowed_after",
            FIELD_REAL,
            borrowed_after,
            .flags = FIELD_NO_LIMIT | FIELD_OMIT),
};
#undef ACCOUNT
static const struct field_table account_table = FIELD_TABLE(NULL, account_rows, plan_account);

enum plan_trial_state { PLAN_TRIAL_NOT_RUN, PLAN_TRIAL_PASSED, PLAN_TRIAL_FAILED };
static const char *const trial_states[] = {"not_run", "passed", "failed", NULL};
struct plan_trial {
    enum plan_trial_state state;
    char text[512];
    char *result;
};
static const struct field trial_rows[] = {
    FIELD_AT(plan_trial, "state", FIELD_ENUM, state, .names = trial_states),
    FIELD_AT(plan_trial, "text", FIELD_TEXT, text),
    FIELD_AT(plan_trial, "result", FIELD_JSON, result, .schema = "TrialResult"),
};
static const struct field_table trial_table = FIELD_TABLE(NULL, trial_rows, plan_trial);

/* What runs like it took. */
struct plan_span {
    int64_t p50_s, p90_s;
};
static const struct field span_rows[] = {
    FIELD_AT(plan_span, "p50_s", FIELD_INT, p50_s),
    FIELD_AT(plan_span, "p90_s", FIELD_INT, p90_s),
};
static const struct field_table span_table = FIELD_TABLE(NULL, span_rows, plan_span);

struct plan_page {
    bool dry_run, fits_pool;
    char *resolved, *verl, *changes, *advice; /* owned */
    struct plan_demand demand;
    size_t queue_length;
    const struct plan_placement *placement;
    struct plan_placement its_placement;
    const struct plan_why *why;
    struct plan_why its_why;
    const struct view_eta *eta, *before;
    struct view_eta its_eta, its_before;
    struct field_list others; /* owned */
    const struct plan_span *run;
    struct plan_span its_run;
    int64_t checkpoint_bytes, free_bytes; /* -1 = not known */
    struct plan_account project, user;
    struct plan_trial trial;
    const char *argv; /* borrowed */
    struct field_list problems, checks;
};
#define LIST_OF_SCHEMA(name)                                                                       \
    "{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/" name "\"}}"
#define PAGE(key, ftype, member, ...) FIELD_AT(plan_page, key, ftype, member, __VA_ARGS__)
static const struct field plan_rows[] = {
    PAGE("dry_run", FIELD_BOOL, dry_run),
    PAGE("resolved_spec", FIELD_JSON, resolved, .schema = "ResolvedSpec"),
    PAGE("demand", FIELD_OBJECT, demand, .of = &demand_table),
    PAGE("fits_pool", FIELD_BOOL, fits_pool),
    PAGE("queue_length", FIELD_COUNT, queue_length),
    PAGE("verl", FIELD_STR, verl),
    PAGE("changes", FIELD_JSON, changes, .flags = FIELD_OMIT, .schema = LIST_OF_SCHEMA("SpecEdit")),
    PAGE("placement", FIELD_PART, placement, .of = &placement_table),
    PAGE("why", FIELD_PART, why, .of = &why_table),
    PAGE("eta", FIELD_PART, eta, .of = &view_eta_table),
    PAGE("before",
         FIELD_PART,
         before,
         .of = &view_eta_table,
         .doc = "of a change: its expected start as it is"),
    PAGE("others",
         FIELD_LIST,
         others,
         .of = &jobshift_other_table,
         .doc = "of a change: who would start at another time, by the median"),
    PAGE("run", FIELD_PART, run, .of = &span_table),
    PAGE("checkpoint_bytes", FIELD_INT, checkpoint_bytes, .flags = FIELD_NO_LIMIT),
    PAGE("free_bytes", FIELD_INT, free_bytes, .flags = FIELD_NO_LIMIT),
    PAGE("quota.project", FIELD_OBJECT, project, .of = &account_table),
    PAGE("quota.user", FIELD_OBJECT, user, .of = &account_table),
    PAGE("advice", FIELD_JSON, advice, .flags = FIELD_OMIT, .schema = LIST_OF_SCHEMA("Advice")),
    PAGE("trial", FIELD_OBJECT, trial, .of = &trial_table),
    PAGE("argv",
         FIELD_JSON,
         argv,
         .flags = FIELD_ALWAYS,
         .schema = "{\"type\":[\"array\",\"null\"],\"items\":{\"type\":\"string\"}}"),
    PAGE("problems", FIELD_LIST, problems, .of = &problem_table),
    PAGE("checks",
         FIELD_LIST,
         checks,
         .of = &plan_check_table,
         .doc = "what was looked at, in this order; what is wrong stands in problems"),
};
#undef PAGE
const struct field_table plan_table = FIELD_TABLE("Plan", plan_rows, plan_page);

static void plan_release_page(struct plan_page *page)
{
    free(page->resolved);
    free(page->verl);
    free(page->changes);
    free(page->advice);
    free(page->trial.result);
    free(page->others.v);
    said_release(&page->its_why.reason);
    said_release(&page->its_why.hint);
}

/* ---- what is under way ---- */

struct plan {
    struct http_req *req; /* NULL: the client has gone */
    struct api *a;
    struct plan_page page; /* the answer so far */
    struct job *job;
    struct launchplan launch;
    struct sched *copy, *ahead; /* for the pass to come; to run on */
    struct jobshift shift;      /* of a change */
    struct forecast_error *error;
    struct reason block; /* nothing starts at all now */
    char *needs;         /* of its code; NULL: nothing */
    usec_t now;

    int launched;
    struct err err;
    bool starts;
    struct gang gang; /* that it would get at once */
    struct spec spec;
    struct problems ps; /* of the spec; the command line may add to them */
    bool suggest;       /* with advice */
    uint64_t checkpoint_bytes, free_bytes;
    struct pastruns *runs;  /* under way */
    struct drytrial *trial; /* under way */
    struct snapshot *held;  /* came with it; NULL = none */
    struct sched_why why;
    usec_t p50, p90; /* the scheduler's clock; 0 = not foreseen */
};

static void plan_free(struct plan *p)
{
    plan_release_page(&p->page);
    launchplan_release(&p->launch);
    sched_free(p->copy);
    sched_free(p->ahead);
    jobshift_release(&p->shift);
    forecast_error_free(p->error);
    job_free(p->job);
    free(p->needs);
    gang_release(&p->gang);
    spec_release(&p->spec);
    problems_release(&p->ps);
    if (p->held)
        snapshots_let_go(p->a->snapshots, p->held);
    free(p);
}

/* ---- on the worker ---- */

/* Those before it start first, as in the pass to come. */
static void run_pass(struct plan *p)
{
    struct sched_decision d;
    while (!p->starts && sched_next(p->copy, p->now, &d))
        if (d.verb == SCHED_START && d.job == p) {
            p->starts = true;
            (void)sched_lease_gang(p->copy, p->job->id, &p->gang); /* decided: it is there */
        }
    if (!p->starts)
        (void)sched_explain(p->copy, p->job->id, p->now, true, &p->why); /* it waits there */
}

static void plan_run_ahead(struct plan *p)
{
    struct forecast_row *rows = xcalloc(FORESEEN_MAX, sizeof(*rows));
    size_t n = forecast_run(p->ahead, p->error, p->now, FORESEEN_MAX, rows);
    p->ahead = NULL; /* taken */
    for (size_t i = 0; i < n; i++)
        if (rows[i].job == p) {
            p->p50 = rows[i].p50;
            p->p90 = rows[i].p90;
        }
    jobshift_take(&p->shift, rows, n);
    free(rows);
}

static void plan_run(void *arg)
{
    struct plan *p = arg;
    p->launched = launchplan_preview(&p->launch, &p->err);
    jobshift_run(&p->shift, p->error, p->now);
    run_pass(p);
    if (!p->starts || p->shift.id)
        plan_run_ahead(p);
    if (p->starts)
        p->p50 = p->p90 = 0; /* now */
}

/* ---- the answer ---- */

/* limits below 0: not said */
static void plan_fill_account(const struct plan *p,
                              enum sched_account kind,
                              const char *name,
                              const struct people_quota *q,
                              struct plan_account *ret)
{
    struct sched_usage u;
    double gpus = demand_gpus(&p->job->demand);
    bool guaranteed = q && q->gpus_guaranteed > 0;
    sched_usage(jobs_sched(p->a->jobs), kind, name, p->now, &u);
    double beyond = guaranteed ? u.gpus + gpus - q->gpus_guaranteed : 0;
    *ret = (struct plan_account){.name = name,
                                 .gpus_used = u.gpus,
                                 .gpus_after = u.gpus + gpus,
                                 .running = u.running,
                                 .queued = u.queued,
                                 .guaranteed = guaranteed ? q->gpus_guaranteed : -1,
                                 .ceiling = q ? q->gpus_ceiling : -1,
                                 .borrowed_after = !guaranteed  ? -1
                                                   : beyond > 0 ? beyond
                                                                : 0};
}

static void plan_fill_quota(struct plan *p)
{
    const struct job *job = p->job;
    const struct project *project = people_find_project(p->a->people, job->project);
    const struct person *person = people_find(p->a->people, job->user);
    plan_fill_account(p, SCHED_PROJECT, job->project, project ? &project->quota : NULL,
                      &p->page.project);
    plan_fill_account(p, SCHED_USER, job->user, person ? &person->quota : NULL, &p->page.user);
}

static void plan_fill_placement(struct plan *p)
{
    struct plan_page *page = &p->page;
    struct plan_why *why = &page->its_why;
    char hint[32];
    struct api_eyes eyes = {.a = p->a, .p = http_req_principal(p->req)};
    bool blocked = *p->block.code;
    if (p->starts && !blocked) {
        page->its_placement = (struct plan_placement){.nodes = {.v = p->gang.v, .n = p->gang.n},
                                                      .driver_node = gang_driver(&p->gang)};
        page->placement = &page->its_placement;
        return;
    }
    saying_say(&eyes, p->job->id, blocked ? p->block.code : p->why.code,
               blocked ? p->block.text : p->why.text, &why->reason);
    why->position = p->why.position;
    text_printf(hint, "hint_%s", sched_hint_to_string(p->why.hint.kind));
    saying_say(&eyes, p->job->id, hint, blocked ? "" : p->why.hint_text, &why->hint);
    page->why = why;
}

static void plan_fill_advice(struct plan *p, const struct past *past, const struct past_line *line)
{
    struct buf out = BUF_INIT(ANSWER_MAX);
    struct jout j = jout_begin(&out);
    struct advise_in in = {.spec = &p->spec,
                           .checkpoint_bytes = p->checkpoint_bytes,
                           .free_bytes = p->free_bytes,
                           .past = past,
                           .line = line,
                           .hint = !p->starts && !*p->block.code ? &p->why.hint : NULL};
    jout_open(&j, NULL, '[');
    fitcheck_advise(p->a->jobs, p->job, p->needs, &in, &j);
    jout_close(&j, ']');
    p->page.advice = buf_take(&out);
}

/* Texts of result are kept: it is gone before the answer is. */
static void put_trial(struct plan *p, const struct trial_result *result, const struct reason *why)
{
    struct plan_trial *t = &p->page.trial;
    const struct message_listener to = {.language = http_req_principal(p->req)->language};
    const char *code = why ? why->code : result->ok ? "trial_passed" : result->message;
    struct buf said = {0};
    t->state = !result ? PLAN_TRIAL_NOT_RUN : result->ok ? PLAN_TRIAL_PASSED : PLAN_TRIAL_FAILED;
    text_copy(t->text, message_say(code,
                                   why          ? why->text
                                   : result->ok ? "{}"
                                                : result->text,
                                   &to, &said));
    buf_release(&said);
    t->result = result ? said_in_text(result->shown, to.language) : NULL;
}

static void copy_problems(struct plan *p, const struct problems *ps)
{
    for (size_t i = 0; i < ps->n; i++)
        problems_add_copy(&p->ps, &ps->v[i], ps->v[i].field, ps->v[i].line, ps->v[i].column);
}

static void plan_reply(struct plan *p)
{
    struct buf out = BUF_INIT(ANSWER_MAX);
    struct jout j = jout_begin(&out);
    copy_problems(p, &p->launch.warnings);
    p->page.argv = p->launch.argv;
    p->page.problems = problem_pages(&p->ps, http_req_principal(p->req)->language);
    struct api_eyes eyes = {.a = p->a, .p = http_req_principal(p->req)};
    const struct plan_checked seen = {.ps = &p->ps,
                                      .fits = p->page.fits_pool,
                                      .checkpoint_bytes = p->checkpoint_bytes,
                                      .free = p->free_bytes};
    p->page.checks = plan_checks(&eyes, &seen);
    field_to_json(&plan_table, &p->page, FIELD_ALL, FIELD_PAGE, &j, NULL);
    problem_pages_release(&p->page.problems);
    plan_checks_release(&p->page.checks);
    http_reply_json(p->req, 200, &out, api_barrier(p->a));
    buf_release(&out);
    plan_free(p);
}

static void plan_rerun(void *arg)
{
    struct plan *p = arg;
    p->launched = launchplan_preview(&p->launch, &p->err);
}

static void plan_done_again(void *arg)
{
    struct plan *p = arg;
    if (!p->req) {
        plan_free(p);
        return;
    }
    http_req_on_close(p->req, NULL, NULL);
    plan_reply(p);
}

static void plan_on_gone(struct http_req *req, void *arg)
{
    struct plan *p = arg;
    (void)req;
    p->req = NULL; /* freed when the worker is done */
}

/* A trial that counted the rows makes the command line another one: as the attempt will have it. */
static void on_tried(const struct trial_result *result, const struct reason *why, void *arg)
{
    struct plan *p = arg;
    p->trial = NULL;
    http_req_on_close(p->req, NULL, NULL);
    put_trial(p, result, why);
    p->launch.train_rows = result ? trial_train_rows(result->shown) : 0;
    if (!p->launch.train_rows) {
        plan_reply(p);
        return;
    }
    http_req_on_close(p->req, plan_on_gone, p);
    work_start_for(p->a->loop, p->launch.user, plan_rerun, plan_done_again, p);
}

static void on_gone_while_tried(struct http_req *req, void *arg)
{
    struct plan *p = arg;
    (void)req;
    drytrial_forget(p->trial);
    plan_free(p);
}

static void put_no_trial(struct plan *p, const char *code)
{
    struct reason why;
    reason_set(&why, code, NULL, "{}");
    put_trial(p, NULL, &why);
    plan_reply(p);
}

/* What is known is written; the trial is waited for where the job would have one. */
static void try_it(struct plan *p)
{
    if (p->job->trial != JOB_TRIAL_DUE) {
        put_no_trial(p, "trial_not_asked");
        return;
    }
    const char *why;
    p->trial = drytrial_begin(p->a->drytrials, p->job, &p->launch, p->needs, on_tried, p, &why);
    if (p->trial) {
        http_req_on_close(p->req, on_gone_while_tried, p);
        return;
    }
    put_no_trial(p, why);
}

/* ---- the runs before ---- */

static void on_past(struct past *past, void *arg)
{
    struct plan *p = arg;
    http_req_on_close(p->req, NULL, NULL);
    plan_fill_advice(p, past, pastruns_line(p->runs));
    p->runs = NULL;
    try_it(p);
}

static void on_gone_while_read(struct http_req *req, void *arg)
{
    struct plan *p = arg;
    (void)req;
    pastruns_forget(p->runs);
    plan_free(p);
}

/* Advice from past jobs is for verl's programs alone: only their overrides have a known meaning. */
static void look_back(struct plan *p)
{
    if (!workload_is_verl((enum workload)p->spec.workload)) {
        plan_fill_advice(p, NULL, NULL);
        try_it(p);
        return;
    }
    http_req_on_close(p->req, on_gone_while_read, p);
    struct pastruns_ask ask = {.who = http_req_principal(p->req),
                               .job = p->job,
                               .argv = p->launch.argv,
                               .verl = p->launch.verl};
    p->runs = pastruns_find(p->a->store, p->a->people, &ask, on_past, p);
}

static void plan_fill_others(struct plan *p)
{
    const struct jobshift *w = &p->shift;
    struct jobs *js = p->a->jobs;
    struct api_eyes eyes = {.a = p->a, .p = http_req_principal(p->req)};
    p->page.others = jobshift_others(w, &eyes);
    p->page.its_before = (struct view_eta){.p50 = w->was50 ? jobs_to_wall(js, w->was50) : 0,
                                           .p90 = w->was90 ? jobs_to_wall(js, w->was90) : 0};
    p->page.before = view_eta_known(&p->page.its_before);
}

static void plan_done(void *arg)
{
    struct plan *p = arg;
    if (!p->req) {
        plan_free(p);
        return;
    }
    http_req_on_close(p->req, NULL, NULL);
    if (p->launched < 0) {
        http_problem(p->req, p->err.code, &p->err, NULL, NULL, 0);
        plan_free(p);
        return;
    }
    plan_fill_placement(p);
    p->page.its_eta = (struct view_eta){.p50 = jobs_to_wall(p->a->jobs, p->p50),
                                        .p90 = jobs_to_wall(p->a->jobs, p->p90)};
    p->page.eta = view_eta_known(&p->page.its_eta);
    plan_fill_quota(p);
    plan_fill_others(p);
    if (p->suggest)
        look_back(p);
    else
        try_it(p);
}

/* ---- the beginning ---- */

static void plan_fill_demand(struct plan *p)
{
    const struct demand *d = &p->job->demand;
    const struct sched *sched = jobs_sched(p->a->jobs);
    p->page.dry_run = true;
    p->page.resolved = view_spec(&p->spec);
    p->page.demand = (struct plan_demand){.nnodes = d->nnodes,
                                          .gpus = demand_gpus(d),
                                          .cpus = demand_cpus(d),
                                          .memory = demand_memory(d)};
    p->page.fits_pool = sched_fits_empty(sched, p->job->pool, p->needs, d);
    p->page.queue_length = sched_queue_length(sched);
}

static int64_t bytes_known(uint64_t bytes)
{
    return bytes ? (int64_t)bytes : -1;
}

/* How long it would take, and what it would write. */
static void plan_fill_cost(struct plan *p, usec_t p50, usec_t p90)
{
    struct plan_page *page = &p->page;
    page->its_run =
        (struct plan_span){.p50_s = (int64_t)(p50 / USEC_SEC), .p90_s = (int64_t)(p90 / USEC_SEC)};
    page->run = p50 ? &page->its_run : NULL;
    page->checkpoint_bytes = bytes_known(p->checkpoint_bytes);
    page->free_bytes = bytes_known(p->free_bytes);
}

/* The newest checkpoint, as it is now, of the job that this one would resume from. */
static int64_t newest_of_other(const struct plan *p)
{
    const struct spec *s = &p->spec;
    return s->resume_mode == SPEC_RESUME_JOB && !s->resume_step
               ? checkpoints_newest(p->a->checkpoints, s->resume_job, p->job->user)
               : 0;
}

static void enqueue(struct plan *p)
{
    const struct job *j = p->job;
    const struct live *old = p->shift.id ? jobs_find_id(p->a->jobs, p->shift.id) : NULL;
    usec_t p50, p90, waited = old ? jobs_in_state(old) : 0;
    jobs_expect(p->a->jobs, j, &p50, &p90);
    plan_fill_cost(p, p50, p90);
    struct sched_job asked = {.id = j->id,
                              .seq = old ? old->job->seq : INT64_MAX,
                              .priority = j->priority,
                              .pool = j->pool,
                              .needs = p->needs,
                              .user = j->user,
                              .project = j->project,
                              .demand = j->demand,
                              .queued_at = p->now > waited ? p->now - waited : 1,
                              .limit = j->limits.timeout,
                              .expected_p50 = p50,
                              .expected_p90 = p90,
                              .restartable = j->restart.preemptible,
                              .job = p};
    sched_enqueue(p->copy, &asked);
    sched_enqueue(p->ahead, &asked);
}

void api_plan(struct http_req *req, struct api *a, const struct api_plan_in *in)
{
    struct plan *p = xcalloc(1, sizeof(*p));
    struct job *job = in->taken;
    *p = (struct plan){.req = req,
                       .a = a,
                       .job = job,
                       .spec = in->spec,
                       .suggest = in->suggest,
                       .checkpoint_bytes = in->checkpoint_bytes,
                       .free_bytes = in->free_bytes,
                       .held = in->held,
                       .needs = xstrdup(in->needs),
                       .copy = sched_copy(jobs_sched(a->jobs)),
                       .ahead = sched_copy(jobs_sched(a->jobs)),
                       .error = jobs_forecast_error(a->jobs),
                       .block = *jobs_blocked(a->jobs),
                       .now = jobs_now(a->jobs)};
    p->launch = (struct launchplan){.settings = a->settings,
                                    .spec = xstrdup(job->spec),
                                    .inputs = xstrdup(in->inputs),
                                    .snapshots = xstrdup(in->snapshots),
                                    .id = xstrdup(job->id),
                                    .user = xstrdup(job->user),
                                    .k = 1,
                                    .other_step = newest_of_other(p),
                                    .demand = job->demand};
    if (in->changed)
        jobshift_begin(&p->shift, jobs_sched(a->jobs), in->changed->job->id);
    enqueue(p);
    plan_fill_demand(p);
    copy_problems(p, in->ps);
    p->page.verl = xstrdup(in->verl);
    p->page.changes = xstrdup(in->changes);
    http_req_on_close(req, plan_on_gone, p);
    work_start_for(a->loop, p->launch.user, plan_run, plan_done, p);
}

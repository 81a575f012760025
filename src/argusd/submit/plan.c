/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - what a submit with ?dry_run would do: the command line, the nodes it would
 * get now or why not, what it adds to its quotas, when it would start.
 *
 * The answer is begun on the loop with what is known there. A worker makes the command line
 * and asks copies of the scheduler: nothing is written, nothing is queued. */
#include <stdio.h>
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
#include "argusd/submit/plan.h"
#include "base/str.h"
#include "core/past/advise.h"

enum { ANSWER_MAX = 2 << 20, FORESEEN_MAX = 1000 };

struct plan {
    struct http_req *req; /* NULL: the client has gone */
    struct api *a;
    struct buf out; /* the answer so far */
    struct jout j;
    struct job *job;
    struct launchplan launch;
    struct sched *copy, *ahead; /* for the pass to come; to run on */
    struct forecast_error *error;
    struct reason block; /* nothing starts at all now */
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
    buf_release(&p->out);
    launchplan_release(&p->launch);
    sched_free(p->copy);
    sched_free(p->ahead);
    forecast_error_free(p->error);
    job_free(p->job);
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
    free(rows);
}

static void plan_run(void *arg)
{
    struct plan *p = arg;
    p->launched = launchplan_preview(&p->launch, &p->err);
    run_pass(p);
    if (!p->starts)
        plan_run_ahead(p);
}

/* ---- the answer ---- */

static void put_account(struct plan *p,
                        const char *key,
                        enum sched_account kind,
                        const char *name,
                        const struct people_quota *q)
{
    struct jout *j = &p->j;
    struct sched_usage u;
    double gpus = demand_gpus(&p->job->demand);
    sched_usage(jobs_sched(p->a->jobs), kind, name, p->now, &u);
    jout_open(j, key, '{');
    jout_str(j, "name", name);
    jout_real(j, "gpus_used", u.gpus);
    jout_real(j, "gpus_after", u.gpus + gpus);
    jout_int(j, "running", u.running);
    jout_int(j, "queued", u.queued);
    if (q && q->gpus_guaranteed > 0)
        jout_real(j, "gpus_guaranteed", q->gpus_guaranteed);
    if (q && q->gpus_ceiling >= 0)
        jout_real(j, "gpus_ceiling", q->gpus_ceiling);
    if (q && q->gpus_guaranteed > 0)
        jout_real(j, "gpus_borrowed_after",
                  u.gpus + gpus > q->gpus_guaranteed ? u.gpus + gpus - q->gpus_guaranteed : 0);
    jout_close(j, '}');
}

static void put_quota(struct plan *p)
{
    const struct job *job = p->job;
    const struct project *project = people_find_project(p->a->people, job->project);
    const struct person *person = people_find(p->a->people, job->user);
    jout_open(&p->j, "quota", '{');
    put_account(p, "project", SCHED_PROJECT, job->project, project ? &project->quota : NULL);
    put_account(p, "user", SCHED_USER, job->user, person ? &person->quota : NULL);
    jout_close(&p->j, '}');
}

static void put_placement(struct plan *p)
{
    struct jout *j = &p->j;
    bool starts = p->starts && !*p->block.code;
    char hint[32];
    struct api_eyes eyes = {.a = p->a, .p = http_req_principal(p->req)};
    if (starts) {
        jout_open(j, "placement", '{');
        view_nodes(j, &p->gang);
        jout_str(j, "driver_node", gang_driver(&p->gang));
        jout_close(j, '}');
        jout_null(j, "why");
        return;
    }
    jout_null(j, "placement");
    jout_open(j, "why", '{');
    bool blocked = *p->block.code;
    const char *code = blocked ? p->block.code : p->why.code;
    jout_str(j, "code", code);
    saying_put(j, &eyes, p->job->id, code, blocked ? p->block.text : p->why.text);
    jout_int(j, "position", p->why.position);
    (void)snprintf(hint, sizeof(hint), "hint_%s",
                   sched_hint_to_string(p->why.hint.kind)); /* fits */
    saying_put_text(j, "hint_text", &eyes, p->job->id, hint, blocked ? "" : p->why.hint_text);
    jout_close(j, '}');
}

static void put_advice(struct plan *p, const struct past *past, const struct past_line *line)
{
    struct jout *j = &p->j;
    struct advise_in in = {.spec = &p->spec,
                           .checkpoint_bytes = p->checkpoint_bytes,
                           .free_bytes = p->free_bytes,
                           .past = past,
                           .line = line,
                           .hint = !p->starts && !*p->block.code ? &p->why.hint : NULL};
    jout_open(j, "advice", '[');
    fitcheck_advise(p->a->jobs, p->job, &in, j);
    jout_close(j, ']');
}

static void put_trial(struct plan *p, const struct trial_result *result, const char *why)
{
    struct jout *j = &p->j;
    jout_open(j, "trial", '{');
    jout_str(j, "state", !result ? "not_run" : result->ok ? "passed" : "failed");
    jout_str(j, "text", !result ? why : result->ok ? "its trial found nothing" : result->sentence);
    jout_raw(j, "result", result ? result->shown : "null");
    jout_close(j, '}');
}

static void plan_reply(struct plan *p)
{
    jout_raw(&p->j, "argv", str_or(p->launch.argv, "null"));
    if (p->launch.warning)
        problems_add(&p->ps, PROBLEM_WARNING, "", 0, 0, NULL, "%s", p->launch.warning);
    problems_to_json(&p->ps, &p->j, "problems");
    jout_close(&p->j, '}');
    http_reply_json(p->req, 200, &p->out, api_barrier(p->a));
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
static void on_tried(const struct trial_result *result, const char *why, void *arg)
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
    work_start(p->a->loop, plan_rerun, plan_done_again, p);
}

static void on_gone_while_tried(struct http_req *req, void *arg)
{
    struct plan *p = arg;
    (void)req;
    drytrial_forget(p->trial);
    plan_free(p);
}

/* What is known is written; the trial is waited for where the job would have one. */
static void try_it(struct plan *p)
{
    if (p->job->trial != JOB_TRIAL_DUE) {
        put_trial(p, NULL, "it has none, or none was asked for");
        plan_reply(p);
        return;
    }
    p->trial = drytrial_begin(p->a->drytrials, p->job, &p->launch, on_tried, p);
    if (p->trial) {
        http_req_on_close(p->req, on_gone_while_tried, p);
        return;
    }
    put_trial(p, NULL, "others run first: ask again");
    plan_reply(p);
}

/* ---- the runs before ---- */

static void on_past(struct past *past, void *arg)
{
    struct plan *p = arg;
    http_req_on_close(p->req, NULL, NULL);
    put_advice(p, past, pastruns_line(p->runs));
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

/* Of verl's programs alone it is known what their overrides mean. */
static void look_back(struct plan *p)
{
    if (!workload_is_verl((enum workload)p->spec.workload)) {
        put_advice(p, NULL, NULL);
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

static void plan_done(void *arg)
{
    struct plan *p = arg;
    struct jout *j = &p->j;
    if (!p->req) {
        plan_free(p);
        return;
    }
    http_req_on_close(p->req, NULL, NULL);
    if (p->launched < 0) {
        http_problem(p->req, p->err.code, &p->err, NULL, NULL, NULL, 0);
        plan_free(p);
        return;
    }
    put_placement(p);
    view_eta(j, jobs_to_wall(p->a->jobs, p->p50), jobs_to_wall(p->a->jobs, p->p90));
    put_quota(p);
    if (p->suggest)
        look_back(p);
    else
        try_it(p);
}

/* ---- the beginning ---- */

static void begin_answer(struct plan *p)
{
    struct jout *j = &p->j;
    const struct demand *d = &p->job->demand;
    const struct sched *sched = jobs_sched(p->a->jobs);
    jout_open(j, NULL, '{');
    jout_bool(j, "dry_run", true);
    view_put_spec(j, "resolved_spec", &p->spec);
    jout_open(j, "demand", '{');
    jout_int(j, "nnodes", d->nnodes);
    jout_real(j, "gpus", demand_gpus(d));
    jout_real(j, "cpus", demand_cpus(d));
    jout_real(j, "memory", demand_memory(d));
    jout_close(j, '}');
    jout_bool(j, "fits_pool", sched_fits_empty(sched, p->job->pool, d));
    jout_int(j, "queue_length", (int64_t)sched_queue_length(sched));
}

static void copy_problems(struct plan *p, const struct problems *ps)
{
    for (size_t i = 0; i < ps->n; i++) {
        const struct problem *one = &ps->v[i];
        problems_add(&p->ps, (enum problem_level)one->level, one->field, one->line, one->column,
                     one->hint, "%s", one->text);
    }
}

/* Of the job whose newest checkpoint it would take, as it is now. */
static int64_t newest_of_other(const struct plan *p)
{
    const struct spec *s = &p->spec;
    return s->resume_mode == SPEC_RESUME_JOB && !s->resume_step
               ? checkpoints_newest(p->a->checkpoints, s->resume_job)
               : 0;
}

static void enqueue(struct plan *p)
{
    const struct job *j = p->job;
    usec_t p50, p90;
    jobs_expect(p->a->jobs, j, &p50, &p90);
    struct sched_job asked = {.id = j->id,
                              .seq = INT64_MAX,
                              .priority = j->priority,
                              .pool = j->pool,
                              .user = j->user,
                              .project = j->project,
                              .demand = j->demand,
                              .queued_at = p->now,
                              .limit = j->timeout,
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
                       .out = BUF_INIT(ANSWER_MAX),
                       .job = job,
                       .spec = in->spec,
                       .suggest = in->suggest,
                       .checkpoint_bytes = in->checkpoint_bytes,
                       .free_bytes = in->free_bytes,
                       .held = in->held,
                       .copy = sched_copy(jobs_sched(a->jobs)),
                       .ahead = sched_copy(jobs_sched(a->jobs)),
                       .error = jobs_forecast_error(a->jobs),
                       .block = *jobs_blocked(a->jobs),
                       .now = jobs_now(a->jobs)};
    p->j = jout_begin(&p->out);
    p->launch = (struct launchplan){.settings = a->settings,
                                    .spec = xstrdup(job->spec),
                                    .inputs = xstrdup(in->inputs),
                                    .snapshots = xstrdup(in->snapshots),
                                    .id = xstrdup(job->id),
                                    .user = xstrdup(job->user),
                                    .k = 1,
                                    .other_step = newest_of_other(p),
                                    .demand = job->demand};
    enqueue(p);
    begin_answer(p);
    copy_problems(p, in->ps);
    jout_str(&p->j, "verl", in->verl);
    if (in->changes)
        jout_raw(&p->j, "changes", in->changes);
    http_req_on_close(req, plan_on_gone, p);
    work_start(a->loop, plan_run, plan_done, p);
}

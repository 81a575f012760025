/* SPDX-License-Identifier: Apache-2.0 */
/* stopplan.c - see stopplan.h.
 *
 * At risk is what kit/jobrisk.h says of a job that is stopped now, so that this plan and that of a
 * drain say the same. One that has failed and holds its slots has lost that already. */
#include "argusd/kit/stopplan.h"

#include <stdlib.h>

#include "argusd/checkpoints/checkpoints.h"
#include "argusd/kit/jobrisk.h"
#include "base/str.h"

static const char *const stopplan_fates[] = {"cancelled", "skipped", NULL};

#define OF_JOB(key) FIELD_AT(stopplan_job, #key, FIELD_STR, key, .flags = FIELD_ALWAYS)
static const struct field stopplan_job_rows[] = {
    OF_JOB(job),
    OF_JOB(user),
    FIELD_AT(stopplan_job, "state", FIELD_STR, state, .flags = FIELD_ALWAYS, .schema = "JobState"),
};
const struct field_table stopplan_job_table =
    FIELD_TABLE("StopPlanJob", stopplan_job_rows, stopplan_job);

static const struct field stopplan_step_rows[] = {
    FIELD_AT(stopplan_step, "run", FIELD_STR, run, .flags = FIELD_ALWAYS),
    FIELD_AT(stopplan_step, "step", FIELD_STR, step, .flags = FIELD_ALWAYS),
    FIELD_AT(stopplan_step,
             "fate",
             FIELD_ENUM,
             fate,
             .names = stopplan_fates,
             .doc = "cancelled: it is this job; skipped: it needs that one"),
};
const struct field_table stopplan_step_table =
    FIELD_TABLE("StopPlanStep", stopplan_step_rows, stopplan_step);

#define PLAN(key, ftype, member, ...) FIELD_AT(stopplan, key, ftype, member, __VA_ARGS__)
static const struct field stopplan_rows[] = {
    PLAN("job", FIELD_STR, job, .flags = FIELD_ALWAYS),
    PLAN("state", FIELD_STR, state, .flags = FIELD_ALWAYS, .schema = "JobState"),
    PLAN("attempt",
         FIELD_INT32,
         attempt,
         .flags = FIELD_NO_LIMIT,
         .doc = "that would end; null: none is under way"),
    PLAN("gpus", FIELD_REAL, gpus, .doc = "GPUs that come back"),
    PLAN("step",
         FIELD_INT,
         step,
         .flags = FIELD_NO_LIMIT,
         .doc = "where it stands; null: it has told of none"),
    PLAN("saved_step",
         FIELD_INT,
         saved_step,
         .flags = FIELD_NO_LIMIT,
         .doc = "of its newest checkpoint that can be read; null: none"),
    PLAN("at_risk_gpu_hours",
         FIELD_REAL,
         at_risk_gpu_hours,
         .doc = "work since its newest checkpoint, which is lost"),
    PLAN("jobs",
         FIELD_LIST,
         jobs,
         .of = &stopplan_job_table,
         .doc = "jobs that are not over and name it: they go on from what it saves, or judge it"),
    PLAN("steps",
         FIELD_LIST,
         steps,
         .of = &stopplan_step_table,
         .doc = "steps of pipeline runs that would end without success"),
    PLAN("hidden", FIELD_INT, hidden, .doc = "how many more jobs and steps there are"),
};
#undef PLAN
const struct field_table stopplan_table = FIELD_TABLE("StopPlan", stopplan_rows, stopplan);

void stopplan_release(struct stopplan *p)
{
    free(p->jobs.v);
    free(p->steps.v);
    p->jobs = p->steps = (struct field_list){0};
}

/* A copy of the item becomes the last of one of its lists, or it is only counted. */
static void stopplan_add(struct stopplan *p,
                         struct field_list *list,
                         const void *item,
                         size_t size,
                         bool sees)
{
    if (!sees || list->n >= STOPPLAN_NAMED_MAX) {
        p->hidden++;
        return;
    }
    field_list_add(list, item, size);
}

void stopplan_add_step(struct stopplan *p, const struct stopplan_step *step, bool sees)
{
    stopplan_add(p, &p->steps, step, sizeof(*step), sees);
}

static void stopplan_add_job(struct stopplan *p, const struct job *job, bool sees)
{
    const struct stopplan_job row = {
        .job = job->id, .user = job->user, .state = job_state_to_string(job->state)};
    stopplan_add(p, &p->jobs, &row, sizeof(row), sees);
}

static void stopplan_add_jobs(struct stopplan *p, const struct api_eyes *eyes)
{
    const struct api *a = eyes->a;
    const struct live *l;
    for (size_t pos = 0; (l = checkpoints_next_namer(a->checkpoints, p->job, &pos));)
        stopplan_add_job(
            p, l->job,
            people_check_job(a->people, eyes->p, ACCESS_JOB_SEE, "see", l->job, NULL) == 0);
}

/* What its attempt holds and has not saved. */
static void stopplan_fill_live(struct stopplan *p, const struct api *a, const struct live *l)
{
    const struct attempt *newest = job_attempt(l->job);
    const struct jobrisk_ask ask = {.then = NODE_THEN_STOP, .deadline = clock_wall()};
    struct jobrisk risk;
    bool runs = newest && newest->phase <= ATTEMPT_RUNNING && l->job->state != JOB_QUEUED;
    jobrisk_fill(a, &ask, l, &risk);
    p->gpus = risk.gpus_here;
    if (!runs)
        return;
    p->attempt = newest->k;
    p->at_risk_gpu_hours = risk.at_risk_gpu_hours;
}

void stopplan_make(const struct api_eyes *eyes,
                   const struct job *job,
                   const struct live *l,
                   struct stopplan *ret)
{
    const struct api *a = eyes->a;
    const struct ckpt_list *saved = checkpoints_of(a->checkpoints, job->id);
    const struct ckpt *newest = saved ? ckpt_list_newest(saved) : NULL;
    *ret = (struct stopplan){.job = job->id,
                             .state = job_state_to_string(job->state),
                             .attempt = -1,
                             .step = l && l->extra.step > 0 ? l->extra.step : -1,
                             .saved_step = newest ? newest->step : -1};
    if (!l) /* stopping it changes nothing */
        return;
    stopplan_fill_live(ret, a, l);
    stopplan_add_jobs(ret, eyes);
    if (a->add_stop_steps)
        a->add_stop_steps(eyes, ret);
}

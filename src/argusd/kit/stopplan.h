/* SPDX-License-Identifier: Apache-2.0 */
/* stopplan.h - what would end with a job that somebody thinks of stopping.
 *
 * The job and who names it are looked at here; rooms above the API's own add what they know (api.h:
 * add_stop_steps). Who asks is told the names of what he may see, and of the rest how many there
 * are. Nothing is changed. */
#pragma once
#include "argusd/kit/api.h"

/* Beyond these, jobs and steps are counted with those that are not seen. */
enum { STOPPLAN_NAMED_MAX = 200 };

/* Texts are borrowed for the request. */
struct stopplan_job {
    const char *job, *user, *state;
};
enum stopplan_fate { STOPPLAN_CANCELLED, STOPPLAN_SKIPPED };
struct stopplan_step {
    const char *run, *step;
    int fate; /* enum stopplan_fate */
};

struct stopplan {
    const char *job, *state;
    int attempt;              /* -1: none is under way */
    int64_t step, saved_step; /* -1: none */
    double gpus, at_risk_gpu_hours;
    struct field_list jobs;  /* of struct stopplan_job */
    struct field_list steps; /* of struct stopplan_step */
    int64_t hidden;
};
/* "StopPlan", "StopPlanJob", "StopPlanStep" */
extern const struct field_table stopplan_table, stopplan_job_table, stopplan_step_table;

/* l: NULL, it is over. */
void stopplan_make(const struct api_eyes *eyes,
                   const struct job *job,
                   const struct live *l,
                   struct stopplan *ret);
void stopplan_release(struct stopplan *p);

/* sees: who asks may see the run. */
void stopplan_add_step(struct stopplan *p, const struct stopplan_step *step, bool sees);

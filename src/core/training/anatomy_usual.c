/* SPDX-License-Identifier: Apache-2.0 */
/* anatomy_usual.c - keeps what each training tells, passes over one without steps, and takes
 * medians of a sorted copy; see anatomy_usual.h. */
#include "core/training/anatomy_usual.h"

#include <string.h>

#include "base/str.h"
#include "core/training/verdict_series.h"

static double usual_stage_share(const json_t *anatomy, enum anatomy_stage stage)
{
    size_t i;
    const json_t *one;
    json_array_foreach (json_get_array(anatomy, "stages"), i, one)
        if (str_eq(json_get_str(one, "stage", ""), anatomy_stage_to_string(stage)))
            return json_get_real(one, "share", 0);
    return 0;
}

bool anatomy_usual_add(struct anatomy_usual *u, const json_t *anatomy)
{
    if (u->jobs == ANATOMY_USUAL_JOBS)
        return false;
    if (json_get_int(anatomy, "steps", 0) <= 0)
        return true;
    u->step_s[u->jobs] = json_get_real(anatomy, "step_seconds", 0);
    for (int s = 0; s < ANATOMY_STAGES; s++)
        u->share[s][u->jobs] = usual_stage_share(anatomy, (enum anatomy_stage)s);
    return ++u->jobs < ANATOMY_USUAL_JOBS;
}

static double usual_median(const double *v, size_t n)
{
    double sorted[ANATOMY_USUAL_JOBS];
    memcpy(sorted, v, n * sizeof(*v));
    return series_median_of(sorted, n);
}

/* ---- the page ---- */

#define STAGE(key, ftype, member, ...)                                                             \
    FIELD_AT(anatomy_usual_stage, key, ftype, member, __VA_ARGS__)
static const struct field usual_stage_rows[] = {
    STAGE("stage", FIELD_STR, stage, .flags = FIELD_ALWAYS),
    STAGE("share", FIELD_REAL, share, .doc = "the median of the jobs' shares, from 0 to 1"),
};
static const struct field_table usual_stage_table =
    FIELD_TABLE(NULL, usual_stage_rows, anatomy_usual_stage);

#define USUAL(key, ftype, member, ...) FIELD_AT(anatomy_usual_page, key, ftype, member, __VA_ARGS__)
static const struct field usual_rows[] = {
    USUAL("jobs", FIELD_INT, jobs, .doc = "that it is of"),
    USUAL("step_seconds", FIELD_REAL, step_s, .doc = "the median of the jobs' mean steps"),
    USUAL("stages", FIELD_LIST, stages, .of = &usual_stage_table),
};
const struct field_table anatomy_usual_table =
    FIELD_TABLE("UsualSteps", usual_rows, anatomy_usual_page);

bool anatomy_usual_fill(const struct anatomy_usual *u, struct anatomy_usual_page *ret)
{
    if (u->jobs < ANATOMY_USUAL_LEAST)
        return false;
    *ret = (struct anatomy_usual_page){.jobs = (int64_t)u->jobs,
                                       .step_s = usual_median(u->step_s, u->jobs),
                                       .stages = {ret->stage, ANATOMY_STAGES}};
    for (int s = 0; s < ANATOMY_STAGES; s++)
        ret->stage[s] = (struct anatomy_usual_stage){
            .stage = anatomy_stage_to_string((enum anatomy_stage)s),
            .share = usual_median(u->share[s], u->jobs),
        };
    return true;
}

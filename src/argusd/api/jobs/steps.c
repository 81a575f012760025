/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c - GET /v1/jobs/{id}/steps: where the time of a job's steps goes; and the schemas of the
 * verdict, which stands in the job itself. */
#include "argusd/kit/api.h"
#include "argusd/kit/part.h"
#include "base/mem.h"
#include "base/said.h"
#include "core/training/rank.h"
#include "core/training/training.h"

enum { STEPS_MAX_BYTES = 512 << 10 };

/* Texts are borrowed for one answer. */
struct steps_page {
    const char *id, *state, *anatomy;
};
static const struct field steps_rows[] = {
    FIELD_AT(steps_page, "id", FIELD_STR, id, .flags = FIELD_ALWAYS),
    FIELD_AT(steps_page, "state", FIELD_STR, state, .flags = FIELD_ALWAYS, .schema = "JobState"),
    FIELD_AT(steps_page,
             "anatomy",
             FIELD_JSON,
             anatomy,
             .schema = "StepAnatomy",
             .doc = "null: no step has told its time"),
};
static const struct field_table job_steps_table = FIELD_TABLE(NULL, steps_rows, steps_page);

static void steps_answer(struct http_req *req,
                         struct api *a,
                         const struct job *job,
                         const struct record_extra *extra,
                         struct live *l)
{
    struct buf out = BUF_INIT(STEPS_MAX_BYTES);
    struct jout j = jout_begin(&out);
    _cleanup_(freep) char *said = said_in_text(extra->anatomy, http_req_principal(req)->language);
    const struct steps_page page = {
        .id = job->id, .state = job_state_to_string(job->state), .anatomy = said};
    (void)l;
    field_to_json(&job_steps_table, &page, FIELD_ALL, FIELD_PAGE, &j, NULL);
    http_reply_json(req, 200, &out, api_reader_barrier(a));
    buf_release(&out);
}

static void api_jobs_steps(struct http_req *req, void *app)
{
    api_find_job(req, app, steps_answer);
}

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/jobs/{id}/steps",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_jobs_steps,
     .summary = "where the time of a job's steps goes",
     .reply_schema = "JobSteps"},
};
static const struct http_schema schemas[] = {
    {.name = "JobSteps", .table = &job_steps_table},
    {.name = "StepAnatomy", .table = &anatomy_table},
    {.name = "Verdict", .table = &verdict_table},
    {.name = "MetricAlert", .table = &metric_alarm_table},
    {.name = "SlowRank", .table = &rank_table},
};
const struct api_part part_steps = {rows, array_len(rows), schemas, array_len(schemas)};

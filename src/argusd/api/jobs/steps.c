/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c - GET /v1/jobs/{id}/steps: where the time of a job's steps goes, and where it usually
 * goes in jobs like it; and the schemas of the verdict, which stands in the job itself.
 *
 * What is usual is read anew for each answer, of the newest jobs that ended with the same workload
 * and pool and that its reader may see: two readers may be told different medians. */
#include <stdlib.h>
#include <string.h>

#include "argusd/jobs/record.h"
#include "argusd/kit/api.h"
#include "argusd/kit/part.h"
#include "base/mem.h"
#include "base/said.h"
#include "base/str.h"
#include "core/training/anatomy_usual.h"
#include "core/training/rank.h"
#include "core/training/training.h"

enum {
    STEPS_MAX_BYTES = 512 << 10,
    STEPS_LOOK_AT = ANATOMY_USUAL_JOBS + 1, /* whose details are read; one may be the job itself */
    STEPS_NEWEST = 5000,                    /* jobs of all users among which these are looked for */
};

/* Texts are borrowed for one answer. */
struct steps_page {
    const char *id, *state, *anatomy;
    const struct anatomy_usual_page *usual;
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
    FIELD_AT(steps_page,
             "usual",
             FIELD_PART,
             usual,
             .of = &anatomy_usual_table,
             .doc = "of the newest jobs of the same workload and pool that ended and that you may "
                    "see; null: fewer than three have told their time"),
};
static const struct field_table job_steps_table = FIELD_TABLE(NULL, steps_rows, steps_page);

/* An answer that waits for the other jobs. The request and the read hold it. */
struct steps_asked {
    int refs;
    struct http_req *req;
    struct api *a;
    struct store_read *read;
    char *id, *anatomy;
    const char *state;
};

static void steps_unref(void *arg)
{
    struct steps_asked *k = arg;
    if (--k->refs)
        return;
    free(k->id);
    free(k->anatomy);
    free(k);
}

static void steps_reply(const struct steps_asked *k, const struct anatomy_usual *usual)
{
    struct buf out = BUF_INIT(STEPS_MAX_BYTES);
    struct jout j = jout_begin(&out);
    struct anatomy_usual_page medians;
    _cleanup_(freep) char *said = said_in_text(k->anatomy, http_req_principal(k->req)->language);
    const struct steps_page page = {
        .id = k->id,
        .state = k->state,
        .anatomy = said,
        .usual = usual && anatomy_usual_fill(usual, &medians) ? &medians : NULL,
    };
    field_to_json(&job_steps_table, &page, FIELD_ALL, FIELD_PAGE, &j, NULL);
    http_reply_json(k->req, 200, &out, api_reader_barrier(k->a));
    buf_release(&out);
}

/* On a worker. */
static void *steps_render(const struct store_result *r, void *arg)
{
    const struct steps_asked *k = arg;
    struct anatomy_usual *usual = xcalloc(1, sizeof(*usual));
    for (size_t i = 0; i < r->njobs; i++) {
        _cleanup_(json_unrefp) json_t *detail = NULL;
        const char *text = str_or(r->jobs[i].detail, "");
        if (str_eq(r->jobs[i].id, k->id) ||
            json_parse(text, strlen(text), RECORD_DETAIL_MAX, &detail, NULL) < 0)
            continue;
        if (!anatomy_usual_add(usual, json_get_object(detail, "anatomy")))
            break;
    }
    return usual;
}

static void steps_on_done(const struct store_result *r, void *arg)
{
    struct steps_asked *k = arg;
    http_req_on_close(k->req, NULL, NULL);
    steps_reply(k, r->rendered); /* NULL on an error: its own steps are known all the same */
    free(r->rendered);
    steps_unref(k);
}

static void steps_on_gone(struct http_req *req, void *arg)
{
    struct steps_asked *k = arg;
    (void)req;
    store_read_cancel(k->read);
    steps_unref(k);
}

static void steps_read_others(struct steps_asked *k, const struct job *job)
{
    static const char *const ended[] = {"SUCCEEDED", "FAILED", "STOPPED", "TIMEOUT"};
    struct people_view view;
    people_view(k->a->people, http_req_principal(k->req), PEOPLE_WISH_ALL, &view);
    struct store_job_query q = {.states = ended,
                                .nstates = array_len(ended),
                                .no_live = true,
                                .workload = job->workload,
                                .pool = job->pool,
                                .scope = view.scope,
                                .newest = STEPS_NEWEST,
                                .limit = STEPS_LOOK_AT,
                                .want_detail = true};
    http_req_on_close(k->req, steps_on_gone, k);
    struct store_then then = {.render = steps_render,
                              .done = steps_on_done,
                              .drop = free,
                              .release = steps_unref,
                              .arg = k};
    k->read = store_list_jobs(k->a->store, &q, &then);
    people_view_release(&view);
}

static void steps_answer(struct http_req *req,
                         struct api *a,
                         const struct job *job,
                         const struct record_extra *extra,
                         struct live *l)
{
    struct steps_asked *k = xcalloc(1, sizeof(*k));
    (void)l;
    *k = (struct steps_asked){.refs = 1,
                              .req = req,
                              .a = a,
                              .id = xstrdup(job->id),
                              .anatomy = xstrdup(extra->anatomy),
                              .state = job_state_to_string(job->state)};
    if (k->anatomy) {
        k->refs++;
        steps_read_others(k, job);
        return;
    }
    steps_reply(k, NULL);
    steps_unref(k);
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
     .summary = "where the time of a job's steps goes, and where it usually goes",
     .reply_schema = "JobSteps"},
};
static const struct http_schema schemas[] = {
    {.name = "JobSteps", .table = &job_steps_table},
    {.name = "UsualSteps", .table = &anatomy_usual_table},
    {.name = "StepAnatomy", .table = &anatomy_table},
    {.name = "Verdict", .table = &verdict_table},
    {.name = "MetricAlert", .table = &metric_alarm_table},
    {.name = "SlowRank", .table = &rank_table},
};
const struct api_part part_steps = {rows, array_len(rows), schemas, array_len(schemas)};

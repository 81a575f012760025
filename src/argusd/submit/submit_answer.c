/* SPDX-License-Identifier: Apache-2.0 */
/* submit_answer.c - what a submit is answered: its job, that of its twin, or all that is wrong. */
#include "argusd/submit/submit_answer.h"

#include "argusd/jobs/record.h"
#include "argusd/kit/view.h"
#include "argusd/submit/idempotency.h"
#include "base/str.h"
#include "base/text.h"

enum { ANSWER_MAX = 64 << 10 };

/* Texts are borrowed for one answer. */
struct submitted_page {
    const char *id, *state, *workload, *user, *warnings, *retry_of, *changes;
    usec_t queued_at;
};
#define LIST_OF_SCHEMA(name)                                                                       \
    "{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/" name "\"}}"
#define PAGE(key, ftype, member, ...) FIELD_AT(submitted_page, key, ftype, member, __VA_ARGS__)
static const struct field submitted_rows[] = {
    PAGE("id", FIELD_STR, id, .flags = FIELD_ALWAYS),
    PAGE("state", FIELD_STR, state, .flags = FIELD_OMIT, .schema = "JobState"),
    PAGE("workload", FIELD_STR, workload, .flags = FIELD_OMIT),
    PAGE("user", FIELD_STR, user, .flags = FIELD_OMIT),
    PAGE("queued_at", FIELD_TIME, queued_at, .flags = FIELD_OMIT),
    PAGE("warnings",
         FIELD_JSON,
         warnings,
         .flags = FIELD_OMIT,
         .schema = LIST_OF_SCHEMA("SpecProblem")),
    PAGE("retry_of", FIELD_STR, retry_of, .flags = FIELD_OMIT),
    PAGE("changes", FIELD_JSON, changes, .flags = FIELD_OMIT, .schema = LIST_OF_SCHEMA("SpecEdit")),
};
#undef PAGE
const struct field_table submit_answer_table =
    FIELD_TABLE("Submitted", submitted_rows, submitted_page);

static void submit_answer_send(struct http_req *req,
                               struct api *a,
                               const struct submitted_page *page,
                               int status)
{
    struct buf out = BUF_INIT(ANSWER_MAX);
    struct jout j = jout_begin(&out);
    field_to_json(&submit_answer_table, page, FIELD_ALL, FIELD_PAGE, &j, NULL);
    http_reply_json(req, status, &out, api_barrier(a));
    buf_release(&out);
}

void submit_answer(struct http_req *req,
                   struct api *a,
                   struct live *l,
                   const struct submit_news *news,
                   int status)
{
    enum message_language language = http_req_principal(req)->language;
    struct store_job row;
    char location[128];
    _cleanup_(freep) char *warnings = news->warnings
                                          ? problems_say(news->warnings, language)
                                          : problems_stored_say(l->extra.warnings, language);
    record_job_row(l->job, NULL, NULL, &row);
    const struct submitted_page page = {.id = row.id,
                                        .state = row.state,
                                        .workload = row.workload,
                                        .user = row.user,
                                        .queued_at = row.queued_at,
                                        .warnings = warnings,
                                        .retry_of = l->extra.retry_of,
                                        .changes = news->changes};
    text_printf(location, "/v1/jobs/%s", row.id);
    http_reply_header(req, "Location", location);
    submit_answer_send(req, a, &page, status);
}

/* A submit that was here before is answered with its job; of a job that is over only the id is
 * known here. */
static void answer_again(struct http_req *req, struct api *a, const char *id)
{
    struct live *l = jobs_find_id(a->jobs, id);
    const struct submitted_page page = {.id = id};
    if (l)
        submit_answer(req, a, l, &(struct submit_news){0}, 200);
    else
        submit_answer_send(req, a, &page, 200);
}

bool submit_was_here(struct http_req *req, struct api *a, const char *asked)
{
    const char *job = NULL;
    struct err err = {0};
    if (idempotency_find(a, req, asked, &job, &err) < 0)
        http_problem(req, err.code, &err, "Idempotency-Key", NULL, api_barrier(a));
    else if (job)
        answer_again(req, a, job);
    return job || err.code;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* submit_answer.c - what a submit is answered: its job, that of its twin, or all that is wrong. */
#include "argusd/submit/submit_answer.h"

#include "argusd/jobs/record.h"
#include "argusd/kit/view.h"
#include "argusd/submit/idempotency.h"
#include "base/str.h"
#include "base/text.h"

void submit_answer(struct http_req *req,
                   struct api *a,
                   struct live *l,
                   const char *changes,
                   int status)
{
    struct store_job row;
    struct buf out = BUF_INIT(64 << 10);
    struct jout j = jout_begin(&out);
    char location[128];
    record_job_row(l->job, NULL, &row);
    jout_open(&j, NULL, '{');
    jout_str(&j, "id", row.id);
    jout_str(&j, "state", row.state);
    jout_str(&j, "workload", row.workload);
    jout_str(&j, "user", row.user);
    jout_time(&j, "queued_at", row.queued_at);
    jout_raw(&j, "warnings", str_or(l->extra.warnings, "[]"));
    if (l->extra.retry_of)
        jout_str(&j, "retry_of", l->extra.retry_of);
    if (changes)
        jout_raw(&j, "changes", changes);
    jout_close(&j, '}');
    text_printf(location, "/v1/jobs/%s", row.id);
    http_reply_header(req, "Location", location);
    http_reply_json(req, status, &out, api_barrier(a));
    buf_release(&out);
}

static void answer_again(struct http_req *req, struct api *a, const char *id)
{
    struct live *l = jobs_find_id(a->jobs, id);
    if (l) {
        submit_answer(req, a, l, NULL, 200);
        return;
    }
    struct buf out = BUF_INIT(4096);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    jout_str(&j, "id", id);
    jout_close(&j, '}');
    http_reply_json(req, 200, &out, api_barrier(a));
    buf_release(&out);
}

bool submit_was_here(struct http_req *req, struct api *a, const char *asked)
{
    const char *job = NULL;
    struct err err = {0};
    if (idempotency_find(a, req, asked, &job, &err) < 0)
        http_problem(req, err.code, &err, "Idempotency-Key", "use a new key per job", NULL,
                     api_barrier(a));
    else if (job)
        answer_again(req, a, job);
    return job || err.code;
}

char *submit_warnings(const struct problems *ps)
{
    struct buf out = BUF_INIT(256 << 10);
    struct jout j = jout_begin(&out);
    if (!ps->n)
        return NULL;
    jout_open(&j, NULL, '{');
    problems_to_json(ps, &j, "w");
    jout_close(&j, '}');
    /* Only the array: {"w":[…]} */
    char *text = xstrndup(buf_str(&out) + 5, out.len - 6);
    buf_release(&out);
    return text;
}

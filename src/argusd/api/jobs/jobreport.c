/* SPDX-License-Identifier: Apache-2.0 */
/* jobreport.c - GET /v1/jobs/{id}/report: the page of a job as a text that can be sent and kept. */
#include <string.h>

#include "argusd/kit/part.h"
#include "argusd/kit/reports.h"
#include "argusd/kit/view.h"
#include "base/json.h"
#include "base/mem.h"
#include "core/job/job_report.h"

enum { JOB_PAGE_MAX = 8 << 20, JOB_REPORT_MAX = 4 << 20 };

/* As its page tells it to him who asks, in the language of the report. */
static json_t *job_page_in(const struct http_req *req,
                           const struct api *a,
                           const struct job *job,
                           const struct record_extra *extra,
                           struct live *l,
                           enum message_language in)
{
    struct http_principal reader = *http_req_principal(req);
    struct buf out = BUF_INIT(JOB_PAGE_MAX);
    struct jout j = jout_begin(&out);
    json_t *page = NULL;
    reader.language = in;
    struct api_eyes eyes = {.a = a, .p = &reader};
    view_job(&j, a->settings, job, extra, l, &eyes);
    if (out.failed || json_parse(buf_str(&out), out.len, JOB_PAGE_MAX, &page, NULL) < 0)
        page = json_object();
    buf_release(&out);
    return page;
}

static void job_report_answer(struct http_req *req,
                              struct api *a,
                              const struct job *job,
                              const struct record_extra *extra,
                              struct live *l)
{
    struct err err = {0};
    struct report_ask asked;
    struct buf out = BUF_INIT(JOB_REPORT_MAX);
    const char *wrong = report_ask(req, &asked, &err);
    if (wrong) {
        http_problem(req, err.code, &err, wrong, NULL, 0);
        return;
    }
    _cleanup_(json_unrefp) json_t *page = job_page_in(req, a, job, extra, l, asked.in);
    job_report(page, asked.is_html, asked.in, &out);
    report_reply(req, &asked, &out, l ? api_barrier(a) : api_reader_barrier(a));
}

static void api_job_report(struct http_req *req, void *app)
{
    api_find_job(req, app, job_report_answer);
}

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/jobs/{id}/report",
     .example = "sft-gsm8k",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_job_report,
     .summary = "what happened, why with evidence, what to do, what it cost",
     .params = report_params,
     .reply_type = "text/markdown"},
};
const struct api_part part_jobreport = {rows, array_len(rows), NULL, 0};

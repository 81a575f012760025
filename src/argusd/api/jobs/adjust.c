/* SPDX-License-Identifier: Apache-2.0 */
/* adjust.c - POST /v1/jobs/{id}:change: a job that waits asks for other nodes, another pool,
 * timeout or priority.
 *
 * Its spec is changed as a retry's is, and checked as a new job's (submit/submit.c); then it goes
 * on waiting at its place. ?dry_run says what would come of it, and which jobs would start later.
 */
#include <stdlib.h>

#include "argusd/api/jobs/retry.h"
#include "argusd/kit/api.h"
#include "argusd/kit/part.h"
#include "argusd/submit/submit.h"
#include "argusd/submit/submit_answer.h"
#include "base/message.h"
#include "base/str.h"
#include "core/spec/respec.h"

static const struct field adjust_rows[] = {
    OPT_AS("pool", TEXT_OR_NULL),
    OPT_AS("nnodes", INTEGER),
    OPT_AS("n_gpus_per_node", NUMBER),
    OPT_AS("timeout", "{\"type\":[\"string\",\"number\",\"null\"]}"),
    OPT_AS("priority", INTEGER),
};
static const struct field_table adjust_form = ACTION_FORM(adjust_rows);

/* What an attempt left behind is of the shape that it had. */
static bool adjust_is_of_shape(const json_t *body)
{
    return json_object_get(body, "nnodes") || json_object_get(body, "n_gpus_per_node");
}

static int adjust_check(struct http_req *req,
                        const struct api *a,
                        const struct job *job,
                        const json_t *body,
                        struct err *err)
{
    int r = api_may_change(a, http_req_principal(req), "change", job, err);
    if (r == 0)
        r = store_check(a->store, err);
    if (r < 0)
        return r;
    if (job->state != JOB_QUEUED)
        return message_refuse(err, ERR_CONFLICT, "change_not_waiting",
                              MESSAGE_ARGS(MESSAGE_STR("job", job->id),
                                           MESSAGE_STR("state", job_state_to_string(job->state))));
    if (!json_object_size(body))
        return message_refuse(err, ERR_BAD_REQUEST, "change_what", MESSAGE_NO_ARGS);
    if (job->n_attempts && adjust_is_of_shape(body))
        return message_refuse(err, ERR_CONFLICT, "change_shape_ran",
                              MESSAGE_ARGS(MESSAGE_STR("job", job->id)));
    return 0;
}

static void adjust_submit(struct http_req *req,
                          struct api *a,
                          const struct job *job,
                          const struct http_principal *owner,
                          const json_t *body)
{
    struct buf text = BUF_INIT(DOC_MAX_BYTES), changes = BUF_INIT(RESPEC_CHANGES_MAX);
    const struct respec how = {.patch = body, .keeps_id = true};
    struct err err = {0};
    int n = respec_text(job->spec, &how, &text, &changes, &err);
    if (n >= 0 && (text.failed || changes.failed))
        n = message_refuse(&err, ERR_REFUSED, "retry_spec_large",
                           MESSAGE_ARGS(MESSAGE_STR("job", job->id)));
    else if (n < 0)
        err.code = ERR_REFUSED;
    if (n < 0) {
        api_fail(req, &err, 0);
    } else {
        struct submit_change to = {.id = xstrdup(job->id),
                                   .changes = buf_take(&changes),
                                   .sets_priority = json_object_get(body, "priority")};
        submit_change(req, a, owner, buf_take(&text), &to);
    }
    buf_release(&text);
    buf_release(&changes);
}

static void adjust_job(struct http_req *req,
                       struct api *a,
                       const struct job *job,
                       const struct record_extra *extra,
                       struct live *l)
{
    struct http_principal owner;
    struct err err = {0};
    (void)extra, (void)l;
    _cleanup_(json_unrefp) json_t *body = api_read_action(req, &adjust_form);
    if (!body)
        return;
    int r = adjust_check(req, a, job, body, &err);
    if (r == 0)
        r = api_find_owner(a, http_req_principal(req), job, "not_changed", &owner, &err);
    if (r < 0)
        api_fail(req, &err, 0);
    else
        adjust_submit(req, a, job, &owner, body);
}

static void api_jobs_adjust(struct http_req *req, void *app)
{
    api_find_job(req, app, adjust_job);
}

static const struct http_param params[] = {
    {"dry_run", HTTP_PARAM_BOOLEAN,
     "check only, as for a submit; others: the jobs that would start later or sooner"},
    {"require_fit", HTTP_PARAM_BOOLEAN, "as for a submit"},
    {"no_trial", HTTP_PARAM_BOOLEAN, "with dry_run: without the short run on a worker"},
    {0}};
static const struct http_route rows[] = {
    {.method = "POST",
     .pattern = "/v1/jobs/{id}:change",
     .least = HTTP_ROLE_USER,
     .max_body = 4096,
     .handle = api_jobs_adjust,
     .summary =
         "change the nodes, pool, timeout or priority of a job that waits; it keeps its place",
     .params = params,
     .request_schema = "JobChange",
     .reply_schema = "PlanOrSubmitted"},
};
static const struct http_schema schemas[] = {
    {.name = "JobChange", .table = &adjust_form, .is_form = true},
};
const struct api_part part_adjust = {rows, array_len(rows), schemas, array_len(schemas)};

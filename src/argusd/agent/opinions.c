/* SPDX-License-Identifier: Apache-2.0 */
/* opinions.c - POST /v1/jobs/{id}/findings: what the ops agent, or anybody who may see a job,
 * thinks of its failure.
 *
 * Kept as an event of the job: who said it and when is in the audit log with it, whoever may see
 * the job is told, and nothing is done to the job. How many a job may have is asked of the store
 * first; requests that are on their way at the same time may be more by as many as they are. */
#include <stdlib.h>

#include "argusd/agent/agent.h"
#include "argusd/api/routes.h"
#include "argusd/kit/api.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/finding/opinion/opinion.h"

enum { OPINION_PAGE_MAX = 64 << 10, OPINION_LINE_MAX = 200 };

struct opinion_ask {
    struct http_req *req;
    struct api *a;
    struct opinion said;
    char *job;
    int64_t seq;
    struct store_read *read;
};

static void opinion_ask_free(struct opinion_ask *q)
{
    field_release(&opinion_table, &q->said);
    free(q->job);
    free(q);
}

static void opinion_on_gone(struct http_req *req, void *arg)
{
    struct opinion_ask *q = arg;
    (void)req;
    store_read_cancel(q->read);
    opinion_ask_free(q);
}

void opinion_keep(struct api *a, const char *job, int64_t seq, struct opinion *o)
{
    unsigned char hash[STORE_HASH_BYTES];
    char text[OPINION_LINE_MAX];
    _cleanup_(freep) char *data = field_to_text(&opinion_table, o, FIELD_STORED, FIELD_PAGE);
    text_printf(text, "%.160s", o->cause);
    o->at = clock_wall();
    struct events_note note = {.kind = OPINION_EVENT,
                               .actor = o->author,
                               .job = job,
                               .job_seq = seq,
                               .text = text,
                               .data = data};
    events_add(a->events, &note, o->at);
    o->id = events_head(a->events, hash);
}

static void opinion_reply(struct opinion_ask *q)
{
    struct buf out = BUF_INIT(OPINION_PAGE_MAX);
    struct jout j = jout_begin(&out);
    field_to_json(&opinion_table, &q->said, FIELD_ALL, FIELD_PAGE, &j, NULL);
    http_reply_json(q->req, 201, &out, api_barrier(q->a));
    buf_release(&out);
}

static void opinion_on_counted(const struct store_result *r, void *arg)
{
    struct opinion_ask *q = arg;
    struct err err = r->err;
    http_req_on_close(q->req, NULL, NULL);
    if (!err.code && r->nevents >= OPINIONS_OF_JOB_MAX)
        (void)message_refuse(
            &err, ERR_REFUSED, "opinions_full",
            MESSAGE_ARGS(MESSAGE_STR("job", q->job), MESSAGE_NUM("limit", OPINIONS_OF_JOB_MAX)));
    if (err.code || store_check(q->a->store, &err) < 0) {
        api_fail(q->req, &err, 0);
    } else {
        opinion_keep(q->a, q->job, q->seq, &q->said);
        opinion_reply(q);
    }
    opinion_ask_free(q);
}

static int opinion_check_job(const struct opinion_ask *q, const struct job *job, struct err *err)
{
    const struct http_principal *p = http_req_principal(q->req);
    int r = people_check_job(q->a->people, p, ACCESS_JOB_ADVISE, "say why it failed of", job, err);
    int64_t attempt = q->said.attempt;
    if (r < 0 || (attempt >= 0 && attempt <= job->n_attempts))
        return r;
    return message_refuse(err, ERR_BAD_REQUEST, "opinion_attempt",
                          MESSAGE_ARGS(MESSAGE_STR("job", job->id), MESSAGE_NUM("attempt", attempt),
                                       MESSAGE_NUM("newest", job->n_attempts)));
}

static void opinion_of_job(struct http_req *req,
                           struct api *a,
                           const struct job *job,
                           const struct record_extra *extra,
                           struct live *l)
{
    struct err err = {0};
    _cleanup_(json_unrefp) json_t *body = api_read_action(req, &opinion_table);
    (void)extra;
    (void)l;
    if (!body)
        return;
    struct opinion_ask *q = xcalloc(1, sizeof(*q));
    *q = (struct opinion_ask){.req = req, .a = a, .job = xstrdup(job->id), .seq = job->seq};
    int r = opinion_read(body, &q->said, &err);
    if (r == 0)
        r = opinion_check_job(q, job, &err);
    if (r < 0) {
        api_fail(req, &err, 0);
        opinion_ask_free(q);
        return;
    }
    if (!q->said.attempt)
        q->said.attempt = job->n_attempts;
    set_str(&q->said.source, OPINION_GIVEN);
    set_str(&q->said.author, http_req_principal(req)->user);
    struct store_event_query ask = {
        .job = q->job, .kinds = OPINION_EVENT, .limit = OPINIONS_OF_JOB_MAX};
    struct store_then then = {.done = opinion_on_counted, .arg = q};
    http_req_on_close(req, opinion_on_gone, q);
    q->read = store_list_events(a->store, &ask, &then);
}

static void opinion_post(struct http_req *req, void *app)
{
    api_find_job(req, app, opinion_of_job);
}

static const struct http_route rows[] = {
    {.method = "POST",
     .pattern = "/v1/jobs/{id}/findings",
     .least = HTTP_ROLE_USER,
     .handle = opinion_post,
     .max_body = OPINION_BODY_MAX,
     .summary = "say what you think of a failure: it stands beside the finding of Argus, as text",
     .request_schema = "OpinionForm",
     .reply_schema = "Opinion",
     .reply_status = 201},
};
static const struct http_schema schemas[] = {
    {.name = "Opinion", .table = &opinion_table},
    {.name = "OpinionForm", .table = &opinion_table, .which = FIELD_ASKED, .is_form = true},
};
const struct api_part part_opinions = {rows, array_len(rows), schemas, array_len(schemas)};

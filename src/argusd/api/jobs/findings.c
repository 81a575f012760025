/* SPDX-License-Identifier: Apache-2.0 */
/* findings.c - GET /v1/jobs/{id}/findings: why each of its attempts ended badly, and beside it what
 * others say of that (core/finding/opinion/opinion.h).
 *
 * From the store, so it waits first until what the client may have been told is on disk. */
#include <stdlib.h>
#include <string.h>

#include "argusd/kit/api.h"
#include "argusd/kit/part.h"
#include "base/said.h"
#include "core/finding/opinion/opinion.h"

enum { ANSWER_MAX = 16 << 20, BODIES_MAX = 8 << 20, OPINION_BYTES_MAX = 4 << 20 };

struct listing {
    struct http_req *req;
    struct api *a;
    int64_t seq; /* of the job */
    struct buf opinions;
    struct store_read *read;
};

static void listing_free(struct listing *g)
{
    buf_release(&g->opinions);
    free(g);
}

static void api_findings_on_gone(struct http_req *req, void *arg)
{
    struct listing *g = arg;
    (void)req;
    store_read_cancel(g->read);
    listing_free(g);
}

/* The first finding that is told: a job with very many attempts has its newest told. */
static size_t first_told(const struct store_result *r)
{
    size_t bytes = 0, i = r->nfindings;
    while (i && (bytes += strlen(r->findings[i - 1].body)) <= BODIES_MAX)
        i--;
    return i;
}

/* As it was stored, in English; for another reader its advice is said anew. */
static void put_finding(struct jout *j, const char *body, enum message_language language)
{
    _cleanup_(json_unrefp) json_t *o = NULL;
    if (language != MESSAGE_ENGLISH && json_parse(body, strlen(body), BODIES_MAX, &o, NULL) == 0)
        said_in(o, language);
    _cleanup_(freep) char *said = o ? json_dumps(o, JSON_COMPACT) : NULL;
    jout_raw(j, NULL, said ? said : body);
}

static void api_findings_on_listed(const struct store_result *r, void *arg)
{
    struct listing *g = arg;
    struct buf out = BUF_INIT(ANSWER_MAX);
    struct jout j = jout_begin(&out);
    http_req_on_close(g->req, NULL, NULL);
    if (r->err.code) {
        api_fail(g->req, &r->err, 0);
    } else {
        jout_open(&j, NULL, '{');
        jout_open(&j, "findings", '[');
        for (size_t i = first_told(r); i < r->nfindings; i++)
            put_finding(&j, r->findings[i].body, http_req_principal(g->req)->language);
        jout_close(&j, ']');
        jout_raw(&j, "opinions", buf_str(&g->opinions));
        jout_close(&j, '}');
        http_reply_json(g->req, 200, &out, api_reader_barrier(g->a));
    }
    buf_release(&out);
    listing_free(g);
}

/* The oldest first; they came newest first. */
static void put_opinions(const struct store_result *r, struct buf *out)
{
    struct jout j = jout_begin(out);
    jout_open(&j, NULL, '[');
    for (size_t i = r->nevents; i-- > 0;) {
        struct opinion o = {0};
        if (!opinion_from_event(r->events[i].data, r->events[i].seq, r->events[i].at, &o))
            continue;
        field_to_json(&opinion_table, &o, FIELD_ALL, FIELD_PAGE, &j, NULL);
        field_release(&opinion_table, &o);
    }
    jout_close(&j, ']');
}

static void api_findings_on_opinions(const struct store_result *r, void *arg)
{
    struct listing *g = arg;
    struct store_then then = {.done = api_findings_on_listed, .arg = g};
    if (r->err.code) {
        http_req_on_close(g->req, NULL, NULL);
        api_fail(g->req, &r->err, 0);
        listing_free(g);
        return;
    }
    put_opinions(r, &g->opinions);
    g->read = store_list_findings(g->a->store, g->seq, &then);
}

static void api_findings_list(struct http_req *req,
                              struct api *a,
                              const struct job *job,
                              const struct record_extra *extra,
                              struct live *l)
{
    struct listing *g = xcalloc(1, sizeof(*g));
    struct store_then then = {.done = api_findings_on_opinions, .arg = g};
    struct store_event_query q = {.job = job->id,
                                  .kinds = OPINION_EVENT,
                                  .limit = OPINIONS_OF_JOB_MAX,
                                  .newest_first = true}; /* who sees the job sees them */
    (void)extra;
    (void)l;
    *g = (struct listing){
        .req = req, .a = a, .seq = job->seq, .opinions = BUF_INIT(OPINION_BYTES_MAX)};
    http_req_on_close(req, api_findings_on_gone, g);
    g->read = store_list_events(a->store, &q, &then);
}

static void api_jobs_findings(struct http_req *req, void *app)
{
    api_find_job(req, app, api_findings_list);
}

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/jobs/{id}/findings",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_jobs_findings,
     .summary = "why its attempts (0: its trial) ended badly, each with evidence, advice and a "
                "patch, and what others say of it",
     .reply_schema = "FindingList"},
};
static const struct http_schema schemas[] = {
    {.name = "FindingList",
     .json =
         OBJECT("\"findings\",\"opinions\"",
                KEY("findings", LIST(REF("Finding"))) "," KEY("opinions", LIST(REF("Opinion"))))},
};
const struct api_part part_findings = {rows, array_len(rows), schemas, array_len(schemas)};

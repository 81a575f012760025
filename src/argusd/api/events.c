/* SPDX-License-Identifier: Apache-2.0 */
/* events.c - events as pages, as a long-poll, and as a stream.
 *
 * A stream first reads the store page by page until it has caught up, then
 * listens. What comes while it still reads is read too: it listens only to know
 * that there is more, so no event is lost or doubled. */
#include "argusd/api/events.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/kit/part.h"
#include "argusd/kit/saying.h"
#include "argusd/kit/view.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum { PAGE = 200, PAGE_MAX_BYTES = 8 << 20, ROW_MAX_BYTES = 1 << 20, ROOM = 144 << 10 };

struct follow {
    struct api *a;
    struct http_req *req; /* of a page or a long-poll */
    struct http_principal who;
    struct http_stream *st;
    struct store_read *read;
    struct events_listener *listener;
    struct event_filter filter;
    int64_t
        through; /* on disk when the read began: what it did not give up to here is not for him */
    int64_t since;
    unsigned limit;
    bool newest_first, more, may_wait;
};

static void follow_free(struct follow *f)
{
    events_unlisten(f->listener);
    if (f->read)
        store_read_cancel(f->read);
    event_filter_release(&f->filter);
    free(f);
}

static void read_more(struct follow *f);

/* Texts are borrowed for one answer, but for those of `reason`. */
struct event_page {
    struct store_event row;
    struct said reason;
    const char *text, *data, *report;
};
#define EVENT(key, ftype, member, ...) FIELD_AT(event_page, key, ftype, member, __VA_ARGS__)
static const struct field event_rows[] = {
    EVENT("seq", FIELD_INT, row.seq),
    EVENT("at", FIELD_TIME, row.at, .flags = FIELD_ALWAYS),
    EVENT("job", FIELD_STR, row.job),
    EVENT("object", FIELD_STR, row.object),
    EVENT("kind", FIELD_STR, row.kind, .flags = FIELD_ALWAYS),
    EVENT("actor", FIELD_STR, row.actor, .flags = FIELD_ALWAYS),
    EVENT("from", FIELD_STR, row.from_state),
    EVENT("to", FIELD_STR, row.to_state),
    EVENT("reason", FIELD_OBJECT, reason, .of = &said_table),
    EVENT("text", FIELD_STR, text, .flags = FIELD_ALWAYS),
    EVENT("data",
          FIELD_JSON,
          data,
          .flags = FIELD_ALWAYS,
          .schema = AS_IT_CAME(
              "what an event of its kind has: an object of before and after, a list, or null")),
    EVENT("report",
          FIELD_STR,
          report,
          .doc = "path of the report of the job whose failure it tells of; null: it tells of none"),
};
#undef EVENT
static const struct field_table event_table = FIELD_TABLE("Event", event_rows, event_page);

/* What it is about; an event of a job has that only as its job. NULL: nothing. Yours. */
static char *event_object(const struct store_event *row)
{
    return row->job && !row->object ? xasprintf("job/%s", row->job) : xstrdup(row->object);
}

/* An interruption is told as a finding, and its report is that of its job. NULL: the event tells of
 * none. Yours. */
static char *event_report(const struct store_event *row)
{
    bool is_told = row->job && str_eq(row->kind, "finding");
    return is_told ? xasprintf("/v1/jobs/%s/report", row->job) : NULL;
}

void api_event_put(const struct api_eyes *eyes, const struct store_event *row, struct jout *j)
{
    _cleanup_(freep) char *object = event_object(row), *report = event_report(row);
    struct event_page page = {
        .row = *row, .data = row->data && *row->data ? row->data : NULL, .report = report};
    page.row.object = object;
    saying_say(eyes, row->job, row->reason_code, row->text, &page.reason);
    page.text = page.reason.text;
    field_to_json(&event_table, &page, FIELD_ALL, FIELD_PAGE, j, NULL);
    said_release(&page.reason);
}

/* ---- as CSV ---- */

void api_event_put_csv_head(struct buf *out)
{
    (void)buf_adds(out, "seq,at,kind,object,job,actor,from,to,text,data\n"); /* it fits */
}

void api_event_put_csv(const struct api_eyes *eyes, const struct store_event *row, struct buf *out)
{
    struct said said = {0};
    char at[CLOCK_TEXT_MAX];
    saying_say(eyes, row->job, row->reason_code, row->text, &said);
    _cleanup_(freep) char *object = event_object(row);
    const char *fields[] = {clock_to_string(row->at, at),
                            row->kind,
                            object,
                            row->job,
                            row->actor,
                            row->from_state,
                            row->to_state,
                            said.text,
                            row->data};
    (void)buf_addf(out, "%lld", (long long)row->seq); /* past the ceiling failed is set, as below */
    for (size_t i = 0; i < array_len(fields); i++) {
        (void)buf_addc(out, ',');
        buf_add_csv(out, str_or(fields[i], ""));
    }
    (void)buf_addc(out, '\n');
    said_release(&said);
}

/* ---- what is asked for ---- */

/* A filter of the query that says something; NULL. Yours. */
static char *filter_text(const struct http_req *req, const char *name)
{
    const char *text = http_req_query(req, name);
    return text && *text ? xstrdup(text) : NULL;
}

int event_filter_read(const struct http_req *req, struct event_filter *ret, struct err *err)
{
    struct event_filter f = {0};
    usec_t now = clock_wall();
    int r = api_read_time(req, "from", now, &f.from, err);
    if (r == 0)
        r = api_read_time(req, "to", now, &f.to, err);
    if (r < 0)
        return r;
    f.job = filter_text(req, "job");
    f.kinds = filter_text(req, "kind");
    f.actor = filter_text(req, "actor");
    f.object = filter_text(req, "object");
    *ret = f;
    return 0;
}

void event_filter_release(struct event_filter *f)
{
    free(f->job);
    free(f->kinds);
    free(f->actor);
    free(f->object);
    *f = (struct event_filter){0};
}

void event_filter_ask(const struct event_filter *f, struct store_event_query *q)
{
    q->job = f->job;
    q->kinds = f->kinds;
    q->actor = f->actor;
    q->object = f->object;
    q->from = f->from;
    q->to = f->to;
}

/* ---- pages ---- */

static void answer_page(struct follow *f, const struct store_result *r)
{
    struct buf out = BUF_INIT(PAGE_MAX_BYTES);
    struct jout j = jout_begin(&out);
    struct api_eyes eyes = {.a = f->a, .p = &f->who};
    int64_t next = f->since;
    jout_open(&j, NULL, '{');
    jout_open(&j, "events", '[');
    for (size_t i = 0; i < r->nevents && out.len < PAGE_MAX_BYTES - ROW_MAX_BYTES; i++) {
        api_event_put(&eyes, &r->events[i], &j);
        next = r->events[i].seq;
    }
    jout_close(&j, ']');
    jout_int(&j, "next", next);
    jout_close(&j, '}');
    http_req_on_close(f->req, NULL, NULL);
    http_reply_json(f->req, 200, &out, 0);
    buf_release(&out);
    follow_free(f);
}

/* ---- streams ---- */

static void send_rows(struct follow *f, const struct store_result *r)
{
    struct api_eyes eyes = {.a = f->a, .p = &f->who};
    for (size_t i = 0; i < r->nevents; i++) {
        struct buf out = BUF_INIT(ROW_MAX_BYTES);
        struct jout j = jout_begin(&out);
        char id[32];
        api_event_put(&eyes, &r->events[i], &j);
        text_printf(id, "%lld", (long long)r->events[i].seq);
        int64_t n = http_stream_sse(f->st, id, "event", buf_str(&out), out.len);
        buf_release(&out);
        if (n < 0) { /* full: the rest is read again when there is room */
            f->more = true;
            return;
        }
        f->since = r->events[i].seq;
    }
    if (r->nevents == f->limit)
        f->more = true;
    else if (f->through > f->since)
        f->since = f->through;
}

/* A long-poll whose page is empty. */
static void wait_on(struct follow *f)
{
    if (!f->newest_first && f->through > f->since)
        f->since = f->through;
    if (f->more)
        read_more(f);
}

static void api_events_on_page(const struct store_result *r, void *arg)
{
    struct follow *f = arg;
    f->read = NULL;
    if (!f->st && r->err.code) {
        http_req_on_close(f->req, NULL, NULL);
        api_fail(f->req, &r->err, 0);
        follow_free(f);
    } else if (!f->st) {
        if (r->nevents || !f->may_wait)
            answer_page(f, r);
        else
            wait_on(f);
    } else if (r->err.code || !people_may_go_on(f->a->people, f->a->tokens, &f->who)) {
        http_stream_end(f->st); /* the client comes back with its last id */
        follow_free(f);
    } else {
        send_rows(f, r);
        if (f->more && http_stream_room(f->st) > ROOM)
            read_more(f);
    }
}

static void read_more(struct follow *f)
{
    if (f->read) {
        f->more = true;
        return;
    }
    f->more = false;
    f->through = events_last(f->a->events);
    struct people_sight sight;
    people_sight(f->a->people, &f->who, &sight);
    struct store_event_query q = {.since = f->newest_first ? 0 : f->since,
                                  .limit = f->limit,
                                  .newest_first = f->newest_first,
                                  .scope = sight.scope};
    event_filter_ask(&f->filter, &q);
    struct store_then then = {.done = api_events_on_page, .arg = f};
    f->read = store_list_events(f->a->store, &q, &then);
    people_sight_release(&sight);
}

static void on_event(int64_t seq, const char *job, void *arg)
{
    struct follow *f = arg;
    if (seq > f->since && (!f->filter.job || !job || str_eq(f->filter.job, job)))
        read_more(f);
}

static void api_events_on_drain(struct http_stream *st, void *arg)
{
    struct follow *f = arg;
    (void)st;
    if (f->more)
        read_more(f);
}

static void api_events_on_stream_gone(struct http_stream *st, void *arg)
{
    (void)st;
    follow_free(arg);
}

static void on_req_gone(struct http_req *req, void *arg)
{
    (void)req;
    follow_free(arg);
}

static void on_waited(struct http_req *req, void *arg)
{
    struct follow *f = arg;
    (void)req;
    f->may_wait = false;
    read_more(f);
}

/* ---- the requests ---- */

static int read_query(struct http_req *req, struct follow *f, struct err *err)
{
    int64_t since = 0, limit = PAGE;
    const char *last = http_req_last_event_id(req);
    int r = http_req_query_int(req, "since", 0, INT64_MAX, 0, &since, err);
    if (r == 0)
        r = http_req_query_int(req, "limit", 1, STORE_PAGE_MAX, PAGE, &limit, err);
    if (r == 0 && last && str_to_int(last, 0, INT64_MAX, &since, NULL) < 0)
        r = message_refuse(err, ERR_BAD_REQUEST, "bad_event_id",
                           MESSAGE_ARGS(MESSAGE_STR("id", last)));
    f->since = since;
    f->limit = (unsigned)limit;
    f->newest_first = http_req_query_bool(req, "newest_first", false);
    return r < 0 ? ERR_BAD_REQUEST : 0;
}

static void api_events_begin(struct http_req *req, struct api *a, const char *job)
{
    struct follow *f = xcalloc(1, sizeof(*f));
    struct err err = {0};
    *f = (struct follow){.a = a, .req = req, .who = *http_req_principal(req)};
    int r = read_query(req, f, &err);
    if (r == 0)
        r = event_filter_read(req, &f->filter, &err);
    if (job)
        set_str(&f->filter.job, job);
    if (r < 0) {
        err.code = ERR_BAD_REQUEST;
        api_fail(req, &err, 0);
        follow_free(f);
        return;
    }
    bool stream = http_req_query_bool(req, "follow", false);
    usec_t span = http_req_wait(req);
    if (stream) {
        f->newest_first = false;
        f->st = http_stream_begin(req, "text/event-stream", 0);
        if (!f->st) {
            follow_free(f);
            return;
        }
        http_stream_on_drain(f->st, api_events_on_drain, f);
        http_stream_on_close(f->st, api_events_on_stream_gone, f);
    } else {
        http_req_on_close(req, on_req_gone, f);
        if (span) {
            f->may_wait = true;
            http_req_park(req, span, on_waited, f);
        }
    }
    if (stream || span)
        f->listener = events_listen(a->events, on_event, f);
    read_more(f);
}

static void api_events(struct http_req *req, void *app)
{
    api_events_begin(req, app, NULL);
}

static void job_events(struct http_req *req,
                       struct api *a,
                       const struct job *job,
                       const struct record_extra *extra,
                       struct live *l)
{
    (void)extra;
    (void)l;
    api_events_begin(req, a, job->id);
}

static void api_jobs_events(struct http_req *req, void *app)
{
    api_find_job(req, app, job_events);
}

static const struct http_param event_params[] = {
    {"follow", HTTP_PARAM_BOOLEAN, "an event stream"},
    {"since", HTTP_PARAM_INTEGER, "only events after this number"},
    {"limit", HTTP_PARAM_INTEGER, "events of a page, 1 to 1000; 200 if not given"},
    {"newest_first", HTTP_PARAM_BOOLEAN, "the newest ones, newest first"},
    {"wait", HTTP_PARAM_SPAN, "answer when there is one, at most 60s"},
    EVENT_FILTER_PARAMS,
    {"last_event_id", HTTP_PARAM_STRING, "as the Last-Event-ID header"},
    {0}};

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/jobs/{id}/events",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_jobs_events,
     .summary = "what happened to a job",
     .params = event_params,
     .reply_schema = "EventList",
     .stream_schema = "Event"},
    {.method = "GET",
     .pattern = "/v1/events",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_events,
     .summary = "what happened",
     .params = event_params,
     .reply_schema = "EventList",
     .stream_schema = "Event"},
};
static const struct http_schema schemas[] = {
    LIST_AND("EventList", "events", "Event", "," KEY("next", INTEGER)),
    {.name = "Event", .table = &event_table},
};
const struct api_part part_events = {rows, array_len(rows), schemas, array_len(schemas)};

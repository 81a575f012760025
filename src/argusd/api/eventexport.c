/* SPDX-License-Identifier: Apache-2.0 */
/* eventexport.c - GET /v1/events:export: all events that match, oldest first, as lines of JSON or
 * of CSV.
 *
 * The store is read page by page, as fast as the client takes them: nothing but one page is held.
 * A row goes out in as many pieces as the queue has room for, so that none is too large for it.
 * What came after the request began is not in it, so it ends. Where it breaks off, by an error or
 * because the token ended, the connection is cut and the file is seen to be torn. */
#include <stdlib.h>
#include <string.h>

#include "argusd/api/events.h"
#include "argusd/kit/part.h"
#include "base/message.h"
#include "base/str.h"

enum { EXPORT_PAGE = 200, EXPORT_ROW_MAX = 8 << 20, EXPORT_ROOM = 144 << 10 };

struct eventexport {
    struct api *a;
    struct http_principal who;
    struct http_stream *st;
    struct store_read *read; /* NULL: none is under way */
    struct event_filter filter;
    struct buf row;      /* the one that is being sent */
    size_t sent;         /* bytes of it */
    int64_t since, last; /* told up to here; the newest one of all */
    bool is_csv, more;   /* more: the next page is read when there is room */
};

static void eventexport_free(struct eventexport *x)
{
    if (x->read)
        store_read_cancel(x->read);
    event_filter_release(&x->filter);
    buf_release(&x->row);
    free(x);
}

/* False: a rest of the row waits until there is room. */
static bool eventexport_push(struct eventexport *x)
{
    size_t room = http_stream_room(x->st), left = x->row.len - x->sent,
           n = left < room ? left : room;
    if (n && http_stream_write(x->st, buf_str(&x->row) + x->sent, n) >= 0)
        x->sent += n;
    return x->sent == x->row.len;
}

/* What people send makes rows far smaller than the ceiling; past it the file is torn. */
static void eventexport_take(struct eventexport *x, const struct store_event *row)
{
    struct api_eyes eyes = {.a = x->a, .p = &x->who};
    buf_reset(&x->row);
    x->sent = 0;
    x->since = row->seq;
    if (x->is_csv) {
        api_event_put_csv(&eyes, row, &x->row);
    } else {
        struct jout j = jout_begin(&x->row);
        api_event_put(&eyes, row, &j);
        (void)buf_addc(&x->row, '\n'); /* past the ceiling failed is set */
    }
}

static void eventexport_read(struct eventexport *x);

static void eventexport_on_page(const struct store_result *r, void *arg)
{
    struct eventexport *x = arg;
    x->read = NULL;
    bool is_torn = r->err.code || !people_may_go_on(x->a->people, x->a->tokens, &x->who);
    for (size_t i = 0; i < r->nevents && !is_torn && !x->more; i++) {
        eventexport_take(x, &r->events[i]);
        is_torn = x->row.failed;
        x->more = !is_torn && !eventexport_push(x); /* those behind it are read again */
    }
    if (is_torn) {
        http_stream_cut(x->st);
        eventexport_free(x);
    } else if (!x->more && r->nevents < EXPORT_PAGE) {
        http_stream_end(x->st);
        eventexport_free(x);
    } else if (!x->more && http_stream_room(x->st) > EXPORT_ROOM) {
        eventexport_read(x);
    } else {
        x->more = true;
    }
}

static void eventexport_read(struct eventexport *x)
{
    struct people_sight sight;
    x->more = false;
    people_sight(x->a->people, &x->who, &sight);
    struct store_event_query q = {
        .since = x->since, .before = x->last + 1, .limit = EXPORT_PAGE, .scope = sight.scope};
    struct store_then then = {.done = eventexport_on_page, .arg = x};
    event_filter_ask(&x->filter, &q);
    x->read = store_list_events(x->a->store, &q, &then);
    people_sight_release(&sight);
}

static void eventexport_on_drain(struct http_stream *st, void *arg)
{
    struct eventexport *x = arg;
    (void)st;
    if (x->more && !x->read && eventexport_push(x))
        eventexport_read(x);
}

static void eventexport_on_gone(struct http_stream *st, void *arg)
{
    (void)st;
    eventexport_free(arg);
}

static int eventexport_read_query(const struct http_req *req,
                                  struct eventexport *x,
                                  struct err *err)
{
    const char *format = str_or(http_req_query(req, "format"), "ndjson");
    x->is_csv = str_eq(format, "csv");
    if (!x->is_csv && !str_eq(format, "ndjson"))
        return message_refuse(err, ERR_BAD_REQUEST, "bad_export_format",
                              MESSAGE_ARGS(MESSAGE_STR("format", format)));
    return event_filter_read(req, &x->filter, err);
}

static void api_events_export(struct http_req *req, void *app)
{
    struct api *a = app;
    struct err err = {0};
    struct eventexport *x = xcalloc(1, sizeof(*x));
    *x = (struct eventexport){.a = a,
                              .who = *http_req_principal(req),
                              .row = BUF_INIT(EXPORT_ROW_MAX),
                              .last = events_last(a->events)};
    if (eventexport_read_query(req, x, &err) < 0) {
        api_fail(req, &err, 0);
        eventexport_free(x);
        return;
    }
    http_reply_header(req, "Content-Disposition",
                      x->is_csv ? "attachment; filename=\"argus-events.csv\""
                                : "attachment; filename=\"argus-events.ndjson\"");
    x->st = http_stream_begin(req, x->is_csv ? "text/csv" : "application/x-ndjson", 0);
    if (!x->st) {
        eventexport_free(x);
        return;
    }
    http_stream_on_drain(x->st, eventexport_on_drain, x);
    http_stream_on_close(x->st, eventexport_on_gone, x);
    if (x->is_csv)
        api_event_put_csv_head(&x->row);
    (void)eventexport_push(x); /* the queue is empty */
    eventexport_read(x);
}

static const struct http_param export_params[] = {
    {"format", HTTP_PARAM_STRING, "ndjson, which is a line of JSON each (if not given), or csv"},
    EVENT_FILTER_PARAMS,
    {0}};
static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/events:export",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_events_export,
     .summary = "all events that you may see and that match, as a file",
     .params = export_params,
     .reply_type = "application/x-ndjson, text/csv"},
};
const struct api_part part_eventexport = {rows, array_len(rows), NULL, 0};

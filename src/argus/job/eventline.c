/* SPDX-License-Identifier: Apache-2.0 */
/* eventline.c - see eventline.h. The stream is asked for what comes after the last
 * sequence number printed, so that a lost connection loses no event. */
#include "argus/job/eventline.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "argus/job/jobview.h"
#include "argus/net/sse.h"
#include "argus/show/member.h"
#include "argus/show/table.h"
#include "argus/show/text.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

static const struct column COLUMNS[] = {
    {.title = "say_seq", .flags = COLUMN_RIGHT, .rank = 2},
    {.title = "say_at"},
    {.title = "say_job", .flags = COLUMN_NAME, .least = 14},
    {.title = "say_kind", .flags = COLUMN_FLEX, .least = 8},
    {.title = "say_change", .rank = 3},
    {.title = "say_user", .flags = COLUMN_WIDE},
    {.title = "say_text", .flags = COLUMN_ROOM},
};

/* "QUEUED→STARTING", "" */
static char *change_of(const json_t *event)
{
    const char *from = json_get_str(event, "from", ""), *to = json_get_str(event, "to", "");
    if (str_eq(from, to))
        return xstrdup("");
    return xasprintf("%s%s%s", from, *from && *to ? "→" : "", to);
}

/* Its job, or what else it is about: "user/bob". */
static const char *object_of(const json_t *event)
{
    return member_str(event, *json_get_str(event, "job", "") ? "job" : "object");
}

static char *eventline_text_of(const json_t *event)
{
    const char *text = json_get_str(event, "text", "");
    return *text ? xstrdup(text) : jobview_reason(event);
}

void eventline_table(struct cli *cli,
                     const json_t *events,
                     const struct when *w,
                     bool one_job,
                     bool wide)
{
    struct column columns[array_len(COLUMNS)];
    memcpy(columns, COLUMNS, sizeof(columns));
    if (one_job) { /* its id was asked for: the room is for the text */
        columns[2] = (struct column){.title = "say_job", .flags = COLUMN_WIDE};
        columns[6].least = 36; /* and more than its share of a narrow line */
    }
    _cleanup_(table_freep) struct table *t = table_new(columns, array_len(columns));
    char at[WHEN_TEXT_MAX];
    size_t i;
    json_t *e;
    json_array_foreach (events, i, e) {
        char *change = change_of(e), *text = eventline_text_of(e);
        table_addf(t, STYLE_PLAIN, "%" PRId64, json_get_int(e, "seq", 0));
        table_add(t, STYLE_PLAIN, when_point(w, when_get(e, "at"), at));
        table_add(t, STYLE_PLAIN, object_of(e));
        table_add(t, STYLE_PLAIN, member_str(e, "kind"));
        table_add(t, jobview_style(json_get_str(e, "to", "")), change);
        table_add(t, STYLE_PLAIN, member_str(e, "actor"));
        table_add(t, STYLE_PLAIN, text);
        free(change);
        free(text);
    }
    (void)table_print(t, &cli->term, wide, cli->out); /* its least widths fit 80 columns */
    if (!i)
        cli_say(cli, "say_no_events", "", "", "");
}

struct feed {
    struct cli *cli;
    int output;
    bool one_job, has_ended;
    int64_t seq;
    struct sse sse;
    struct err err;
};

static void print_event(struct cli *cli, int output, const json_t *event)
{
    FILE *out = cli->out;
    if (output >= OUTPUT_JSON) {
        (void)json_dumpf(event, out, JSON_COMPACT); /* ferror(out) tells at the end */
        (void)fputc('\n', out);
        (void)fflush(out);
        return;
    }
    char at[WHEN_TEXT_MAX];
    struct when w = cli_when(cli, true);
    char *change = change_of(event), *text = eventline_text_of(event);
    struct buf line = BUF_INIT(1 << 14), clean = BUF_INIT(1 << 15);
    (void)buf_addf(&line, "%s  %s  %s%s%s%s%s", when_point(&w, when_get(event, "at"), at),
                   object_of(event), member_str(event, "kind"), *change ? "  " : "", change,
                   *text ? "  " : "", text);
    text_clean(&clean, buf_str(&line)); /* a longer one is cut */
    (void)fprintf(out, "%s\n", buf_str(&clean));
    (void)fflush(out);
    buf_release(&line);
    buf_release(&clean);
    free(change);
    free(text);
}

static int eventline_on_event(const struct sse_event *e, void *arg)
{
    struct feed *f = arg;
    _cleanup_(json_unrefp) json_t *event = NULL;
    if (json_parse(e->data, e->data_len, SSE_EVENT_MAX, &event, NULL) < 0)
        return message_refuse(&f->err, ERR_INTERNAL, "cli_events_broken", MESSAGE_NO_ARGS);
    client_say(f->cli->client, event);
    int64_t seq = json_get_int(event, "seq", 0);
    if (seq <= f->seq)
        return 0;
    f->seq = seq;
    print_event(f->cli, f->output, event);
    f->has_ended |= f->one_job && jobview_is_terminal(json_get_str(event, "to", ""));
    return 0;
}

static int eventline_on_bytes(const char *p, size_t n, void *arg)
{
    struct feed *f = arg;
    return sse_feed(&f->sse, p, n, &f->err);
}

/* One connection to its end: 0 = connect again. */
static int listen_once(struct feed *f, const char *path, bool *ret_was_open, struct err *err)
{
    char id[32];
    struct buf whole = BUF_INIT(1 << 14);
    text_printf(id, "%" PRId64, f->seq > 0 ? f->seq : 0);
    (void)buf_adds(&whole, path); /* too long shows below */
    url_query(&whole, "follow", "1");
    url_query(&whole, "since", id);
    bool is_long = whole.failed;
    _cleanup_(freep) char *text = buf_take(&whole);
    if (is_long)
        return message_refuse(err, ERR_USAGE, "cli_filters_long", MESSAGE_NO_ARGS);
    struct request request = {
        .path = text, .accept = "text/event-stream", .last_event_id = f->seq > 0 ? id : NULL};
    sse_restart(&f->sse);
    _cleanup_(transfer_freep) struct transfer *t =
        transfer_start(f->cli->client, &request, eventline_on_bytes, f);
    while (!transfer_is_done(t) && !f->has_ended) {
        int r = client_turn(f->cli->client, 1000);
        if (r < 0)
            return message_refuse(err, r, "cli_interrupted", MESSAGE_NO_ARGS);
    }
    if (f->has_ended)
        return 0;
    int r = transfer_result(t, err);
    if (f->err.code)
        return err_copy(err, f->err.code, &f->err);
    int status = transfer_response(t)->status;
    *ret_was_open = status == 200;
    return r < 0 ? r : response_error(transfer_response(t), err);
}

int eventline_print(struct cli *cli, const char *path, int64_t most, struct err *err)
{
    int64_t seq = 0;
    size_t n = 0;
    do {
        _cleanup_(json_unrefp) json_t *page = NULL;
        _cleanup_(freep) char *whole =
            most ? xasprintf("%s?newest_first=1&limit=%" PRId64, path, most)
                 : xasprintf("%s?since=%" PRId64 "&limit=%d", path, seq, EVENTLINE_MOST);
        int r = client_get(cli->client, whole, &page, err);
        if (r < 0)
            return r;
        const json_t *events = json_get_array(page, "events");
        n = json_array_size(events);
        for (size_t i = 0; i < n; i++) {
            const json_t *e = json_array_get(events, most ? n - 1 - i : i);
            print_event(cli, OUTPUT_TABLE, e);
            seq = json_get_int(e, "seq", seq);
        }
    } while (n && !most);
    return 0;
}

int eventline_follow(struct cli *cli,
                     const char *path,
                     int64_t seq,
                     bool one_job,
                     int output,
                     struct err *err)
{
    struct feed f = {.cli = cli, .output = output, .one_job = one_job, .seq = seq};
    bool was_ever_open = false, was_told = false;
    int r = cli_catch_interrupt(cli, err);
    sse_init(&f.sse, eventline_on_event, &f);
    while (r >= 0 && !f.has_ended) {
        bool was_open = false;
        r = listen_once(&f, path, &was_open, err);
        was_ever_open |= was_open;
        bool is_away = r == ERR_UNREACHABLE || r == ERR_UNAVAILABLE;
        if (is_away && was_ever_open) {
            _cleanup_(freep) char *said = err ? cli_err_text(cli, err) : xstrdup("");
            if (was_open || !was_told)
                cli_say(cli, "say_lost", said, "", "");
            was_told = true;
            r = 0;
        }
        if (r >= 0 && !f.has_ended)
            r = client_pause(cli->client, 1000);
    }
    sse_release(&f.sse);
    return r == -EINTR ? 0 : r;
}

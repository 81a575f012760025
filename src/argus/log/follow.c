/* SPDX-License-Identifier: Apache-2.0 */
/* follow.c - two transfers side by side: the log as server-sent events, and the
 * job itself by long-poll, for what is said while the log is silent. See follow.h. */
#include "argus/log/follow.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "argus/job/jobview.h"
#include "argus/log/logread.h"
#include "argus/net/sse.h"
#include "argus/net/watch.h"
#include "argus/show/member.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

#define TELL_WAITING (25 * USEC_SEC)
#define TELL_RUNNING (55 * USEC_SEC)

struct follow {
    struct cli *cli;
    const char *id;
    const struct follow_opts *opts;
    uint64_t offset; /* of the next byte to print, in the log of this attempt */
    int64_t attempt; /* 0: none was said yet */
    char event_id[64];
    struct sse sse;
    struct logout *logout;
    struct transfer *log;
    struct watch *watch;
    json_t *job;        /* as last seen */
    char *told;         /* the progress line last told */
    usec_t quiet_since; /* mono: nothing was printed since */
    usec_t connect_at;  /* mono */
    int failures;       /* connections in a row that brought nothing */
    bool has_ended;
    struct err err; /* of the stream's own making */
};

/* ---- what comes in ---- */

static int bad_event(struct follow *f, const char *what)
{
    return message_refuse(&f->err, ERR_INTERNAL, "cli_log_broken",
                          MESSAGE_ARGS(MESSAGE_STR("id", f->id), MESSAGE_STR("why", what)));
}

/* Nothing was printed yet, and where to begin is the server's to find. */
static bool begins_at_time(const struct follow *f)
{
    return f->opts->since && !f->offset && !f->event_id[0];
}

static int follow_on_log(struct follow *f, const json_t *data)
{
    const char *b64 = json_get_str(data, "b64", NULL);
    int64_t start = json_get_int(data, "offset", -1);
    if (!b64 || start < 0)
        return bad_event(f, "an event without offset or bytes");
    size_t len = strlen(b64), n = 0;
    _cleanup_(freep) char *bytes = xmalloc(len / 4 * 3 + 1);
    if (sodium_base642bin((unsigned char *)bytes, len / 4 * 3 + 1, b64, len, NULL, &n, NULL,
                          sodium_base64_VARIANT_ORIGINAL) != 0)
        return bad_event(f, "its bytes are not valid base64");
    uint64_t at = (uint64_t)start;
    int64_t attempt = json_get_int(data, "attempt", f->attempt);
    if (f->attempt && attempt != f->attempt) {
        cli_talk(f->cli, "attempt %" PRId64 " begins", attempt);
        f->offset = 0;
    }
    f->attempt = attempt;
    if (at > f->offset && !begins_at_time(f))
        logread_tell_gap(f->cli, f->offset, at);
    size_t seen = at < f->offset ? (size_t)(f->offset - at) : 0;
    if (seen < n) {
        logout_add(f->logout, bytes + seen, n - seen);
        (void)fflush(f->cli->out); /* ferror(out) tells at the end */
        f->quiet_since = clock_mono();
        f->offset = at + n;
    }
    if (f->failures > 1)
        cli_say(f->cli, "say_back", "", "", "");
    f->failures = 0;
    return 0;
}

/* The file is another one now, or was cut: what comes is printed from there on. */
static void follow_on_replaced(struct follow *f, const json_t *data)
{
    int64_t offset = json_get_int(data, "offset", 0), lost = json_get_int(data, "lost", 0);
    f->offset = offset > 0 ? (uint64_t)offset : 0;
    if (lost > 0)
        cli_talk(f->cli,
                 "the log was replaced, %" PRId64
                 " bytes of it are lost: it goes on at byte %" PRIu64,
                 lost, f->offset);
    else
        cli_talk(f->cli, "the log was replaced: it goes on at byte %" PRIu64, f->offset);
}

static int follow_on_event(const struct sse_event *event, void *arg)
{
    struct follow *f = arg;
    _cleanup_(json_unrefp) json_t *data = NULL;
    if (f->has_ended)
        return 0;
    if (str_eq(event->name, "end")) {
        f->has_ended = true;
        return 0;
    }
    bool replaced = str_eq(event->name, "replaced");
    if (!replaced && !str_eq(event->name, "log"))
        return 0; /* of a newer server */
    if (json_parse(event->data, event->data_len, SSE_EVENT_MAX, &data, NULL) < 0)
        return bad_event(f, "an event is not valid JSON");
    int r = 0;
    if (replaced)
        follow_on_replaced(f, data);
    else
        r = follow_on_log(f, data);
    if (r >= 0)
        text_copy(f->event_id, event->id);
    return r;
}

static int follow_on_bytes(const char *p, size_t n, void *arg)
{
    struct follow *f = arg;
    return sse_feed(&f->sse, p, n, &f->err);
}

/* ---- what is said ---- */

static void follow_tell(struct follow *f, const char *line)
{
    if (f->logout->is_tty && f->logout->in_line)
        (void)fputc('\n', stderr);
    f->logout->in_line = false;
    cli_talk(f->cli, "%s", line);
    f->quiet_since = clock_mono();
}

/* State, reason and position when they change, and again when all was silent for long. */
static void tell_progress(struct follow *f)
{
    const char *state = member_str(f->job, "state");
    if (!f->job || jobview_is_terminal(state))
        return;
    usec_t quiet = clock_mono() - f->quiet_since;
    char *line = jobview_progress(f->job);
    if (!str_eq(line, f->told)) {
        follow_tell(f, line);
        set_str(&f->told, line);
    } else if (quiet >= (str_eq(state, "RUNNING") ? TELL_RUNNING : TELL_WAITING)) {
        char lasted[WHEN_TEXT_MAX];
        struct when w = cli_when(f->cli, false);
        usec_t since = when_get(f->job, "started_at");
        when_lasted(&w, since ? since : when_get(f->job, "queued_at"), 0, lasted);
        char *again = xasprintf("%s (for %s)", line, lasted);
        follow_tell(f, again);
        free(again);
    }
    free(line);
}

/* ---- the two transfers ---- */

static void connect_log(struct follow *f)
{
    char *path = cli_job_path(f->id, "/logs");
    _cleanup_(buf_release) struct buf whole = BUF_INIT(16 << 10);
    (void)buf_addf(&whole, "%s?follow=1&offset=%" PRIu64 "%s", path, f->offset, f->opts->query);
    if (begins_at_time(f))
        url_query(&whole, "since", f->opts->since); /* too long a path is refused by the server */
    struct request request = {.path = buf_str(&whole),
                              .accept = "text/event-stream",
                              .last_event_id = f->event_id[0] ? f->event_id : NULL};
    sse_restart(&f->sse);
    f->log = transfer_start(f->cli->client, &request, follow_on_bytes, f);
    free(path);
}

/* The stream ended: by its `end`, by a refusal, or it broke and is opened again. */
static int harvest_log(struct follow *f, struct err *err)
{
    static const usec_t pauses[] = {USEC_SEC / 5, USEC_SEC, 2 * USEC_SEC, 5 * USEC_SEC};
    struct response *response = transfer_response(f->log);
    struct err e = {0};
    int r = transfer_result(f->log, &e);
    if (f->err.code)
        return err_copy(err, f->err.code, &f->err);
    if (r == 0 && response->status >= 400) {
        r = response_error(response, &e);
        if (response->status < 500 && response->status != 429)
            return err_copy(err, r, &e);
    }
    _cleanup_(freep) char *said = r < 0 && f->failures == 1 ? cli_err_text(f->cli, &e) : NULL;
    if (said)
        cli_say(f->cli, "say_lost", said, "", "");
    f->connect_at = clock_mono() + pauses[f->failures < 3 ? f->failures : 3];
    f->failures++;
    transfer_free(f->log);
    f->log = NULL;
    return 0;
}

static int follow_step(struct follow *f, struct err *err)
{
    json_t *job = NULL;
    if (!f->log && clock_mono() >= f->connect_at)
        connect_log(f);
    int r = client_turn(f->cli->client, 500);
    if (r < 0)
        return message_refuse(err, r, "cli_interrupted", MESSAGE_NO_ARGS);
    if (f->log && transfer_is_done(f->log) && !f->has_ended) {
        r = harvest_log(f, err);
        if (r < 0)
            return r;
    }
    r = watch_step(f->watch, &job, err);
    if (r < 0)
        return r;
    if (job) {
        json_decref(f->job);
        f->job = job;
    }
    tell_progress(f);
    return 0;
}

/* The job as it is at its end: the stream may end before the long-poll has told. -EAGAIN: it
 * has not ended, go on. */
static int follow_finish(struct follow *f, struct err *err)
{
    _cleanup_(json_unrefp) json_t *job = NULL;
    int r = cli_get_followed(f->cli, f->id, &job, err);
    if (r < 0)
        return r;
    if (!jobview_is_terminal(member_str(job, "state"))) {
        transfer_free(f->log);
        f->log = NULL;
        f->has_ended = false;
        f->connect_at = clock_mono() + USEC_SEC;
        return -EAGAIN;
    }
    logout_end(f->logout);
    struct when w = cli_when(f->cli, false);
    char *line = jobview_last_line(job, &w);
    follow_tell(f, line);
    free(line);
    return jobview_exit_status(job);
}

int follow_run(struct cli *cli, const char *id, const struct follow_opts *opts, struct err *err)
{
    struct follow f = {.cli = cli,
                       .id = id,
                       .opts = opts,
                       .offset = opts->offset,
                       .attempt = opts->attempt,
                       .logout = opts->logout,
                       .quiet_since = clock_mono()};
    char *path = cli_job_path(id, "");
    if (opts->attempt)
        text_printf(f.event_id, "%" PRId64 ":%" PRIu64, opts->attempt, opts->offset);
    sse_init(&f.sse, follow_on_event, &f);
    int r = cli_catch_interrupt(cli, err);
    f.watch = watch_new(cli->client, path);
    do {
        r = r == -EAGAIN ? 0 : r;
        while (r >= 0 && !f.has_ended)
            r = follow_step(&f, err);
        if (r >= 0)
            r = follow_finish(&f, err);
    } while (r == -EAGAIN);
    if (r == -EINTR) {
        if (f.logout->is_tty)
            (void)fputc('\n', stderr); /* below the terminal's own ^C */
        cli_say(cli, "say_detached", id, id, id);
        r = 0;
    }
    free(path);
    transfer_free(f.log);
    watch_free(f.watch);
    json_decref(f.job);
    free(f.told);
    sse_release(&f.sse);
    return r;
}

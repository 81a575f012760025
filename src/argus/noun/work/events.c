/* SPDX-License-Identifier: Apache-2.0 */
/* events.c - what happened, to one job or to everything. */
#include "argus/noun/noun.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "argus/job/eventline.h"
#include "argus/show/member.h"
#include "argus/transfer/download.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum { EVENTS_PAGE = 1000 };

struct events_opts {
    bool follow, utc, verify, csv, force;
    const char *expect, *kind, *actor, *object, *from, *to, *export;
    int output;
    int64_t since, limit;
};

static const struct opt EVENTS_OPTS[] = {
    {.letter = 'f',
     .name = "follow",
     .type = OPT_FLAG,
     .offset = offsetof(struct events_opts, follow),
     .doc = "print new ones as they come; with ID alone until that job has ended"},
    {.name = "since",
     .type = OPT_NUMBER,
     .offset = offsetof(struct events_opts, since),
     .arg = "SEQ",
     .doc = "show only events after this number"},
    {.name = "limit",
     .type = OPT_NUMBER,
     .offset = offsetof(struct events_opts, limit),
     .arg = "N",
     .doc = "show at most N (200): the newest ones, or with --since or more than 1000 the oldest"},
    {.name = "kind",
     .type = OPT_TEXT,
     .offset = offsetof(struct events_opts, kind),
     .arg = "KINDS",
     .doc = "show only events of these kinds, with commas between them: hung,went_on"},
    {.name = "actor",
     .type = OPT_TEXT,
     .offset = offsetof(struct events_opts, actor),
     .arg = "USER",
     .doc = "show only what this user did, or argusd"},
    {.name = "object",
     .type = OPT_TEXT,
     .offset = offsetof(struct events_opts, object),
     .arg = "WHAT",
     .doc = "show only events about this thing: node/w1, job/ID; node for all nodes"},
    {.name = "from",
     .type = OPT_TEXT,
     .offset = offsetof(struct events_opts, from),
     .arg = "TIME",
     .doc =
         "show only events from this time on: 2026-11-21T10:00:00Z, or 2h, which is so long ago"},
    {.name = "to",
     .type = OPT_TEXT,
     .offset = offsetof(struct events_opts, to),
     .arg = "TIME",
     .doc = "show only events before this time"},
    {.name = "verify",
     .type = OPT_FLAG,
     .offset = offsetof(struct events_opts, verify),
     .doc = "check that no event was changed, removed or added; exit status 1 if one was"},
    {.name = "expect",
     .type = OPT_TEXT,
     .offset = offsetof(struct events_opts, expect),
     .arg = "HASH",
     .doc = "with --verify: a head that was printed before must still be there"},
    {.name = "export",
     .type = OPT_TEXT,
     .offset = offsetof(struct events_opts, export),
     .arg = "FILE",
     .doc = "write all events that match into this file, each as JSON on one line, oldest first; "
            "- is standard output"},
    {.name = "csv",
     .type = OPT_FLAG,
     .offset = offsetof(struct events_opts, csv),
     .doc = "with --export: as CSV"},
    {.name = "force",
     .type = OPT_FLAG,
     .offset = offsetof(struct events_opts, force),
     .doc = "with --export: replace a file that is there"},
    OPT_OUTPUT(struct events_opts),
    OPT_UTC(struct events_opts),
};

/* One page of path, which may have a query already. */
static int events_get_page(struct cli *cli,
                           const char *path,
                           const char *key,
                           int64_t value,
                           size_t limit,
                           json_t **ret,
                           struct err *err)
{
    char text[32], most[32];
    _cleanup_(buf_release) struct buf whole = BUF_INIT(1 << 14);
    text_printf(text, "%" PRId64, value);
    text_printf(most, "%zu", limit);
    (void)buf_adds(&whole, path); /* too long shows below */
    url_query(&whole, key, text);
    url_query(&whole, "limit", most);
    if (whole.failed)
        return message_refuse(err, ERR_USAGE, "cli_filters_long", MESSAGE_NO_ARGS);
    return client_get(cli->client, buf_str(&whole), ret, err);
}

/* The newest `limit` events, oldest first. */
static int events_newest(struct cli *cli,
                         const char *path,
                         size_t limit,
                         json_t *all,
                         struct err *err)
{
    _cleanup_(json_unrefp) json_t *page = NULL;
    int r = events_get_page(cli, path, "newest_first", 1, limit, &page, err);
    const json_t *events = json_get_array(page, "events");
    for (size_t i = json_array_size(events); i > 0; i--)
        (void)json_array_append(all, json_array_get(events, i - 1)); /* fails for lack of memory */
    return r;
}

/* Up to `limit` events after since, page by page. */
static int events_after(struct cli *cli,
                        const char *path,
                        int64_t since,
                        size_t limit,
                        json_t *all,
                        struct err *err)
{
    while (json_array_size(all) < limit) {
        _cleanup_(json_unrefp) json_t *page = NULL;
        size_t left = limit - json_array_size(all);
        int r = events_get_page(cli, path, "since", since, left < EVENTS_PAGE ? left : EVENTS_PAGE,
                                &page, err);
        if (r < 0)
            return r;
        size_t i;
        json_t *e;
        int64_t last = since;
        json_array_foreach (json_get_array(page, "events"), i, e) {
            (void)json_array_append(all, e); /* fails only for lack of memory */
            last = json_get_int(e, "seq", last);
        }
        if (!i || last <= since)
            return 0;
        since = last;
    }
    return 0;
}

static int events_list(struct cli *cli,
                       const char *path,
                       bool one_job,
                       const struct events_opts *o,
                       struct err *err)
{
    _cleanup_(json_unrefp) json_t *all = json_array();
    size_t limit = o->limit ? (size_t)o->limit : 200;
    int r = o->since || limit > EVENTS_PAGE ? events_after(cli, path, o->since, limit, all, err)
                                            : events_newest(cli, path, limit, all, err);
    if (r < 0)
        return r;
    if (o->output >= OUTPUT_JSON) {
        json_t *answer = json_pack("{s:O}", "events", all);
        cli_emit(cli, answer, o->output);
        json_decref(answer);
        return 0;
    }
    struct when w = cli_when(cli, o->utc);
    eventline_table(cli, all, &w, one_job, o->output == OUTPUT_WIDE);
    return 0;
}

/* path with what is asked for. NULL: too long. Yours. */
static char *events_filtered(const char *path, const struct events_opts *o)
{
    struct buf whole = BUF_INIT(1 << 13);
    (void)buf_adds(&whole, path); /* too long shows below */
    url_query(&whole, "kind", o->kind);
    url_query(&whole, "actor", o->actor);
    url_query(&whole, "object", o->object);
    url_query(&whole, "from", o->from);
    url_query(&whole, "to", o->to);
    return buf_take_whole(&whole);
}

/* Has anybody changed what happened? The server walks the chain; here its answer becomes words and
 * an exit status. expect: a hash noted before, NULL = none. */
static int events_verify(struct cli *cli, const char *expect, int output, struct err *err)
{
    _cleanup_(buf_release) struct buf path = BUF_INIT(4096);
    _cleanup_(json_unrefp) json_t *answer = NULL;
    (void)buf_adds(&path, "/v1/events:verify"); /* too long a hash is refused by the server */
    url_query(&path, "expect", expect);
    int r = client_get(cli->client, buf_str(&path), &answer, err);
    if (r < 0)
        return r;
    const json_t *head = json_get_object(answer, "head"),
                 *reason = json_get_object(answer, "reason");
    bool ok = json_get_bool(answer, "ok", false);
    if (output >= OUTPUT_JSON)
        cli_emit(cli, answer, output);
    else
        (void)fprintf(cli->out,
                      "%s: %" PRId64 " events, the last right one is %" PRId64 "\nhead %s\n",
                      ok ? "whole" : "BROKEN", json_get_int(answer, "count", 0),
                      json_get_int(head, "seq", 0), member_str(head, "hash"));
    if (!ok)
        return message_refuse(
            err, ERR_INTERNAL, "cli_events_changed",
            MESSAGE_ARGS(MESSAGE_STR("why", json_get_str(reason, "text", "no reason given"))));
    if (output < OUTPUT_JSON)
        cli_talk(cli,
                 "keep the head: 'argus events --verify --expect HASH' later also finds what was "
                 "cut off at the end");
    return 0;
}

/* All events that match, as a file, whatever their number. job: an id, NULL = of everything. */
static int events_export(struct cli *cli,
                         const char *job,
                         const struct events_opts *o,
                         struct err *err)
{
    _cleanup_(buf_release) struct buf base = BUF_INIT(4096);
    (void)buf_adds(&base, "/v1/events:export"); /* this and an id fit */
    url_query(&base, "format", o->csv ? "csv" : NULL);
    url_query(&base, "job", job);
    _cleanup_(freep) char *path = events_filtered(buf_str(&base), o);
    if (!path)
        return message_refuse(err, ERR_USAGE, "cli_filters_long", MESSAGE_NO_ARGS);
    const struct download_ask ask = {.path = path,
                                     .accept =
                                         "application/x-ndjson, text/csv, application/problem+json",
                                     .to = o->export,
                                     .replace = o->force};
    bool is_file = !str_eq(o->export, "-"); /* a pipe that nobody reads must not hold a Ctrl-C up */
    int r = is_file ? cli_catch_interrupt(cli, err) : 0;
    if (r == 0)
        r = download_file(cli, &ask, err);
    if (r == 0 && is_file)
        cli_say(cli, "say_events_exported", o->export, "", "");
    return r;
}

/* Which options go together. */
static int events_check_opts(const struct events_opts *o, struct err *err)
{
    if (o->expect && !o->verify)
        return message_refuse(err, ERR_USAGE, "cli_expect_verify", MESSAGE_NO_ARGS);
    if (!o->export)
        return o->csv || o->force
                   ? message_refuse(err, ERR_USAGE, "cli_export_options", MESSAGE_NO_ARGS)
                   : 0;
    if (!*o->export || str_ends(o->export, "/"))
        return message_refuse(err, ERR_USAGE, "cli_export_name", MESSAGE_NO_ARGS);
    if (o->follow || o->verify || o->since || o->limit || o->output)
        return message_refuse(err, ERR_USAGE, "cli_export_alone", MESSAGE_NO_ARGS);
    return 0;
}

/* The end of a job is in its whole story alone. */
static bool events_is_whole_story(const struct events_opts *o)
{
    return !o->kind && !o->actor && !o->object && !o->from && !o->to;
}

static int events_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct events_opts *o = opts;
    _cleanup_(freep) char *path = xstrdup("/v1/events");
    _cleanup_(freep) char *job_id = NULL;
    int r = events_check_opts(o, err);
    if (r >= 0)
        r = cli_open(cli, err);
    if (r >= 0 && o->verify)
        return events_verify(cli, o->expect, o->output, err);
    if (r >= 0 && args->n) {
        _cleanup_(json_unrefp) json_t *job = NULL;
        r = cli_get_job(cli, args->v[0], &job, err);
        job_id = xstrdup(json_get_str(job, "id", args->v[0]));
        free(path);
        path = cli_job_path(job_id, "/events");
    }
    if (r < 0)
        return r;
    if (o->export)
        return events_export(cli, job_id, o, err);
    _cleanup_(freep) char *whole = events_filtered(path, o);
    if (!whole)
        return message_refuse(err, ERR_USAGE, "cli_filters_long", MESSAGE_NO_ARGS);
    if (o->follow)
        return eventline_follow(cli, whole, o->since, args->n > 0 && events_is_whole_story(o),
                                o->output, err);
    return events_list(cli, whole, args->n > 0, o, err);
}

static const struct command EVENTS_COMMANDS[] = {
    {
        .name = "events",
        .args = "[ID]",
        .most = 1,
        .summary = "show what happened",
        .text = "Every change of a job, request and finding is an event with a number. Without an "
                "ID it shows the events of everything that you may see. With --follow the stream "
                "is made again when it breaks, and with -o json each event is JSON on one line. "
                "With --export the file gets its name once it is whole.",
        .example = "argus events grpo-7\tthe story of one job\n"
                   "argus events -f -o json\tfeed another program\n"
                   "argus events --from 30d --export events.csv --csv\tall of a month as a file",
        .opts = EVENTS_OPTS,
        .n_opts = array_len(EVENTS_OPTS),
        .opts_size = sizeof(struct events_opts),
        .run = events_run,
    },
};

NOUN(events, EVENTS_COMMANDS);

/* SPDX-License-Identifier: Apache-2.0 */
/* events.c - what happened, to one job or to everything. */
#include "argus/cmd/cmd.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "argus/eventline.h"
#include "argus/verify.h"

enum { PAGE = 1000 };

struct events_opts {
    bool follow, utc, verify;
    const char *expect, *kind, *actor, *object;
    int output;
    int64_t since, limit;
};

static const struct opt OPTS[] = {
    {.letter = 'f',
     .name = "follow",
     .type = OPT_FLAG,
     .offset = offsetof(struct events_opts, follow),
     .doc = "print new ones as they come; with ID alone until that job has ended"},
    {.name = "since",
     .type = OPT_NUMBER,
     .offset = offsetof(struct events_opts, since),
     .arg = "SEQ",
     .doc = "only events after this number"},
    {.name = "limit",
     .type = OPT_NUMBER,
     .offset = offsetof(struct events_opts, limit),
     .arg = "N",
     .doc = "at most N (200): the newest ones, or with --since or more than 1000 the oldest"},
    {.name = "kind",
     .type = OPT_TEXT,
     .offset = offsetof(struct events_opts, kind),
     .arg = "KINDS",
     .doc = "only of these kinds, comma-separated: hung,went_on"},
    {.name = "actor",
     .type = OPT_TEXT,
     .offset = offsetof(struct events_opts, actor),
     .arg = "USER",
     .doc = "only what this user did, or argusd"},
    {.name = "object",
     .type = OPT_TEXT,
     .offset = offsetof(struct events_opts, object),
     .arg = "WHAT",
     .doc = "only about this: node/w1, job/ID; node for all nodes"},
    {.name = "verify",
     .type = OPT_FLAG,
     .offset = offsetof(struct events_opts, verify),
     .doc = "check that no event was changed, removed or added; exit status 1 if one was"},
    {.name = "expect",
     .type = OPT_TEXT,
     .offset = offsetof(struct events_opts, expect),
     .arg = "HASH",
     .doc = "with --verify: a head that was printed before must still be there"},
    OPT_OUTPUT(struct events_opts),
    OPT_UTC(struct events_opts),
};

/* One page of path, which may have a query already. */
static int get_page(struct cli *cli,
                    const char *path,
                    const char *key,
                    int64_t value,
                    size_t limit,
                    json_t **ret,
                    struct err *err)
{
    char text[32], most[32];
    _cleanup_(buf_release) struct buf whole = BUF_INIT(1 << 14);
    (void)snprintf(text, sizeof(text), "%" PRId64, value); /* these fit */
    (void)snprintf(most, sizeof(most), "%zu", limit);
    (void)buf_adds(&whole, path); /* too long shows below */
    url_query(&whole, key, text);
    url_query(&whole, "limit", most);
    if (whole.failed)
        return err_set(err, ERR_USAGE, "the filters are too long");
    return client_get(cli->client, buf_str(&whole), ret, err);
}

/* The newest `limit` events, oldest first. */
static int newest(struct cli *cli, const char *path, size_t limit, json_t *all, struct err *err)
{
    _cleanup_(json_unrefp) json_t *page = NULL;
    int r = get_page(cli, path, "newest_first", 1, limit, &page, err);
    const json_t *events = json_get_array(page, "events");
    for (size_t i = json_array_size(events); i > 0; i--)
        (void)json_array_append(all, json_array_get(events, i - 1)); /* fails for lack of memory */
    return r;
}

/* Up to `limit` events after since, page by page. */
static int after(struct cli *cli,
                 const char *path,
                 int64_t since,
                 size_t limit,
                 json_t *all,
                 struct err *err)
{
    while (json_array_size(all) < limit) {
        _cleanup_(json_unrefp) json_t *page = NULL;
        size_t left = limit - json_array_size(all);
        int r = get_page(cli, path, "since", since, left < PAGE ? left : PAGE, &page, err);
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

static int list(struct cli *cli,
                const char *path,
                bool one_job,
                const struct events_opts *o,
                struct err *err)
{
    _cleanup_(json_unrefp) json_t *all = json_array();
    size_t limit = o->limit ? (size_t)o->limit : 200;
    int r = o->since || limit > PAGE ? after(cli, path, o->since, limit, all, err)
                                     : newest(cli, path, limit, all, err);
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
static char *filtered(const char *path, const struct events_opts *o)
{
    struct buf whole = BUF_INIT(1 << 13);
    (void)buf_adds(&whole, path); /* too long shows below */
    url_query(&whole, "kind", o->kind);
    url_query(&whole, "actor", o->actor);
    url_query(&whole, "object", o->object);
    if (!whole.failed)
        return buf_take(&whole);
    buf_release(&whole);
    return NULL;
}

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct events_opts *o = opts;
    _cleanup_(freep) char *path = xstrdup("/v1/events");
    if (o->expect && !o->verify)
        return err_set(err, ERR_USAGE, "--expect goes with --verify");
    int r = cli_open(cli, err);
    if (r >= 0 && o->verify)
        return verify_events(cli, o->expect, o->output, err);
    if (r >= 0 && args->n) {
        _cleanup_(json_unrefp) json_t *job = NULL;
        r = cli_get_job(cli, args->v[0], &job, err);
        free(path);
        path = cli_job_path(json_get_str(job, "id", args->v[0]), "/events");
    }
    if (r < 0)
        return r;
    _cleanup_(freep) char *whole = filtered(path, o);
    if (!whole)
        return err_set(err, ERR_USAGE, "the filters are too long");
    bool whole_story = !o->kind && !o->actor && !o->object; /* its end is in it */
    if (o->follow)
        return eventline_follow(cli, whole, o->since, args->n > 0 && whole_story, o->output, err);
    return list(cli, whole, args->n > 0, o, err);
}

const struct command cmd_events = {
    .name = "events",
    .args = "[ID]",
    .most = 1,
    .summary = "show what happened",
    .text =
        "Every change of a job, request and finding is an event with a number. Without ID shows "
        "those of everything. With --follow the stream is made again when it breaks, and "
        "with -o json each event is JSON on one line.",
    .example = "argus events grpo-7\tthe story of one job\n"
               "argus events -f -o json\tfeed another program",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct events_opts),
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* archive.c - finished jobs put away in one file each, and brought back; one job or all that ended
 * long ago. */
#include "argus/noun/noun.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argus/job/jobchange.h"
#include "argus/job/jobview.h"
#include "argus/show/member.h"
#include "base/clock.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum { LOOK_MS = 500, BUSY_MS = 1000, PAGES_MAX = 1000 };

struct archive_opts {
    usec_t older;
    bool wait, no_checkpoints;
};

#define ARCHIVE_ROW(type_, member) .type = (type_), .offset = offsetof(struct archive_opts, member)

static const struct opt ARCHIVE_OPTS[] = {
    {.name = "older",
     ARCHIVE_ROW(OPT_SPAN, older),
     .arg = "SPAN",
     .doc = "your jobs that ended longer ago than 90d, 12h …, in place of ID"},
    {.name = "no-checkpoints",
     ARCHIVE_ROW(OPT_FLAG, no_checkpoints),
     .doc = "leave the checkpoints out: they are removed for good"},
    {.name = "wait", ARCHIVE_ROW(OPT_FLAG, wait), .doc = "wait until the archive is done"},
};
static const struct opt UNARCHIVE_OPTS[] = {
    {.name = "wait", ARCHIVE_ROW(OPT_FLAG, wait), .doc = "until it is done"},
};

/* ---- all that ended before ---- */

static void archive_add_page(const json_t *page, usec_t before, struct strv *ids)
{
    size_t i;
    json_t *job;
    json_array_foreach (json_get_array(page, "jobs"), i, job) {
        usec_t ended = 0;
        const char *at = json_get_str(job, "ended_at", NULL);
        if (at && jobview_is_terminal(member_str(job, "state")) &&
            clock_from_string(at, &ended, NULL) == 0 && ended < before)
            strv_add(ids, member_str(job, "id"));
    }
}

static int archive_find_older(struct cli *cli, usec_t older, struct strv *ids, struct err *err)
{
    char cursor[64] = "";
    usec_t now = clock_wall(), before = now > older ? now - older : 1;
    for (int page = 0; page < PAGES_MAX; page++) {
        _cleanup_(json_unrefp) json_t *answer = NULL;
        _cleanup_(freep) char *path =
            xasprintf("/v1/jobs?limit=200&all=false&state=SUCCEEDED,FAILED,STOPPED,TIMEOUT%s%s",
                      *cursor ? "&cursor=" : "", cursor);
        int r = client_get(cli->client, path, &answer, err);
        if (r < 0)
            return r;
        archive_add_page(answer, before, ids);
        text_copy(cursor, json_get_str(answer, "next_cursor", ""));
        if (!*cursor)
            break;
    }
    return 0;
}

/* The places where jobs wait are bounded: where they are taken, the next job is asked for until one
 * is free again. */
static int archive_send(struct cli *cli, const char *id, const void *ctx, struct err *err)
{
    for (;;) {
        struct err e = {0};
        int r = jobchange_one(cli, id, ctx, &e);
        if (r != ERR_BUSY)
            return r < 0 ? err_copy(err, r, &e) : r;
        if (client_pause(cli->client, BUSY_MS) < 0)
            return message_refuse(err, -EINTR, "cli_interrupted", MESSAGE_NO_ARGS);
    }
}

/* ---- the end ---- */

/* 1: it is done; 0: not yet. */
static int archive_look(struct cli *cli, const char *id, bool back, struct err *err)
{
    _cleanup_(json_unrefp) json_t *job = NULL;
    _cleanup_(freep) char *path = ask_path("/v1/jobs/{}", id);
    int r = client_get(cli->client, path, &job, err);
    if (r < 0)
        return r;
    const json_t *x = json_get_object(job, "archived");
    const char *state = json_get_str(x, "state", ""), *why = json_get_str(x, "problem", NULL);
    bool is_over = back ? !x || !strcmp(state, "archived") : !x || !strcmp(state, "failed");
    if (why && is_over)
        return message_refuse(err, ERR_REFUSED, back ? "cli_stays_archived" : "cli_not_archived",
                              MESSAGE_ARGS(MESSAGE_STR("job", id), MESSAGE_STR("why", why)));
    return back ? !x : !strcmp(state, "archived");
}

static void archive_say(struct cli *cli, const char *id, bool back)
{
    _cleanup_(json_unrefp) json_t *job = NULL;
    _cleanup_(freep) char *path = ask_path("/v1/jobs/{}", id);
    struct err err = {0};
    if (client_get(cli->client, path, &job, &err) < 0)
        return; /* it is done all the same */
    cli_say(cli, back ? "say_is_back" : "say_archived", id,
            back ? member_str(job, "output_dir")
                 : json_get_str(json_get_object(job, "archived"), "path", ""),
            "");
}

static int archive_wait(struct cli *cli, const struct strv *ids, bool back, struct err *err)
{
    for (size_t i = 0; i < ids->n; i++) {
        int r = 0;
        while (r == 0) {
            r = archive_look(cli, ids->v[i], back, err);
            if (r == 0 && client_pause(cli->client, LOOK_MS) < 0)
                return message_refuse(err, ERR_TIMEOUT, "cli_waited", MESSAGE_NO_ARGS);
        }
        if (r < 0)
            return r;
        archive_say(cli, ids->v[i], back);
    }
    return 0;
}

static int archive_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct archive_opts *o = opts;
    _cleanup_(strv_release) struct strv ids = {0};
    if (!args->n == !o->older)
        return message_refuse(err, ERR_USAGE,
                              args->n ? "cli_archive_not_both" : "cli_archive_which",
                              MESSAGE_NO_ARGS);
    strv_copy(&ids, args);
    int r = cli_open(cli, err);
    if (r >= 0 && o->older)
        r = archive_find_older(cli, o->older, &ids, err);
    const struct jobchange what = {.word = "archive",
                                   .verb = ":archive",
                                   .body = o->no_checkpoints ? "{\"checkpoints\":false}" : NULL,
                                   .done = o->wait ? NULL : "say_archiving"};
    if (r >= 0 && o->older)
        r = jobchange_each(cli, &ids, what.word, archive_send, &what, err);
    else if (r >= 0)
        r = jobchange_all(cli, &ids, &what, err);
    return r < 0 || !o->wait ? r : archive_wait(cli, &ids, false, err);
}

static int unarchive_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct archive_opts *o = opts;
    int r = cli_open(cli, err);
    const struct jobchange what = {
        .word = "unarchive", .verb = ":unarchive", .done = o->wait ? NULL : "say_unarchiving"};
    if (r >= 0)
        r = jobchange_all(cli, args, &what, err);
    return r < 0 || !o->wait ? r : archive_wait(cli, args, true, err);
}

static const struct command ARCHIVE_COMMANDS[] = {
    {
        .name = "archive",
        .args = "[ID…]",
        .most = ARGS_ANY,
        .summary = "put the directories of jobs that are over away, one file each",
        .text = "All that lies in the directory, with the checkpoints that were kept, or with "
                "--no-checkpoints without them, is packed into a tar with zstd below archive.dir "
                "of argus.yaml, read back and compared; only then the directory goes. meta.json "
                "stays, beside archived.json, which says where the rest is. Logs and curves of "
                "such a job can be read again after 'argus unarchive'. A job is not archived "
                "while another job that is not over, or the registry, names it or its files. "
                "'argus status ID' shows how far it is.",
        .example = "argus archive grpo-7\n"
                   "argus archive grpo-7 --no-checkpoints\tlogs, curves and reports alone\n"
                   "argus archive --older 90d --wait\tall of yours that ended 90 days ago",
        .opts = ARCHIVE_OPTS,
        .n_opts = array_len(ARCHIVE_OPTS),
        .opts_size = sizeof(struct archive_opts),
        .run = archive_run,
    },
    {
        .name = "unarchive",
        .args = "ID…",
        .least = 1,
        .most = ARGS_ANY,
        .summary = "bring the directories of archived jobs back, byte for byte",
        .text = "Files, modes, times, links, and holes are as they were; the owner is argusd's "
                "user. What comes out is held against the list of the day it was packed, and then "
                "the archive is removed.",
        .example = "argus unarchive grpo-7 --wait",
        .opts = UNARCHIVE_OPTS,
        .n_opts = array_len(UNARCHIVE_OPTS),
        .opts_size = sizeof(struct archive_opts),
        .run = unarchive_run,
    },
};

NOUN(archive, ARCHIVE_COMMANDS);

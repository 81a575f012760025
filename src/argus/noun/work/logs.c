/* SPDX-License-Identifier: Apache-2.0 */
/* logs.c - a job's log so far, or live: the driver's, or another. */
#include "argus/noun/noun.h"

#include <errno.h>
#include <inttypes.h>

#include "argus/job/eventline.h"
#include "argus/job/jobview.h"
#include "argus/log/follow.h"
#include "argus/log/logfiles.h"
#include "argus/log/logread.h"
#include "argus/log/mergedlog.h"
#include "argus/log/searchcall.h"
#include "argus/show/member.h"
#include "base/message.h"

struct logs_opts {
    bool follow, all;
    int source;
    int64_t tail, attempt, limit;
    const char *node, *rank, *file, *grep, *user, *project, *since;
};

enum { LOGS_DRIVER, LOGS_WORKER, LOGS_SCENE, LOGS_PLATFORM, LOGS_ALL };
static const char *const LOGS_SOURCES[] = {"driver", "worker", "scene", "platform", "all", NULL};

static const struct opt LOGS_OPTS[] = {
    {.letter = 'f',
     .name = "follow",
     .type = OPT_FLAG,
     .offset = offsetof(struct logs_opts, follow),
     .doc = "stay until the job has ended; the exit status is the job's"},
    {.name = "tail",
     .type = OPT_NUMBER,
     .offset = offsetof(struct logs_opts, tail),
     .arg = "N",
     .doc = "begin with the last N lines"},
    {.name = "attempt",
     .type = OPT_COUNT,
     .offset = offsetof(struct logs_opts, attempt),
     .arg = "K",
     .doc = "logs of attempt K; of the newest if not given"},
    {.name = "source",
     .type = OPT_CHOICE,
     .offset = offsetof(struct logs_opts, source),
     .arg = "NAME",
     .doc = "which logs: driver (the default), worker, scene, platform, or all: the driver's and "
            "the workers' as one; with --all driver, worker or all",
     .choices = LOGS_SOURCES},
    {.name = "node",
     .type = OPT_TEXT,
     .offset = offsetof(struct logs_opts, node),
     .arg = "NAME",
     .doc = "only logs of workers or the scene from this node"},
    {.name = "rank",
     .type = OPT_TEXT,
     .offset = offsetof(struct logs_opts, rank),
     .arg = "R",
     .doc = "only the log of the worker of rank R"},
    {.name = "file",
     .type = OPT_TEXT,
     .offset = offsetof(struct logs_opts, file),
     .arg = "PATTERN",
     .doc = "only logs of workers or the scene with this file name; * and ? stand for any"},
    {.name = "grep",
     .type = OPT_TEXT,
     .offset = offsetof(struct logs_opts, grep),
     .arg = "RE",
     .doc = "only lines that match this regular expression (PCRE2); the server finds them"},
    {.name = "all",
     .type = OPT_FLAG,
     .offset = offsetof(struct logs_opts, all),
     .doc = "with --grep: in the logs of all jobs that you may see, newest first"},
    {.name = "user",
     .type = OPT_TEXT,
     .offset = offsetof(struct logs_opts, user),
     .arg = "NAME",
     .doc = "with --all: only in this user's jobs"},
    {.name = "project",
     .type = OPT_TEXT,
     .offset = offsetof(struct logs_opts, project),
     .arg = "NAME",
     .doc = "with --all: only in jobs of this project"},
    {.name = "since",
     .type = OPT_TEXT,
     .offset = offsetof(struct logs_opts, since),
     .arg = "TIME",
     .doc = "only what was written since then: a time, or a span such as 10m; with "
            "--all: only in jobs submitted since then"},
    {.name = "limit",
     .type = OPT_NUMBER,
     .offset = offsetof(struct logs_opts, limit),
     .arg = "N",
     .doc = "with --all: stop after N lines"},
};

static int logs_check_source(const struct logs_opts *o, struct err *err)
{
    bool is_file = o->source == LOGS_WORKER || o->source == LOGS_SCENE;
    if (o->source == LOGS_ALL && o->tail > MERGEDLOG_TAIL_MAX)
        return message_refuse(err, ERR_USAGE, "cli_logs_all",
                              MESSAGE_ARGS(MESSAGE_NUM("most", MERGEDLOG_TAIL_MAX)));
    if ((o->node || o->rank || o->file) && !is_file)
        return message_refuse(err, ERR_USAGE, "cli_logs_worker", MESSAGE_NO_ARGS);
    if (o->source != LOGS_PLATFORM)
        return 0;
    if (o->attempt || o->grep)
        return message_refuse(err, ERR_USAGE, "cli_logs_platform", MESSAGE_NO_ARGS);
    if (o->tail && (o->follow || o->tail > EVENTLINE_MOST))
        return message_refuse(err, ERR_USAGE, "cli_logs_tail",
                              MESSAGE_ARGS(MESSAGE_NUM("most", EVENTLINE_MOST)));
    return 0;
}

static int logs_check_one(const struct logs_opts *o, const struct strv *args, struct err *err)
{
    if (!args->n)
        return message_refuse(err, ERR_USAGE, "cli_logs_needs", MESSAGE_NO_ARGS);
    if (o->user || o->project || o->limit)
        return message_refuse(err, ERR_USAGE, "cli_logs_with_all", MESSAGE_NO_ARGS);
    if (o->since && o->source)
        return message_refuse(err, ERR_USAGE, "cli_logs_since", MESSAGE_NO_ARGS);
    return logs_check_source(o, err);
}

static int logs_check_all(const struct logs_opts *o, const struct strv *args, struct err *err)
{
    if (args->n || !o->grep)
        return message_refuse(err, ERR_USAGE, "cli_logs_grep", MESSAGE_NO_ARGS);
    if (o->follow || o->tail || o->attempt || o->node || o->rank || o->file)
        return message_refuse(err, ERR_USAGE, "cli_logs_all_without", MESSAGE_NO_ARGS);
    if (o->source == LOGS_SCENE || o->source == LOGS_PLATFORM)
        return message_refuse(err, ERR_USAGE, "cli_logs_all_source", MESSAGE_NO_ARGS);
    return 0;
}

static int logs_search_all(struct cli *cli, const struct logs_opts *o, struct err *err)
{
    struct searchcall call = {.grep = o->grep,
                              .source = LOGS_SOURCES[o->source],
                              .user = o->user,
                              .project = o->project,
                              .since = o->since,
                              .most = o->limit};
    int r = cli_open(cli, err);
    return r < 0 ? r : searchcall_run(cli, &call, err);
}

/* The job's events, as lines. */
static int logs_print_platform(struct cli *cli,
                               const char *id,
                               const struct logs_opts *o,
                               struct err *err)
{
    _cleanup_(json_unrefp) json_t *job = NULL;
    _cleanup_(freep) char *path = cli_job_path(id, "/events");
    if (!o->follow)
        return eventline_print(cli, path, o->tail, err);
    int r = eventline_follow(cli, path, 0, true, OUTPUT_TABLE, err);
    if (r >= 0)
        r = cli_get_job(cli, id, &job, err);
    if (r < 0)
        return r == -EINTR ? 0 : r; /* Ctrl-C: nobody waits for its end any more */
    return jobview_is_terminal(member_str(job, "state")) ? jobview_exit_status(job) : 0;
}

static int logs_print_files(struct cli *cli,
                            const char *id,
                            const struct logs_opts *o,
                            struct err *err)
{
    struct logfiles_ask ask = {.source = LOGS_SOURCES[o->source],
                               .node = o->node,
                               .rank = o->rank,
                               .file = o->file,
                               .grep = o->grep,
                               .attempt = o->attempt,
                               .tail = o->tail,
                               .follow = o->follow};
    return logfiles_run(cli, id, &ask, err);
}

/* With neither --follow nor --tail what matches is found by the server, in all that there is. */
static int logs_print_merged(struct cli *cli,
                             const char *id,
                             const struct logs_opts *o,
                             struct err *err)
{
    const struct mergedlog_ask ask = {
        .grep = o->grep, .attempt = o->attempt, .tail = o->tail, .follow = o->follow};
    const struct searchcall call = {
        .job = id, .attempt = o->attempt, .grep = o->grep, .source = LOGS_SOURCES[o->source]};
    return o->grep && !o->follow && !o->tail ? searchcall_run(cli, &call, err)
                                             : mergedlog_run(cli, id, &ask, err);
}

/* What is printed of a log other than the driver's. */
static int logs_print_source(struct cli *cli,
                             const char *id,
                             const struct logs_opts *o,
                             struct err *err)
{
    if (o->source == LOGS_ALL)
        return logs_print_merged(cli, id, o, err);
    return o->source == LOGS_PLATFORM ? logs_print_platform(cli, id, o, err)
                                      : logs_print_files(cli, id, o, err);
}

/* The driver's log so far, unless who follows gets that as well; where he goes on. */
static int logs_print_driver(struct cli *cli,
                             const char *id,
                             const struct logs_opts *o,
                             struct logout *logout,
                             struct follow_opts *ret,
                             struct err *err)
{
    struct searchlog_end end = {0};
    int r = 0;
    if (o->grep && !o->tail) {
        struct searchlog search = {.job = id,
                                   .query = ret->query,
                                   .grep = o->grep,
                                   .since = o->since,
                                   .leave_rest = o->follow};
        r = searchcall_log(cli, &search, logout, &end, err);
        ret->since = NULL;
    } else if (!o->follow || o->tail) {
        r = logread_print(cli, id, ret->query, o->tail, o->since, logout, &end.offset, err);
    }
    ret->offset = end.offset;
    ret->attempt = end.attempt;
    return r;
}

static int logs_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct logs_opts *o = opts;
    int checked = o->all ? logs_check_all(o, args, err) : logs_check_one(o, args, err);
    if (checked < 0 || o->all)
        return checked < 0 ? checked : logs_search_all(cli, o, err);
    _cleanup_(buf_release) struct buf query = BUF_INIT(4096);
    _cleanup_(json_unrefp) json_t *job = NULL;
    _cleanup_(logout_release) struct logout logout = {0};
    if (o->attempt)
        (void)buf_addf(&query, "&attempt=%" PRId64, o->attempt);
    int r = cli_open(cli, err);
    if (r >= 0)
        r = logout_init(&logout, cli->out, cli->term.is_tty, o->grep, err);
    if (r >= 0)
        r = cli_get_job(cli, args->v[0], &job, err);
    if (r < 0)
        return r;
    const char *id = json_get_str(job, "id", args->v[0]);
    if (o->source)
        return logs_print_source(cli, id, o, err);
    struct follow_opts f = {.query = buf_str(&query), .since = o->since, .logout = &logout};
    r = logs_print_driver(cli, id, o, &logout, &f, err);
    if (r >= 0 && o->follow)
        return follow_run(cli, id, &f, err);
    logout_end(&logout);
    return r;
}

static const struct command LOGS_COMMANDS[] = {
    {
        .name = "logs",
        .args = "[ID]",
        .least = 0,
        .most = 1,
        .summary = "print a job's log",
        .text = "Prints the log so far. With --follow goes on until the job has ended, "
                "reconnects by itself without losing or doubling a byte, prints one last "
                "line to stderr and exits with the job's status. Ctrl-C detaches and never "
                "stops the job (exit status 0).\n"
                "Into a pipe the bytes are unchanged; on a terminal control sequences other "
                "than colours are made harmless.\n"
                "--since goes by when bytes were written to the shared root, in steps of "
                "some seconds, and not by times that lines say; what is not known is "
                "printed.\n"
                "--source worker prints what Ray's workers printed on every node, each below "
                "a line that names it where more than one fits; scene prints the texts that "
                "were gathered at a failure, and platform what Argus did with the job. One "
                "that fits alone can be followed; the last second of a worker may come after "
                "the job's end: print it again.\n"
                "--source all prints the newest lines of the driver and of all workers as one, "
                "each behind the rank and node that it is of, and with --follow all that come. "
                "Nobody tells when a worker wrote a line: what orders them is the time that a line "
                "begins with (2026-01-31 12:00:00,123), else the order in which they were read. "
                "What Ray repeats in the driver's log of a worker that is there itself is left "
                "out.\n"
                "--grep without --all prints the lines as they are; with --follow first "
                "those that are there, then new ones as they come; with --tail those among "
                "the last N lines.\n"
                "--all, and --source all with --grep alone, print ID/ATTEMPT:OFFSET: LINE, of "
                "workers' logs ID/ATTEMPT/NODE/NAME[RANK]:OFFSET: LINE; offsets count bytes of the "
                "log.",
        .example = "argus logs -f grpo-7\tfollow\nargus logs --tail 50 grpo-7\tthe last 50 lines\n"
                   "argus logs --source worker --rank 0 grpo-7\twhat rank 0 printed\n"
                   "argus logs -f --source all grpo-7\tdriver and workers as one\n"
                   "argus logs --all --grep 'CUDA out of memory' --since 7d\twho else had it",
        .opts = LOGS_OPTS,
        .n_opts = array_len(LOGS_OPTS),
        .opts_size = sizeof(struct logs_opts),
        .run = logs_run,
    },
};

NOUN(logs, LOGS_COMMANDS);

/* SPDX-License-Identifier: Apache-2.0 */
/* logs.c - a job's log so far, or live. */
#include "argus/cmd/cmd.h"

#include <inttypes.h>

#include "argus/follow.h"
#include "argus/jobview.h"
#include "argus/logread.h"
#include "base/str.h"

struct logs_opts {
    bool follow;
    int64_t tail, attempt;
    const char *source, *grep;
};

static const struct opt OPTS[] = {
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
     .type = OPT_NUMBER,
     .offset = offsetof(struct logs_opts, attempt),
     .arg = "K",
     .doc = "of attempt K; else of the newest"},
    {.name = "source",
     .type = OPT_TEXT,
     .offset = offsetof(struct logs_opts, source),
     .arg = "NAME",
     .doc = "which log: driver (the default)"},
    {.name = "grep",
     .type = OPT_TEXT,
     .offset = offsetof(struct logs_opts, grep),
     .arg = "RE",
     .doc = "only lines that match this extended regular expression"},
};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct logs_opts *o = opts;
    _cleanup_(buf_release) struct buf query = BUF_INIT(4096);
    _cleanup_(json_unrefp) json_t *job = NULL;
    _cleanup_(logout_release) struct logout logout = {0};
    uint64_t offset = 0;
    if (o->attempt)
        (void)buf_addf(&query, "&attempt=%" PRId64, o->attempt);
    if (o->source) {
        (void)buf_adds(&query, "&source=");
        url_escape(&query, o->source); /* too long is no source: refused by the server */
    }
    int r = cli_open(cli, err);
    if (r >= 0)
        r = logout_init(&logout, cli->out, cli->term.is_tty, o->grep, err);
    if (r >= 0)
        r = cli_get_job(cli, args->v[0], &job, err);
    if (r < 0)
        return r;
    const char *id = json_get_str(job, "id", args->v[0]);
    if (!o->follow || o->tail)
        r = logread_print(cli, id, buf_str(&query), o->tail, &logout, &offset, err);
    if (r < 0 || !o->follow) {
        logout_end(&logout);
        return r;
    }
    struct follow_opts f = {.offset = offset, .query = buf_str(&query), .logout = &logout};
    return follow_run(cli, id, &f, err);
}

const struct command cmd_logs = {
    .name = "logs",
    .args = "ID",
    .least = 1,
    .most = 1,
    .summary = "print a job's log",
    .text = "Prints the log so far. With --follow goes on until the job has ended, reconnects by "
            "itself without losing or doubling a byte, prints one last line to stderr and exits "
            "with the job's status. Ctrl-C detaches and never stops the job (exit status 0).\n"
            "Into a pipe the bytes are unchanged; on a terminal control sequences other than "
            "colours are made harmless.",
    .example = "argus logs -f grpo-7\tfollow\nargus logs --tail 50 grpo-7\tthe last 50 lines",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct logs_opts),
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* wait.c - until jobs have ended. */
#include "argus/cmd/cmd.h"

#include "argus/waiting.h"

struct wait_opts {
    usec_t timeout;
    int output;
};

static const struct opt OPTS[] = {
    {.name = "timeout",
     .type = OPT_SPAN,
     .offset = offsetof(struct wait_opts, timeout),
     .arg = "SPAN",
     .doc = "give up after 90s, 10m, 2h …: exit status 7"},
    OPT_OUTPUT(struct wait_opts),
};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct wait_opts *o = opts;
    int r = cli_open(cli, err);
    return r < 0 ? r : waiting_run(cli, args, o->timeout, o->output, err);
}

const struct command cmd_wait = {
    .name = "wait",
    .args = "ID…",
    .least = 1,
    .most = 64,
    .summary = "wait until jobs have ended",
    .text = "Prints each job's end as it comes. The exit status is that of the worst job: 13, 10, "
            "12, 11, 0. Lost connections are made again; Ctrl-C ends the waiting, not the jobs.",
    .example = "argus wait --timeout 2h grpo-7 && echo done\tgo on only after success",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct wait_opts),
    .run = run,
};

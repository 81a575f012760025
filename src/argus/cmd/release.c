/* SPDX-License-Identifier: Apache-2.0 */
/* release.c - let jobs that are held wait for their turn again, and kept slots go. */
#include "argus/cmd/cmd.h"

#include "argus/jobchange.h"

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    (void)opts;
    int r = cli_open(cli, err);
    return r < 0 ? r : jobchange_all(cli, args, "release", ":release", NULL, err);
}

const struct command cmd_release = {
    .name = "release",
    .args = "ID…",
    .least = 1,
    .most = ARGS_ANY,
    .summary = "let jobs that are held go on",
    .text = "They wait for their turn again, at the place that they have kept. A job that has "
            "failed and whose "
            "slots are kept for a look (hold_on_failure) gives them back.",
    .run = run,
};

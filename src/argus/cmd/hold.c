/* SPDX-License-Identifier: Apache-2.0 */
/* hold.c - keep jobs that wait from starting. */
#include "argus/cmd/cmd.h"

#include "argus/jobchange.h"

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    (void)opts;
    int r = cli_open(cli, err);
    return r < 0 ? r : jobchange_all(cli, args, "hold", ":hold", NULL, err);
}

const struct command cmd_hold = {
    .name = "hold",
    .args = "ID…",
    .least = 1,
    .most = ARGS_ANY,
    .summary = "keep jobs that wait from starting",
    .text = "They keep their place in the queue, and the time that they are held does not count as "
            "waiting. 'argus release' lets them go on. What an admin holds an admin releases.",
    .example = "argus hold grpo-7\tnot tonight",
    .run = run,
};

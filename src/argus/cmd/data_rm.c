/* SPDX-License-Identifier: Apache-2.0 */
/* data_rm.c - remove one version of a data set, with its bytes. */
#include "argus/cmd/cmd.h"

#include "argus/datacall.h"

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    (void)opts;
    return datacall_remove(cli, "datasets", args->v[0], err);
}

const struct command cmd_data_rm = {
    .name = "data rm",
    .args = "NAME",
    .least = 1,
    .most = 1,
    .summary = "remove one version of a data set",
    .text = "Its bytes go too, unless it was registered where it lay. Refused while a job that is "
            "not over uses it. Without a version it is the newest one.",
    .run = run,
};

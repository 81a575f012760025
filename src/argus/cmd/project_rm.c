/* SPDX-License-Identifier: Apache-2.0 */
/* project_rm.c - remove a project whose jobs are all over; their records keep its name. */
#include "argus/cmd/cmd.h"

#include "argus/people.h"

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    (void)opts;
    int r = cli_open(cli, err);
    return r < 0 ? r : people_change(cli, "DELETE", "projects", args->v[0], NULL, "removed", err);
}

const struct command cmd_project_rm = {
    .name = "project rm",
    .args = "NAME",
    .least = 1,
    .most = 1,
    .summary = "remove a project",
    .text = "For admins. One whose jobs are not all over stays. Jobs that ended keep the name.",
    .run = run,
};

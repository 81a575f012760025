/* SPDX-License-Identifier: Apache-2.0 */
/* user_rm.c - remove a user and revoke all tokens; jobs and files stay. */
#include "argus/cmd/cmd.h"

#include "argus/people.h"

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    (void)opts;
    int r = cli_open(cli, err);
    return r < 0 ? r : people_change(cli, "DELETE", "users", args->v[0], NULL, "removed", err);
}

const struct command cmd_user_rm = {
    .name = "user rm",
    .args = "NAME",
    .least = 1,
    .most = 1,
    .summary = "remove a user, with all tokens",
    .text =
        "For admins. Jobs that ended keep the name; while one is not over the user stays. Files on "
        "the shared root stay. 'argus user set NAME --disable' keeps the user and closes "
        "the door.",
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* user_ls.c - the users that one may see, with their role, projects and last use. */
#include "argus/cmd/cmd.h"

#include "argus/people.h"

struct user_ls_opts {
    int output;
    bool utc;
};

static const struct opt OPTS[] = {OPT_OUTPUT(struct user_ls_opts), OPT_UTC(struct user_ls_opts)};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct user_ls_opts *o = opts;
    _cleanup_(json_unrefp) json_t *answer = NULL;
    (void)args;
    int r = cli_open(cli, err);
    if (r >= 0)
        r = client_get(cli->client, "/v1/users", &answer, err);
    if (r >= 0)
        people_print_users(cli, answer, o->output, o->utc);
    return r;
}

const struct command cmd_user_ls = {
    .name = "user ls",
    .args = "",
    .summary = "list the users",
    .text = "Admins and users of role viewer see all; others see themselves and who shares a "
            "project with them.",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct user_ls_opts),
    .run = run,
};

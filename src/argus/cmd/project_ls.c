/* SPDX-License-Identifier: Apache-2.0 */
/* project_ls.c - the projects that one may see, with what they hold now. */
#include "argus/cmd/cmd.h"

#include "argus/people.h"

struct project_ls_opts {
    int output;
};

static const struct opt OPTS[] = {OPT_OUTPUT(struct project_ls_opts)};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct project_ls_opts *o = opts;
    _cleanup_(json_unrefp) json_t *answer = NULL;
    (void)args;
    int r = cli_open(cli, err);
    if (r >= 0)
        r = client_get(cli->client, "/v1/projects", &answer, err);
    if (r >= 0)
        people_print_projects(cli, answer, o->output);
    return r;
}

const struct command cmd_project_ls = {
    .name = "project ls",
    .args = "",
    .summary = "list the projects",
    .text = "Admins and users of role viewer see all; others see 'default' and those that they are "
            "members of. GPUS is what is held now and what may be.",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct project_ls_opts),
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* project_show.c - one project: members, limits, use. */
#include "argus/cmd/cmd.h"

#include "argus/people.h"

struct project_show_opts {
    int output;
};

static const struct opt OPTS[] = {OPT_OUTPUT(struct project_show_opts)};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct project_show_opts *o = opts;
    _cleanup_(json_unrefp) json_t *answer = NULL;
    int r = cli_open(cli, err);
    if (r >= 0)
        r = people_call(cli, "GET", "projects", args->v[0], "", NULL, &answer, err);
    if (r >= 0 && o->output >= OUTPUT_JSON)
        cli_emit(cli, answer, o->output);
    else if (r >= 0)
        people_print_account(cli, answer);
    return r;
}

const struct command cmd_project_show = {
    .name = "project show",
    .args = "NAME",
    .least = 1,
    .most = 1,
    .summary = "show one project: members, limits, use",
    .text = "What its jobs hold now, and what they may hold.",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct project_show_opts),
    .run = run,
};

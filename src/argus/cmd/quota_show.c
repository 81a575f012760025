/* SPDX-License-Identifier: Apache-2.0 */
/* quota_show.c - the quota of one project or user, and what is used of it. */
#include "argus/cmd/cmd.h"

#include "argus/people.h"

struct quota_show_opts {
    const char *user, *project;
    int output;
};

static const struct opt OPTS[] = {
    {.name = "project",
     .type = OPT_TEXT,
     .offset = offsetof(struct quota_show_opts, project),
     .arg = "NAME",
     .doc = "of this project"},
    {.name = "user",
     .type = OPT_TEXT,
     .offset = offsetof(struct quota_show_opts, user),
     .arg = "NAME",
     .doc = "of this user"},
    OPT_OUTPUT(struct quota_show_opts),
};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct quota_show_opts *o = opts;
    _cleanup_(json_unrefp) json_t *answer = NULL;
    (void)args;
    if (!o->user == !o->project)
        return err_set(err, ERR_USAGE, "give --project NAME or --user NAME");
    int r = cli_open(cli, err);
    if (r >= 0)
        r = people_call(cli, "GET", o->user ? "users" : "projects", o->user ? o->user : o->project,
                        "/quota", NULL, &answer, err);
    if (r >= 0 && o->output >= OUTPUT_JSON)
        cli_emit(cli, answer, o->output);
    else if (r >= 0)
        people_print_account(cli, answer);
    return r;
}

const struct command cmd_quota_show = {
    .name = "quota show",
    .args = "",
    .summary = "show one quota and what is used of it",
    .text = "Of a project that you are in, or of yourself; admins see all.",
    .example = "argus quota show --user alice\twhat alice may hold, and holds",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct quota_show_opts),
    .run = run,
};

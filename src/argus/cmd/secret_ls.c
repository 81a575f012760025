/* SPDX-License-Identifier: Apache-2.0 */
/* secret_ls.c - the names of the secrets there are, never their values. */
#include "argus/cmd/cmd.h"

#include "argus/people.h"

struct secret_ls_opts {
    int output;
    bool utc, all;
    const char *user, *project;
};

static const struct opt OPTS[] = {
    {.letter = 'a',
     .name = "all",
     .type = OPT_FLAG,
     .offset = offsetof(struct secret_ls_opts, all),
     .doc = "everybody's (admins)"},
    {.name = "project",
     .type = OPT_TEXT,
     .offset = offsetof(struct secret_ls_opts, project),
     .arg = "NAME",
     .doc = "this project's"},
    {.name = "user",
     .type = OPT_TEXT,
     .offset = offsetof(struct secret_ls_opts, user),
     .arg = "NAME",
     .doc = "this user's (admins)"},
    OPT_OUTPUT(struct secret_ls_opts),
    OPT_UTC(struct secret_ls_opts),
};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct secret_ls_opts *o = opts;
    _cleanup_(buf_release) struct buf path = BUF_INIT(4096);
    _cleanup_(json_unrefp) json_t *answer = NULL;
    (void)args;
    (void)buf_adds(&path, "/v1/secrets"); /* too long a name is refused by the server */
    url_query(&path, "user", o->user);
    url_query(&path, "project", o->project);
    url_query(&path, "all", o->all ? "1" : NULL);
    int r = cli_open(cli, err);
    if (r >= 0)
        r = client_get(cli->client, buf_str(&path), &answer, err);
    if (r >= 0)
        people_print_secrets(cli, answer, o->output, o->utc);
    return r;
}

const struct command cmd_secret_ls = {
    .name = "secret ls",
    .args = "",
    .summary = "list secrets by name, with their last use",
    .text = "Your own ones and those of your projects. A value is never shown. The last use is "
            "noted every five minutes.",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct secret_ls_opts),
    .run = run,
};

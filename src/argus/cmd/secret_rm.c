/* SPDX-License-Identifier: Apache-2.0 */
/* secret_rm.c - forget a secret: of oneself, of a project, or (admins) of a user. Jobs that run
 * keep what they were given. */
#include "argus/cmd/cmd.h"

#include "argus/people.h"

struct secret_rm_opts {
    const char *user, *project;
};

static const struct opt OPTS[] = {
    {.name = "project",
     .type = OPT_TEXT,
     .offset = offsetof(struct secret_rm_opts, project),
     .arg = "NAME",
     .doc = "of this project"},
    {.name = "user",
     .type = OPT_TEXT,
     .offset = offsetof(struct secret_rm_opts, user),
     .arg = "NAME",
     .doc = "of this user (admins)"},
};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct secret_rm_opts *o = opts;
    _cleanup_(buf_release) struct buf rest = BUF_INIT(4096);
    url_query(&rest, "user", o->user);
    url_query(&rest, "project", o->project);
    int r = cli_open(cli, err);
    for (size_t i = 0; r >= 0 && i < args->n; i++) {
        _cleanup_(json_unrefp) json_t *answer = NULL;
        r = people_call(cli, "DELETE", "secrets", args->v[i], buf_str(&rest), NULL, &answer, err);
        if (r >= 0)
            (void)fprintf(cli->out, "secret %s removed\n", args->v[i]);
    }
    return r;
}

const struct command cmd_secret_rm = {
    .name = "secret rm",
    .args = "NAME…",
    .least = 1,
    .most = ARGS_ANY,
    .summary = "remove secrets",
    .text = "Jobs that run keep what they were given; a job that names it and starts later fails "
            "with a sentence.",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct secret_rm_opts),
    .run = run,
};

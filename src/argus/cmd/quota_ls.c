/* SPDX-License-Identifier: Apache-2.0 */
/* quota_ls.c - who may hold what, and holds it. */
#include "argus/cmd/cmd.h"

#include "argus/people.h"

struct quota_ls_opts {
    int output;
    bool watch;
};

static const struct opt OPTS[] = {OPT_OUTPUT(struct quota_ls_opts),
                                  OPT_WATCH(struct quota_ls_opts)};

static int page(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct quota_ls_opts *o = opts;
    _cleanup_(json_unrefp) json_t *answer = NULL;
    (void)args;
    int r = client_get(cli->client, "/v1/quotas", &answer, err);
    if (r >= 0)
        people_print_quotas(cli, answer, o->output);
    return r;
}

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct quota_ls_opts *o = opts;
    int r = cli_open(cli, err);
    return r < 0 ? r : cli_page(cli, o->watch, page, opts, args, err);
}

const struct command cmd_quota_ls = {
    .name = "quota ls",
    .args = "",
    .summary = "list quotas and what is used of them",
    .text =
        "Projects and users that you may see. GUAR is what is guaranteed; the other columns are "
        "what is used and what may be; '-' is no limit.",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct quota_ls_opts),
    .run = run,
};

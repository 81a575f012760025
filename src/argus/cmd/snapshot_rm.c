/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_rm.c - a snapshot that no job uses any more. */
#include "argus/cmd/cmd.h"

#include <stdio.h>

#include "argus/jobview.h"
#include "argus/snapcall.h"

struct snapshot_rm_opts {
    bool common;
};

static const struct opt OPTS[] = {
    {.name = "common",
     .type = OPT_FLAG,
     .offset = offsetof(struct snapshot_rm_opts, common),
     .doc = "the common one, though there is one of yours with this name"},
};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct snapshot_rm_opts *o = opts;
    int r = cli_open(cli, err);
    for (size_t i = 0; r >= 0 && i < args->n; i++) {
        _cleanup_(json_unrefp) json_t *answer = NULL;
        _cleanup_(freep) char *path = snapcall_path(args->v[i], o->common ? "?common=true" : "");
        struct request request = {.method = "DELETE", .path = path};
        r = client_json(cli->client, &request, &answer, err);
        if (r >= 0)
            (void)fprintf(cli->out, "snapshot %s removed\n", jobview_str(answer, "name"));
    }
    return r;
}

const struct command cmd_snapshot_rm = {
    .name = "snapshot rm",
    .args = "NAME@VERSION…",
    .least = 1,
    .most = ARGS_ANY,
    .summary = "remove snapshots",
    .text = "Refused while a job that is not over uses it. Yours, and common ones that you added; "
            "admins remove any common one.",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct snapshot_rm_opts),
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* files_rm.c - remove files of the shared root. */
#include "argus/cmd/cmd.h"

#include <inttypes.h>

#include "argus/filecall.h"

struct rm_opts {
    bool recursive;
};

static const struct opt OPTS[] = {
    {.letter = 'r',
     .name = "recursive",
     .type = OPT_FLAG,
     .offset = offsetof(struct rm_opts, recursive),
     .doc = "a directory with all that is in it"},
};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct rm_opts *o = opts;
    int r = cli_open(cli, err);
    for (size_t i = 0; r == 0 && i < args->n; i++) {
        int64_t removed = 0;
        r = filecall_remove(cli, args->v[i], o->recursive, &removed, err);
        if (r == 0)
            (void)fprintf(cli->out, "%s removed (%" PRId64 ")\n", args->v[i], removed);
    }
    return r;
}

const struct command cmd_files_rm = {
    .name = "files rm",
    .args = "PATH…",
    .least = 1,
    .most = 1000,
    .summary = "remove files of the shared root",
    .text = "Yours, and what is in common/. A link is removed and not what it leads to. The files "
            "of jobs stay.",
    .example = "argus files rm users/alice/datasets/old.parquet\tone file\n"
               "argus files rm -r users/alice/datasets/old\ta whole directory",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct rm_opts),
    .run = run,
};

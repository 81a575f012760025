/* SPDX-License-Identifier: Apache-2.0 */
/* files_get.c - a file of the shared root, brought here. */
#include "argus/cmd/cmd.h"

#include <string.h>

#include "argus/filecall.h"
#include "base/str.h"

struct get_opts {
    bool force;
};

static const struct opt OPTS[] = {
    {.letter = 'f',
     .name = "force",
     .type = OPT_FLAG,
     .offset = offsetof(struct get_opts, force),
     .doc = "replace a file that is there"},
};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct get_opts *o = opts;
    const char *path = args->v[0], *name = filecall_name(path);
    const char *given = args->n > 1 ? args->v[1] : name;
    if (!*name)
        return err_set(err, ERR_USAGE, "'%s' names a directory: name a file", path);
    _cleanup_(freep) char *to =
        str_ends(given, "/") ? xasprintf("%s%s", given, name) : xstrdup(given);
    int r = cli_open(cli, err);
    return r < 0 ? r : filecall_get(cli, path, to, o->force ? FILECALL_FORCE : 0, err);
}

const struct command cmd_files_get = {
    .name = "files get",
    .args = "PATH [FILE]",
    .least = 1,
    .most = 2,
    .summary = "copy a file of the shared root to here",
    .text = "FILE '-' is stdout; one that ends in '/' is a directory. A cut connection is made "
            "again, and the same command goes on where an earlier one ended, if the file is still "
            "the same. The file has its name only when it is whole.",
    .example = "argus files get jobs/grpo-7/logs/driver.log\tthe whole log\n"
               "argus files get common/datasets/x.jsonl - | head\tto another program",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct get_opts),
    .run = run,
};

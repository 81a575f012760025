/* SPDX-License-Identifier: Apache-2.0 */
/* files_get.c - a file or a directory of the shared root, brought here. */
#include "argus/cmd/cmd.h"

#include <string.h>

#include "argus/filetree.h"
#include "base/str.h"

struct get_opts {
    bool force, recursive;
};

static const struct opt OPTS[] = {
    {.letter = 'f',
     .name = "force",
     .type = OPT_FLAG,
     .offset = offsetof(struct get_opts, force),
     .doc = "replace a file that is there"},
    {.letter = 'r',
     .name = "recursive",
     .type = OPT_FLAG,
     .offset = offsetof(struct get_opts, recursive),
     .doc = "a directory with all that is in it"},
};

static int get_tree(struct cli *cli,
                    const char *path,
                    const char *to,
                    unsigned flags,
                    struct err *err)
{
    struct filetree_done done = {0};
    int r = filetree_get(cli, path, to, flags, &done, err);
    filetree_tell(cli, &done);
    return r;
}

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct get_opts *o = opts;
    _cleanup_(freep) char *path = xstrdup(args->v[0]);
    for (size_t n = strlen(path); o->recursive && n > 1 && path[n - 1] == '/';)
        path[--n] = 0;
    const char *name = filecall_name(path), *given = args->n > 1 ? args->v[1] : name;
    unsigned flags = o->force ? FILECALL_FORCE : 0;
    if (!*name)
        return err_set(err, ERR_USAGE, "'%s' names a directory: name a file, or give -r", path);
    if (o->recursive && str_eq(given, "-"))
        return err_set(err, ERR_USAGE, "a directory cannot go to stdout");
    _cleanup_(freep) char *to =
        str_ends(given, "/") ? xasprintf("%s%s", given, name) : xstrdup(given);
    int r = cli_open(cli, err);
    if (r < 0)
        return r;
    return o->recursive ? get_tree(cli, path, to, flags, err)
                        : filecall_get(cli, path, to, flags, err);
}

const struct command cmd_files_get = {
    .name = "files get",
    .args = "PATH [FILE|DIR]",
    .least = 1,
    .most = 2,
    .summary = "copy a file or directory of the shared root to here",
    .text = "FILE '-' is stdout; one that ends in '/' is a directory to put it in. A cut "
            "connection is made again, and the same command goes on where an earlier one ended, "
            "if the file is still the same. A file has its name only when it is whole. With -r a "
            "directory comes with all that is in it; what came before and is the same still does "
            "not come again, and links are left out.",
    .example = "argus files get jobs/grpo-7/logs/driver.log\tthe whole log\n"
               "argus files get -r jobs/grpo-7/checkpoints ckpt\ta whole directory\n"
               "argus files get common/datasets/x.jsonl - | head\tto another program",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct get_opts),
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* files_put.c - a file or a directory from here, brought to the shared root. */
#include "argus/cmd/cmd.h"

#include <string.h>
#include <sys/stat.h>

#include "argus/filetree.h"
#include "argus/jobview.h"
#include "base/str.h"

struct put_opts {
    bool force, parents, recursive;
};

static const struct opt OPTS[] = {
    {.letter = 'f',
     .name = "force",
     .type = OPT_FLAG,
     .offset = offsetof(struct put_opts, force),
     .doc = "replace a file that is there"},
    {.letter = 'p',
     .name = "parents",
     .type = OPT_FLAG,
     .offset = offsetof(struct put_opts, parents),
     .doc = "make the directories above it"},
    {.letter = 'r',
     .name = "recursive",
     .type = OPT_FLAG,
     .offset = offsetof(struct put_opts, recursive),
     .doc = "a directory with all that is in it; makes the directories above it too"},
};

static int put_tree(struct cli *cli,
                    const char *from,
                    const char *goal,
                    unsigned flags,
                    struct err *err)
{
    struct filetree_done done = {0};
    int r = filetree_put(cli, from, goal, flags, &done, err);
    filetree_tell(cli, &done);
    return r;
}

static int put_file(struct cli *cli,
                    const char *from,
                    const char *goal,
                    unsigned flags,
                    struct err *err)
{
    _cleanup_(json_unrefp) json_t *v = NULL;
    int r = filecall_put(cli, from, goal, flags, &v, err);
    if (r < 0)
        return r;
    (void)fprintf(cli->out, "%s\n", jobview_str(v, "path"));
    cli_talk(cli, "%s: %lld bytes, SHA-256 %s", jobview_str(v, "path"),
             (long long)json_get_int(v, "bytes", 0), jobview_str(v, "sha256"));
    return 0;
}

static int check_kind(const char *from, bool recursive, struct err *err)
{
    struct stat st;
    bool is_dir = stat(from, &st) == 0 && S_ISDIR(st.st_mode);
    if (recursive && !is_dir)
        return err_set(err, ERR_USAGE, "'%s' is no directory: leave -r out", from);
    if (is_dir && !recursive)
        return err_set(err, ERR_USAGE,
                       "'%s' is a directory: -r brings it file by file, and 'argus snapshot add' "
                       "code that never changes again",
                       from);
    return 0;
}

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct put_opts *o = opts;
    _cleanup_(freep) char *from = xstrdup(args->v[0]);
    const char *goal = args->v[1];
    unsigned flags =
        (o->force ? FILECALL_FORCE : 0U) | (o->parents ? (unsigned)FILECALL_PARENTS : 0U);
    for (size_t n = strlen(from); o->recursive && n > 1 && from[n - 1] == '/';)
        from[--n] = 0;
    int r = check_kind(from, o->recursive, err);
    const char *name = filecall_name(from);
    bool is_name = !str_eq(name, "-") && !str_eq(name, ".") && !str_eq(name, "..");
    if (r == 0 && str_ends(goal, "/") && !is_name)
        r = err_set(err, ERR_USAGE, "give it a name there: '%s' is a directory", goal);
    if (r == 0)
        r = cli_open(cli, err);
    if (r < 0)
        return r;
    _cleanup_(freep) char *path =
        str_ends(goal, "/") ? xasprintf("%s%s", goal, name) : xstrdup(goal);
    return o->recursive ? put_tree(cli, from, path, flags, err)
                        : put_file(cli, from, path, flags, err);
}

const struct command cmd_files_put = {
    .name = "files put",
    .args = "FILE|DIR PATH",
    .least = 2,
    .most = 2,
    .summary = "copy a file or directory from here to the shared root",
    .text = "FILE '-' is stdin. A PATH that ends in '/' is the directory to put it in. A cut "
            "connection is made again, and the same command goes on where an earlier one ended. "
            "A file appears in one step, when all of it is there and its hash is right. With -r a "
            "directory goes file by file; what the same command brought before it was ended is "
            "not sent again, and links are left out.",
    .example =
        "argus files put train.parquet users/alice/datasets/gsm8k/ -p\tmaking the directory\n"
        "argus files put -f reward.py users/alice/code/reward.py\treplace it\n"
        "argus files put -r ./raw users/alice/datasets/raw\ta whole directory",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct put_opts),
    .run = run,
};

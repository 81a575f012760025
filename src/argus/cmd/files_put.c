/* SPDX-License-Identifier: Apache-2.0 */
/* files_put.c - a file from here, brought to the shared root. */
#include "argus/cmd/cmd.h"

#include <string.h>
#include <sys/stat.h>

#include "argus/filecall.h"
#include "argus/jobview.h"
#include "base/str.h"

struct put_opts {
    bool force, parents;
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
};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct put_opts *o = opts;
    const char *from = args->v[0], *goal = args->v[1];
    _cleanup_(json_unrefp) json_t *v = NULL;
    struct stat st;
    if (stat(from, &st) == 0 && S_ISDIR(st.st_mode))
        return err_set(err, ERR_USAGE,
                       "'%s' is a directory: 'argus snapshot add' brings code, 'tar c %s | argus "
                       "files put - PATH' one file of all",
                       from, from);
    if (str_ends(goal, "/") && str_eq(from, "-"))
        return err_set(err, ERR_USAGE, "name the file: '%s' is a directory", goal);
    _cleanup_(freep) char *path =
        str_ends(goal, "/") ? xasprintf("%s%s", goal, filecall_name(from)) : xstrdup(goal);
    unsigned flags =
        (o->force ? FILECALL_FORCE : 0U) | (o->parents ? (unsigned)FILECALL_PARENTS : 0U);
    int r = cli_open(cli, err);
    if (r == 0)
        r = filecall_put(cli, from, path, flags, &v, err);
    if (r < 0)
        return r;
    (void)fprintf(cli->out, "%s\n", jobview_str(v, "path"));
    cli_talk(cli, "%s: %lld bytes, SHA-256 %s", jobview_str(v, "path"),
             (long long)json_get_int(v, "bytes", 0), jobview_str(v, "sha256"));
    return 0;
}

const struct command cmd_files_put = {
    .name = "files put",
    .args = "FILE PATH",
    .least = 2,
    .most = 2,
    .summary = "copy a file from here to the shared root",
    .text = "FILE '-' is stdin. A PATH that ends in '/' is the directory to put it in. A cut "
            "connection is made again, and the same command goes on where an earlier one ended. "
            "The file appears in one step, when all of it is there and its hash is right.",
    .example =
        "argus files put train.parquet users/alice/datasets/gsm8k/ -p\tmaking the directory\n"
        "argus files put -f reward.py users/alice/code/reward.py\treplace it",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct put_opts),
    .run = run,
};

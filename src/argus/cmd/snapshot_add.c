/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_add.c - code that never changes again, on the shared root. */
#include "argus/cmd/cmd.h"

#include "argus/snapcall.h"

struct snapshot_add_opts {
    int output;
    const char *name;
    bool common;
};

static const struct opt OPTS[] = {
    {.name = "name",
     .type = OPT_TEXT,
     .offset = offsetof(struct snapshot_add_opts, name),
     .arg = "NAME@VERSION",
     .doc = "what it is called; of a directory the version may be left out: then it is the "
            "beginning of the hash"},
    {.name = "common",
     .type = OPT_FLAG,
     .offset = offsetof(struct snapshot_add_opts, common),
     .doc = "for everybody; else it is yours alone"},
    OPT_OUTPUT(struct snapshot_add_opts),
};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct snapshot_add_opts *o = opts;
    _cleanup_(json_unrefp) json_t *answer = NULL;
    struct snapcall_add what = {.source = args->v[0], .name = o->name, .common = o->common};
    if (!o->name)
        return err_set(err, ERR_USAGE, "give it a name: --name NAME@VERSION");
    int r = cli_open(cli, err);
    if (r >= 0)
        r = snapcall_add(cli, &what, &answer, err);
    if (r < 0)
        return r;
    if (o->output >= OUTPUT_JSON)
        cli_emit(cli, answer, o->output);
    else
        snapcall_print(cli, answer);
    return 0;
}

const struct command cmd_snapshot_add = {
    .name = "snapshot add",
    .args = "DIR|ARCHIVE",
    .least = 1,
    .most = 1,
    .summary = "keep code as it is now, for jobs to name",
    .text =
        "Of a directory goes what git would add: all that no .gitignore leaves out, and never "
        ".git. An ARCHIVE is a zip, a tar (.gz, .xz, .zst) or a git bundle, of which the commit, "
        "tag or branch is taken that VERSION names, else HEAD. What the server has already is not "
        "sent again. A spec names it with 'code: NAME@VERSION', or as 'working_dir'.",
    .example = "argus snapshot add ~/verl --name verl@0.9.1 --common\tone version for all\n"
               "argus snapshot add . --name mycode\twork in progress, named by its hash",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct snapshot_add_opts),
    .run = run,
};

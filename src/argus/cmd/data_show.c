/* SPDX-License-Identifier: Apache-2.0 */
/* data_show.c - one data set: its columns, some rows, and what it is fit for. */
#include "argus/cmd/cmd.h"

#include "argus/datacall.h"

struct show_opts {
    int output;
};

static const struct opt OPTS[] = {OPT_OUTPUT(struct show_opts)};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct show_opts *o = opts;
    return datacall_show(cli, "datasets", args->v[0], o->output, err);
}

const struct command cmd_data_show = {
    .name = "data show",
    .args = "NAME",
    .least = 1,
    .most = 1,
    .summary = "show one data set",
    .text =
        "Its columns, some rows, and which workloads (rl, sft, eval) it is fit for, or the column "
        "that is missing. NAME is name, name@version, or owner:name; of several versions the "
        "newest that is ready.",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct show_opts),
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* model_show.c - one model: where it is, how large, and what it was made of. */
#include "argus/cmd/cmd.h"

#include "argus/datacall.h"

struct show_opts {
    int output;
};

static const struct opt OPTS[] = {OPT_OUTPUT(struct show_opts)};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct show_opts *o = opts;
    return datacall_show(cli, "models", args->v[0], o->output, err);
}

const struct command cmd_model_show = {
    .name = "model show",
    .args = "NAME",
    .least = 1,
    .most = 1,
    .summary = "show one model",
    .text =
        "Where it is, how large, and what it was made of. NAME is name, name@version, or "
        "owner:name; of several versions the newest that is ready. 'made by' is what argusd itself "
        "recorded of the job whose checkpoint it is, 'said to be' what who imported it said.",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct show_opts),
    .run = run,
};

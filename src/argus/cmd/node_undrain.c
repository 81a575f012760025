/* SPDX-License-Identifier: Apache-2.0 */
/* node_undrain.c - take machines back that were drained. */
#include "argus/cmd/cmd.h"

#include "argus/nodecall.h"

static const usec_t PATIENCE = 120 * USEC_SEC;

struct undrain_opts {
    bool wait;
};

static const struct opt OPTS[] = {
    {.name = "wait",
     .type = OPT_FLAG,
     .offset = offsetof(struct undrain_opts, wait),
     .doc = "until it is online, 2m at most"},
};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct undrain_opts *o = opts;
    int r = cli_open(cli, err);
    for (size_t i = 0; r >= 0 && i < args->n; i++) {
        _cleanup_(json_unrefp) json_t *node = NULL;
        r = nodecall_post(cli, args->v[i], ":undrain", NULL, &node, err);
        if (r >= 0 && !o->wait)
            nodecall_print(cli, node);
    }
    return r < 0 || !o->wait ? r : nodecall_wait(cli, args, NODE_GOAL_ONLINE, PATIENCE, err);
}

const struct command cmd_node_undrain = {
    .name = "node undrain",
    .args = "NODE…",
    .least = 1,
    .most = ARGS_ANY,
    .summary = "take drained machines back",
    .text = "A machine that still drains takes jobs again at once; one that is offline already "
            "joins anew.",
    .example = "argus node undrain node-7 --wait\tand it is online again",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct undrain_opts),
    .run = run,
};

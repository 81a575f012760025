/* SPDX-License-Identifier: Apache-2.0 */
/* node_rm.c - forget machines, and return when they are forgotten. */
#include "argus/cmd/cmd.h"

#include "argus/nodecall.h"

static const usec_t PATIENCE = 120 * USEC_SEC;

struct rm_opts {
    bool force;
};

static const struct opt OPTS[] = {
    {.name = "force",
     .type = OPT_FLAG,
     .offset = offsetof(struct rm_opts, force),
     .doc = "though jobs run there, and though the machine does not answer"},
};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct rm_opts *o = opts;
    int r = cli_open(cli, err);
    for (size_t i = 0; r >= 0 && i < args->n; i++) {
        _cleanup_(json_unrefp) json_t *node = NULL;
        json_t *body = o->force ? json_pack("{s:b}", "force", 1) : NULL;
        r = nodecall_post(cli, args->v[i], ":remove", body, &node, err);
    }
    return r < 0 ? r : nodecall_wait(cli, args, NODE_GOAL_GONE, PATIENCE, err);
}

const struct command cmd_node_rm = {
    .name = "node rm",
    .args = "NODE…",
    .least = 1,
    .most = ARGS_ANY,
    .summary = "forget machines",
    .text = "argusd ends its own Ray there and forgets the machine and its host key. While jobs "
            "run on it this is refused: 'argus node drain' comes first.",
    .example = "argus node rm node-7\tit may be switched off",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct rm_opts),
    .run = run,
};

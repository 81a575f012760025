/* SPDX-License-Identifier: Apache-2.0 */
/* node_check.c - look at machines now. */
#include "argus/cmd/cmd.h"

#include "argus/nodecall.h"

struct check_opts {
    bool accept_key;
};

static const struct opt OPTS[] = {
    {.name = "accept-key",
     .type = OPT_FLAG,
     .offset = offsetof(struct check_opts, accept_key),
     .doc = "forget the pinned host key: the machine was made anew, and I know it"},
};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct check_opts *o = opts;
    size_t found = 0;
    int r = cli_open(cli, err);
    for (size_t i = 0; r >= 0 && i < args->n; i++) {
        _cleanup_(json_unrefp) json_t *node = NULL;
        json_t *body = o->accept_key ? json_pack("{s:b}", "accept_key", 1) : NULL;
        r = nodecall_post(cli, args->v[i], ":check", body, &node, err);
        if (r < 0)
            break;
        nodecall_print(cli, node);
        size_t n = nodecall_print_findings(cli, node);
        if (!n)
            (void)fprintf(cli->out, "  nothing stands in its way\n");
        found += n;
    }
    return r < 0 ? r : found ? err_set(err, ERR_REFUSED, "something is in the way: see above") : 0;
}

const struct command cmd_node_check = {
    .name = "node check",
    .args = "NODE…",
    .least = 1,
    .most = ARGS_ANY,
    .summary = "look at machines now",
    .text = "argusd looks at the machine over ssh: Python, Ray, shared root, disk, shared memory, "
            "clock, ports, GPUs. Each thing in the way is one sentence and what to do about it "
            "(exit status 5).",
    .example = "argus node check node-7\tafter something was mended",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct check_opts),
    .run = run,
};

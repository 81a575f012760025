/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_up.c - start what argusd manages: the head, then the machines. */
#include "argus/cmd/cmd.h"

#include "argus/clustercall.h"

static const usec_t PATIENCE = 180 * USEC_SEC;

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    (void)opts;
    _cleanup_(json_unrefp) json_t *cluster = NULL;
    int r = cli_open(cli, err);
    if (r >= 0)
        r = clustercall_find(cli, args->n ? args->v[0] : NULL, &cluster, err);
    if (r >= 0)
        r = clustercall_post(cli, cluster, ":up", NULL, err);
    return r < 0 ? r : clustercall_wait_up(cli, cluster, PATIENCE, err);
}

const struct command cmd_cluster_up = {
    .name = "cluster up",
    .args = "[NAME]",
    .most = 1,
    .summary = "start a managed cluster",
    .text = "Makes sure that the head runs (ray.head.managed in argus.yaml) and that the machines "
            "join again, and returns when Ray answers. What runs already is left as it is.",
    .example = "argus cluster up\tafter 'argus cluster down'",
    .run = run,
};

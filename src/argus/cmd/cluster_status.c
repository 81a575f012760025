/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_status.c - whether a cluster works, in the words of a person. */
#include "argus/cmd/cmd.h"

#include <inttypes.h>

#include "argus/clustercall.h"
#include "argus/jobview.h"
#include "base/str.h"

struct status_opts {
    int output;
};

static const struct opt OPTS[] = {
    OPT_OUTPUT(struct status_opts),
};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct status_opts *o = opts;
    _cleanup_(json_unrefp) json_t *cluster = NULL;
    int r = cli_open(cli, err);
    if (r >= 0)
        r = clustercall_find(cli, args->n ? args->v[0] : NULL, &cluster, err);
    if (r < 0)
        return r;
    if (o->output >= OUTPUT_JSON)
        cli_emit(cli, cluster, o->output);
    else
        clustercall_print(cli, cluster);
    return json_get_bool(cluster, "up", false)
               ? 0
               : err_set(err, ERR_UNAVAILABLE, "cluster '%s' is down",
                         jobview_str(cluster, "name"));
}

const struct command cmd_cluster_status = {
    .name = "cluster status",
    .args = "[NAME]",
    .most = 1,
    .summary = "show whether a cluster works",
    .text = "Shows the head, the version of Ray, and how many machines are online. The exit status "
            "is 6 when the cluster is down.",
    .example = "argus cluster status\tthe only one needs no name",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct status_opts),
    .run = run,
};

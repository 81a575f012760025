/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_ls.c - the Ray clusters that the server knows, as a table. */
#include "argus/cmd/cmd.h"

#include <inttypes.h>
#include <stdlib.h>

#include "argus/jobview.h"
#include "argus/listing.h"
#include "base/str.h"

static const struct opt OPTS[] = {LISTING_OPTS};

static const struct column COLUMNS[] = {
    {.title = MSG_CLUSTER},
    {.title = MSG_STATE},
    {.title = MSG_HEAD, .flags = COLUMN_FLEX, .least = 8},
    {.title = MSG_RAY, .rank = 3},
    {.title = MSG_NODES, .flags = COLUMN_RIGHT, .rank = 1},
    {.title = MSG_TOTAL, .flags = COLUMN_RIGHT, .rank = 2},
    {.title = MSG_ADDRESS, .flags = COLUMN_WIDE},
    {.title = MSG_REASON, .flags = COLUMN_FLEX, .least = 20},
};

static void add_row(struct table *t, const json_t *cluster, const struct when *w)
{
    bool up = json_get_bool(cluster, "up", false);
    const json_t *head = json_get_object(cluster, "head");
    const char *ip = json_get_str(cluster, "head_ip", NULL);
    (void)w;
    table_add(t, STYLE_PLAIN, jobview_str(cluster, "name"));
    table_add(t, up ? STYLE_GREEN : STYLE_RED, up ? "up" : "down");
    table_addf(t, STYLE_PLAIN, "%s%s", str_or(ip, json_get_str(head, "host", "-")),
               json_get_bool(head, "managed", false) ? " (managed)" : "");
    table_add(t, STYLE_PLAIN, json_get_str(cluster, "ray_version", NULL));
    table_addf(t, STYLE_PLAIN, "%" PRId64 "/%" PRId64, json_get_int(cluster, "online", 0),
               json_get_int(cluster, "registered", 0));
    table_addf(t, STYLE_PLAIN, "%g", json_get_real(cluster, "gpus", 0));
    table_add(t, STYLE_PLAIN, jobview_str(cluster, "address"));
    table_add(t, STYLE_PLAIN, json_get_str(json_get_object(cluster, "reason"), "text", NULL));
}

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    static const struct listing listing = {
        .path = "/v1/clusters",
        .key = "clusters",
        .columns = COLUMNS,
        .n_columns = array_len(COLUMNS),
        .add_row = add_row,
        .none = MSG_NO_NODES,
    };
    return listing_run(cli, &listing, opts, args, err);
}

const struct command cmd_cluster_ls = {
    .name = "cluster ls",
    .args = "",
    .summary = "list the clusters",
    .text =
        "One row for each Ray cluster: whether Ray answers, where its head is and whether argusd "
        "starts it, how many of the registered machines are online, and GPUs in total.",
    .example = "argus cluster ls --watch\tuntil Ctrl-C",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct listing_opts),
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* pool_ls.c - the pools: machines that carry one label. */
#include "argus/cmd/cmd.h"

#include <inttypes.h>
#include <stdlib.h>

#include "argus/jobview.h"
#include "argus/listing.h"
#include "base/str.h"

static const struct opt OPTS[] = {LISTING_OPTS};

static const struct column COLUMNS[] = {
    {.title = MSG_POOL, .flags = COLUMN_FLEX, .least = 8},
    {.title = MSG_CLUSTER, .rank = 3},
    {.title = MSG_NODES, .flags = COLUMN_RIGHT},
    {.title = MSG_TYPE, .flags = COLUMN_FLEX, .least = 6, .rank = 2},
    {.title = MSG_TOTAL, .flags = COLUMN_RIGHT},
    {.title = MSG_FREE, .flags = COLUMN_RIGHT},
    {.title = MSG_WAITING, .flags = COLUMN_RIGHT, .rank = 1},
};

static void add_row(struct table *t, const json_t *pool, const struct when *w)
{
    const json_t *gpus = json_get_object(pool, "gpus");
    const char *name = json_get_str(pool, "pool", NULL);
    (void)w;
    if (!name)
        return; /* the whole cluster is no pool */
    table_add(t, STYLE_PLAIN, name);
    table_add(t, STYLE_PLAIN, jobview_str(pool, "cluster"));
    table_addf(t, STYLE_PLAIN, "%" PRId64, json_get_int(pool, "nodes", 0));
    table_add(t, STYLE_PLAIN, json_get_str(pool, "type", NULL));
    table_addf(t, STYLE_PLAIN, "%g", json_get_real(gpus, "total", 0));
    table_addf(t, STYLE_PLAIN, "%g", json_get_real(gpus, "free", 0));
    table_addf(t, STYLE_PLAIN, "%" PRId64, json_get_int(pool, "queued", 0));
}

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    static const struct listing listing = {
        .path = "/v1/pools",
        .key = "pools",
        .columns = COLUMNS,
        .n_columns = array_len(COLUMNS),
        .add_row = add_row,
        .none = MSG_NO_POOLS,
    };
    return listing_run(cli, &listing, opts, args, err);
}

const struct command cmd_pool_ls = {
    .name = "pool ls",
    .args = "",
    .summary = "list the pools",
    .text = "A pool is the machines that carry one label. A JobSpec names one, or several that all "
            "must "
            "match, by `pool:`. 'argus gpus' says more about the use of each.",
    .example = "argus pool ls -o json\tfor programs",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct listing_opts),
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c - the pools: machines that carry one label. */
#include "argus/noun/noun.h"

static const struct opt LS_OPTS[] = {LISTING_OPTS};

static const struct column POOLS[] = {
    {.title = MSG_POOL, .flags = COLUMN_FLEX, .least = 8, .key = "pool"},
    {.title = MSG_CLUSTER, .rank = 3, .key = "cluster"},
    {.title = MSG_NODES, .flags = COLUMN_RIGHT, .key = "nodes", .as = CELL_NUMBER},
    {.title = MSG_TYPE, .flags = COLUMN_FLEX, .least = 6, .rank = 2, .key = "type"},
    {.title = MSG_TOTAL, .flags = COLUMN_RIGHT, .key = "gpus.total", .as = CELL_NUMBER},
    {.title = MSG_FREE, .flags = COLUMN_RIGHT, .key = "gpus.free", .as = CELL_NUMBER},
    {.title = MSG_WAITING, .flags = COLUMN_RIGHT, .rank = 1, .key = "queued", .as = CELL_NUMBER},
};

static const struct command POOL_COMMANDS[] = {
    {
        .name = "pool ls",
        .args = "",
        .summary = "list the pools",
        .text = "A pool is the machines that carry one label. A JobSpec names one, or "
                "several that all must match, by `pool:`. 'argus gpus' says more about the "
                "use of each.",
        .example = "argus pool ls -o json\tfor programs",
        OPTS(LS_OPTS),
        .ask = {.path = "/v1/pools",
                .table = {.key = "pools",
                          COLUMNS(POOLS),
                          .having = "pool", /* the whole cluster is no pool */
                          .none = MSG_NO_LABELS}},
    },
};

NOUN(pool, POOL_COMMANDS);

/* SPDX-License-Identifier: Apache-2.0 */
/* gpus.c - GPUs by use, per pool. */
#include "argus/noun/noun.h"

static const struct opt LS_OPTS[] = {LISTING_OPTS};

static void gpus_pool(struct table *t, const json_t *pool, const struct when *w)
{
    (void)w;
    table_add(t, STYLE_PLAIN, json_get_str(pool, "pool", "(all)"));
}

#define GPUS(title_, key_, rank_)                                                                  \
    {                                                                                              \
        .title = (title_), .flags = COLUMN_RIGHT, .rank = (rank_), .key = (key_),                  \
        .as = CELL_NUMBER                                                                          \
    }

static const struct column POOLS[] = {
    {.title = MSG_CLUSTER, .rank = 9, .key = "cluster"},
    {.title = MSG_POOL, .flags = COLUMN_FLEX, .least = 8, .draw = gpus_pool},
    {.title = MSG_TYPE, .flags = COLUMN_FLEX, .least = 6, .rank = 8, .key = "type"},
    GPUS(MSG_TOTAL, "gpus.total", 0),
    GPUS(MSG_USED, "gpus.used", 0),
    GPUS(MSG_FOREIGN, "gpus.foreign", 7),
    GPUS(MSG_FREE, "gpus.free", 0),
    GPUS(MSG_DRAINING, "gpus.draining", 6),
    GPUS(MSG_BAD, "gpus.bad", 5),
    GPUS(MSG_LARGEST, "largest_gang", 0),
    GPUS(MSG_WAITING, "queued", 2),
    {.title = MSG_NEXT_FREE, .rank = 3, .key = "next_free", .as = CELL_TIME},
};

static const struct command GPUS_COMMANDS[] = {
    {
        .name = "gpus",
        .args = "",
        .summary = "show GPUs by use, per pool",
        .text = "One row for the whole cluster and one for each label. LARGEST-GANG is how "
                "many GPUs one job could get now; NEXT-FREE is when the next lease is "
                "expected to end. Foreign are those that others hold in the same Ray cluster.",
        .example = "argus gpus --watch\tuntil Ctrl-C",
        OPTS(LS_OPTS),
        .ask = {.path = "/v1/pools",
                .table = {.key = "pools", COLUMNS(POOLS), .none = MSG_NO_POOLS}},
    },
};

NOUN(gpus, GPUS_COMMANDS);

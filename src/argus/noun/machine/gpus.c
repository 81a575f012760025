/* SPDX-License-Identifier: Apache-2.0 */
/* gpus.c - GPUs by use, per pool; and the pools: machines that carry one label. */
#include "argus/noun/noun.h"

static const struct opt LS_OPTS[] = {LISTING_OPTS};

static void gpus_pool(struct table *t, const json_t *pool, const struct when *w)
{
    (void)w;
    table_add(t, STYLE_PLAIN, json_get_str(pool, "pool", "(all)"));
}

/* "31/160 GiB" of those that tell. */
static void gpus_memory(struct table *t, const json_t *pool, const struct when *w)
{
    const double gib = 1024.0 * 1024 * 1024;
    double total = json_get_real(pool, "gpu_mem_total_bytes", 0);
    (void)w;
    if (total > 0)
        table_addf(t, STYLE_PLAIN, "%.0f/%.0fG", json_get_real(pool, "gpu_mem_used_bytes", 0) / gib,
                   total / gib);
    else
        table_add(t, STYLE_PLAIN, NULL);
}

#define GPUS(title_, key_, rank_)                                                                  \
    {                                                                                              \
        .title = (title_), .flags = COLUMN_RIGHT, .rank = (rank_), .key = (key_),                  \
        .as = CELL_NUMBER                                                                          \
    }

static const struct column POOLS[] = {
    {.title = "say_cluster", .rank = 9, .key = "cluster"},
    {.title = "say_pool", .flags = COLUMN_FLEX, .least = 8, .draw = gpus_pool},
    {.title = "say_type", .flags = COLUMN_FLEX, .least = 6, .rank = 8, .key = "type"},
    GPUS("say_total", "gpus.total", 0),
    GPUS("say_used", "gpus.used", 0),
    /* the mean of those that are measured */
    {.title = "say_util", .flags = COLUMN_RIGHT, .rank = 1, .key = "util", .as = CELL_RATIO},
    {.title = "say_mem", .flags = COLUMN_RIGHT, .rank = 6, .draw = gpus_memory},
    {.title = "say_held_idle",
     .flags = COLUMN_RIGHT,
     .rank = 4,
     .key = "gpus.idle_held",
     .as = CELL_VALUE},
    GPUS("say_foreign", "gpus.foreign", 7),
    GPUS("say_free", "gpus.free", 0),
    GPUS("say_draining", "gpus.draining", 6),
    GPUS("say_bad", "gpus.bad", 5),
    GPUS("say_largest", "largest_gang", 0),
    GPUS("say_waiting", "queued", 2),
    {.title = "say_next_free", .rank = 3, .key = "next_free", .as = CELL_TIME},
};

static const struct column POOL_LIST[] = {
    {.title = "say_pool", .flags = COLUMN_FLEX, .least = 8, .key = "pool"},
    {.title = "say_cluster", .rank = 3, .key = "cluster"},
    {.title = "say_nodes", .flags = COLUMN_RIGHT, .key = "nodes", .as = CELL_NUMBER},
    {.title = "say_type", .flags = COLUMN_FLEX, .least = 6, .rank = 2, .key = "type"},
    {.title = "say_total", .flags = COLUMN_RIGHT, .key = "gpus.total", .as = CELL_NUMBER},
    {.title = "say_free", .flags = COLUMN_RIGHT, .key = "gpus.free", .as = CELL_NUMBER},
    {.title = "say_waiting", .flags = COLUMN_RIGHT, .rank = 1, .key = "queued", .as = CELL_NUMBER},
};

static const struct command GPUS_COMMANDS[] = {
    {
        .name = "gpus",
        .args = "",
        .summary = "show GPUs by use, per pool",
        .text =
            "One row for the whole cluster and one for each label. LARGEST-GANG is how many GPUs "
            "one job could get now; NEXT-FREE is when the next lease is expected to end. Foreign "
            "GPUs are held by others in the same Ray cluster. UTIL is the mean use of the leased "
            "GPUs that are measured, IDLE how many of them do nothing, MEM how many GiB are in "
            "use on all GPUs that tell of their memory.",
        .example = "argus gpus --watch\tuntil Ctrl-C",
        OPTS(LS_OPTS),
        .ask = {.path = "/v1/pools",
                .table = {.key = "pools", COLUMNS(POOLS), .none = "say_no_pools"}},
    },
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
                          COLUMNS(POOL_LIST),
                          .having = "pool", /* the whole cluster is no pool */
                          .none = "say_no_labels"}},
    },
};

NOUN(gpus, GPUS_COMMANDS);

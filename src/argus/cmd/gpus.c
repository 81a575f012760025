/* SPDX-License-Identifier: Apache-2.0 */
/* gpus.c - GPUs by use, per cluster and pool. */
#include "argus/cmd/cmd.h"

#include <inttypes.h>
#include <stdlib.h>

#include "argus/jobview.h"
#include "argus/listing.h"
#include "base/str.h"

static const struct opt OPTS[] = {LISTING_OPTS};

static const struct column COLUMNS[] = {
    {.title = MSG_CLUSTER, .rank = 9},
    {.title = MSG_POOL, .flags = COLUMN_FLEX, .least = 8},
    {.title = MSG_TYPE, .flags = COLUMN_FLEX, .least = 6, .rank = 8},
    {.title = MSG_TOTAL, .flags = COLUMN_RIGHT},
    {.title = MSG_USED, .flags = COLUMN_RIGHT},
    {.title = MSG_FOREIGN, .flags = COLUMN_RIGHT, .rank = 7},
    {.title = MSG_FREE, .flags = COLUMN_RIGHT},
    {.title = MSG_DRAINING, .flags = COLUMN_RIGHT, .rank = 6},
    {.title = MSG_BAD, .flags = COLUMN_RIGHT, .rank = 5},
    {.title = MSG_LARGEST, .flags = COLUMN_RIGHT},
    {.title = MSG_WAITING, .flags = COLUMN_RIGHT, .rank = 2},
    {.title = MSG_NEXT_FREE, .rank = 3},
};

static void add_row(struct table *t, const json_t *pool, const struct when *w)
{
    static const char *const keys[] = {"total", "used", "foreign", "free", "draining", "bad"};
    char text[WHEN_TEXT_MAX];
    const json_t *gpus = json_get_object(pool, "gpus");
    const char *name = json_get_str(pool, "pool", NULL);
    table_add(t, STYLE_PLAIN, jobview_str(pool, "cluster"));
    table_add(t, STYLE_PLAIN, name ? name : "(all)");
    table_add(t, STYLE_PLAIN, json_get_str(pool, "type", NULL));
    for (size_t i = 0; i < array_len(keys); i++)
        table_addf(t, STYLE_PLAIN, "%g", json_get_real(gpus, keys[i], 0));
    table_addf(t, STYLE_PLAIN, "%g", json_get_real(pool, "largest_gang", 0));
    table_addf(t, STYLE_PLAIN, "%" PRId64, json_get_int(pool, "queued", 0));
    table_add(t, STYLE_PLAIN, when_point(w, when_get(pool, "next_free"), text));
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

const struct command cmd_gpus = {
    .name = "gpus",
    .args = "",
    .summary = "show GPUs by use, per pool",
    .text = "One row for the whole cluster and one for each label. LARGEST-GANG is how many GPUs "
            "one job "
            "could get now; NEXT-FREE is when the next lease is expected to end. Foreign are those "
            "that others hold in the same Ray cluster.",
    .example = "argus gpus --watch\tuntil Ctrl-C",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct listing_opts),
    .run = run,
};

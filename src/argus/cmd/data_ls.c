/* SPDX-License-Identifier: Apache-2.0 */
/* data_ls.c - the data sets that one may see. */
#include "argus/cmd/cmd.h"

#include "argus/datacall.h"
#include "argus/listing.h"

static const struct opt OPTS[] = {LISTING_OPTS};

static const struct column COLUMNS[] = {
    {.title = MSG_NAME, .flags = COLUMN_FLEX, .least = 16},
    {.title = MSG_OWNER, .flags = COLUMN_FLEX, .least = 8},
    {.title = MSG_STATE},
    {.title = MSG_ROWS, .flags = COLUMN_RIGHT},
    {.title = MSG_SIZE, .flags = COLUMN_RIGHT},
    {.title = MSG_FIT},
    {.title = MSG_MADE, .rank = 1},
    {.title = MSG_SOURCE, .flags = COLUMN_FLEX, .least = 12, .rank = 2},
};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    static const struct listing listing = {.path = "/v1/datasets",
                                           .key = "datasets",
                                           .columns = COLUMNS,
                                           .n_columns = array_len(COLUMNS),
                                           .add_row = datacall_dataset_row,
                                           .none = MSG_NO_DATA};
    return listing_run(cli, &listing, opts, args, err);
}

const struct command cmd_data_ls = {
    .name = "data ls",
    .args = "",
    .summary = "list the data sets",
    .text = "Common ones, your own, and those of your projects; admins see all. What is being "
            "imported is shown with how far it is.",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct listing_opts),
    .run = run,
};

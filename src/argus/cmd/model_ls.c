/* SPDX-License-Identifier: Apache-2.0 */
/* model_ls.c - the models that one may see. */
#include "argus/cmd/cmd.h"

#include "argus/datacall.h"
#include "argus/listing.h"

static const struct opt OPTS[] = {LISTING_OPTS};

static const struct column COLUMNS[] = {
    {.title = MSG_NAME, .flags = COLUMN_FLEX, .least = 16},
    {.title = MSG_OWNER, .flags = COLUMN_FLEX, .least = 8},
    {.title = MSG_STATE},
    {.title = MSG_SIZE, .flags = COLUMN_RIGHT},
    {.title = MSG_PARAMETERS, .flags = COLUMN_RIGHT},
    {.title = MSG_ARCHITECTURE, .flags = COLUMN_FLEX, .least = 10, .rank = 3},
    {.title = MSG_MADE, .rank = 1},
    {.title = MSG_SOURCE, .flags = COLUMN_FLEX, .least = 12, .rank = 2},
};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    static const struct listing listing = {.path = "/v1/models",
                                           .key = "models",
                                           .columns = COLUMNS,
                                           .n_columns = array_len(COLUMNS),
                                           .add_row = datacall_model_row,
                                           .none = MSG_NO_MODELS};
    return listing_run(cli, &listing, opts, args, err);
}

const struct command cmd_model_ls = {
    .name = "model ls",
    .args = "",
    .summary = "list the models",
    .text = "Common ones, your own, and those of your projects; admins see all. What is being "
            "imported is shown with how far it is.",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct listing_opts),
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_ls.c - the snapshots that one may see. */
#include "argus/cmd/cmd.h"

#include "argus/listing.h"
#include "argus/snapcall.h"

static const struct opt OPTS[] = {LISTING_OPTS};

static const struct column COLUMNS[] = {
    {.title = MSG_NAME, .flags = COLUMN_FLEX, .least = 16},
    {.title = MSG_OWNER, .flags = COLUMN_FLEX, .least = 8},
    {.title = MSG_VERL},
    {.title = MSG_FILES, .flags = COLUMN_RIGHT, .rank = 1},
    {.title = MSG_SIZE, .flags = COLUMN_RIGHT},
    {.title = MSG_HASH, .rank = 2},
    {.title = MSG_MADE},
};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    static const struct listing listing = {.path = "/v1/snapshots",
                                           .key = "snapshots",
                                           .columns = COLUMNS,
                                           .n_columns = array_len(COLUMNS),
                                           .add_row = snapcall_row,
                                           .none = MSG_NO_SNAPSHOTS};
    return listing_run(cli, &listing, opts, args, err);
}

const struct command cmd_snapshot_ls = {
    .name = "snapshot ls",
    .args = "",
    .summary = "list the snapshots",
    .text = "Common ones and your own; admins see all. VERL is the version of verl in it.",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct listing_opts),
    .run = run,
};

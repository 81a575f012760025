/* SPDX-License-Identifier: Apache-2.0 */
/* preset_ls.c - the presets that one may use. */
#include "argus/cmd/cmd.h"

#include "argus/listing.h"
#include "argus/presetcall.h"

static const struct opt OPTS[] = {LISTING_OPTS};

static const struct column COLUMNS[] = {
    {.title = MSG_NAME, .flags = COLUMN_FLEX, .least = 16},
    {.title = MSG_PROJECT, .flags = COLUMN_FLEX, .least = 9},
    {.title = MSG_WORKLOAD},
    {.title = MSG_REQUIRED, .flags = COLUMN_FLEX, .least = 12, .rank = 1},
    {.title = MSG_TEXT, .flags = COLUMN_FLEX, .least = 20, .rank = 2},
};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    static const struct listing listing = {.path = "/v1/presets",
                                           .key = "presets",
                                           .columns = COLUMNS,
                                           .n_columns = array_len(COLUMNS),
                                           .add_row = presetcall_row,
                                           .none = MSG_NO_PRESETS};
    return listing_run(cli, &listing, opts, args, err);
}

const struct command cmd_preset_ls = {
    .name = "preset ls",
    .args = "",
    .summary = "list the presets",
    .text = "Those that are shipped, and those of your projects. A spec names one with 'preset: "
            "NAME', 'argus submit' with --preset.",
    .example = "argus preset ls\twhat there is",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct listing_opts),
    .run = run,
};

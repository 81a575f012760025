/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt_ls.c - the checkpoints of a job. */
#include "argus/cmd/cmd.h"

#include "argus/datacall.h"
#include "argus/jobview.h"
#include "argus/listing.h"

static const struct opt OPTS[] = {LISTING_OPTS};

static const struct column COLUMNS[] = {
    {.title = MSG_STEP, .flags = COLUMN_RIGHT},
    {.title = MSG_STATE},
    {.title = MSG_SIZE, .flags = COLUMN_RIGHT},
    {.title = MSG_MADE},
    {.title = MSG_ATTEMPT, .flags = COLUMN_RIGHT},
    {.title = MSG_VALUE, .flags = COLUMN_RIGHT},
    {.title = MSG_NOTE, .flags = COLUMN_FLEX, .least = 20},
};

static void add_row(struct table *t, const json_t *c, const struct when *w)
{
    char size[DATACALL_SIZE_MAX], at[WHEN_TEXT_MAX];
    const char *state = jobview_str(c, "state");
    bool is_good = json_get_bool(c, "verified", false);
    table_addf(t, STYLE_BOLD, "%lld", (long long)json_get_int(c, "step", 0));
    table_add(t, is_good ? STYLE_GREEN : STYLE_RED, state);
    table_add(t, STYLE_PLAIN, datacall_size(json_get_int(c, "bytes", 0), size));
    table_add(t, STYLE_PLAIN, when_point(w, when_get(c, "at"), at));
    table_addf(t, STYLE_PLAIN, "%lld", (long long)json_get_int(c, "attempt", 0));
    if (json_is_number(json_object_get(c, "value")))
        table_addf(t, STYLE_PLAIN, "%.6g", json_get_real(c, "value", 0));
    else
        table_add(t, STYLE_PLAIN, NULL);
    table_add(t, STYLE_DIM, json_get_str(c, "why", NULL));
}

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    _cleanup_(freep) char *path = cli_job_path(args->v[0], "/checkpoints");
    const struct listing listing = {.path = path,
                                    .key = "checkpoints",
                                    .columns = COLUMNS,
                                    .n_columns = array_len(COLUMNS),
                                    .add_row = add_row,
                                    .none = MSG_NO_CHECKPOINTS};
    return listing_run(cli, &listing, opts, args, err);
}

const struct command cmd_ckpt_ls = {
    .name = "ckpt ls",
    .args = "ID",
    .least = 1,
    .most = 1,
    .summary = "list the checkpoints of a job",
    .text =
        "STATE is verified (every shard is there and its directory could be read), partial (it is "
        "being written, or it was never finished) or broken. Only a verified one is gone on "
        "from. VALUE is that of checkpoint.keep_best's metric at its step.",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct listing_opts),
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt_ls.c - the checkpoints of a job, or what each job of a project or user has. */
#include "argus/cmd/cmd.h"

#include "argus/ckptcall.h"
#include "argus/datacall.h"
#include "argus/jobview.h"
#include "argus/listing.h"

struct ls_opts {
    struct listing_opts listing; /* first: its options know no other place */
    struct ckptcall_scope scope;
};

static const struct opt OPTS[] = {LISTING_OPTS, CKPTCALL_SCOPE_OPTS(struct ls_opts)};

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

static const struct column SUM_COLUMNS[] = {
    {.title = MSG_JOB, .flags = COLUMN_FLEX, .least = 12},
    {.title = MSG_USER, .flags = COLUMN_FLEX, .least = 6},
    {.title = MSG_PROJECT, .flags = COLUMN_FLEX, .least = 6, .rank = 1},
    {.title = MSG_CHECKPOINTS, .flags = COLUMN_RIGHT},
    {.title = MSG_SIZE, .flags = COLUMN_RIGHT},
    {.title = MSG_STEP, .flags = COLUMN_RIGHT},
};

static void add_sum(struct table *t, const json_t *sum, const struct when *w)
{
    char size[DATACALL_SIZE_MAX];
    int64_t newest = json_get_int(sum, "newest", 0);
    (void)w;
    table_add(t, STYLE_BOLD, jobview_str(sum, "id"));
    table_add(t, STYLE_PLAIN, jobview_str(sum, "user"));
    table_add(t, STYLE_PLAIN, jobview_str(sum, "project"));
    table_addf(t, STYLE_PLAIN, "%lld", (long long)json_get_int(sum, "checkpoints", 0));
    table_add(t, STYLE_PLAIN, datacall_size(json_get_int(sum, "bytes", 0), size));
    if (newest)
        table_addf(t, STYLE_GREEN, "%lld", (long long)newest);
    else
        table_add(t, STYLE_RED, "-");
}

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct ls_opts *o = opts;
    int r = ckptcall_check_scope(&o->scope, args, err);
    if (r < 0)
        return r;
    _cleanup_(freep) char *path =
        args->n ? cli_job_path(args->v[0], "/checkpoints") : ckptcall_path(&o->scope);
    const struct listing of_job = {.path = path,
                                   .key = "checkpoints",
                                   .columns = COLUMNS,
                                   .n_columns = array_len(COLUMNS),
                                   .add_row = add_row,
                                   .none = MSG_NO_CHECKPOINTS};
    const struct listing of_all = {.path = path,
                                   .key = "jobs",
                                   .columns = SUM_COLUMNS,
                                   .n_columns = array_len(SUM_COLUMNS),
                                   .add_row = add_sum,
                                   .none = MSG_NO_CHECKPOINTS};
    return listing_run(cli, args->n ? &of_job : &of_all, &o->listing, args, err);
}

const struct command cmd_ckpt_ls = {
    .name = "ckpt ls",
    .args = "[ID]",
    .most = 1,
    .summary = "list the checkpoints of a job, or what the jobs of a project have",
    .text =
        "STATE is verified (every shard is there and its directory could be read), partial (it is "
        "being written, or it was never finished) or broken. Only a verified one is gone on "
        "from. VALUE is that of checkpoint.keep_best's metric at its step. With --project or "
        "--user "
        "in place of ID: each job that has some, the largest first; STEP is the newest that can be "
        "read.",
    .example = "argus ckpt ls grpo-7\nargus ckpt ls --project rlhf\twhat takes its quota",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct ls_opts),
    .run = run,
};

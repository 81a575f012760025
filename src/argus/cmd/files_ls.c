/* SPDX-License-Identifier: Apache-2.0 */
/* files_ls.c - what is in a directory of the shared root. */
#include "argus/cmd/cmd.h"

#include <string.h>

#include "argus/filecall.h"
#include "argus/progress.h"
#include "argus/table.h"
#include "base/str.h"

struct ls_opts {
    bool utc;
    int output;
    int64_t limit;
};

static const struct opt OPTS[] = {
    {.name = "limit",
     .type = OPT_NUMBER,
     .offset = offsetof(struct ls_opts, limit),
     .arg = "N",
     .doc = "at most N entries (10000)"},
    OPT_OUTPUT(struct ls_opts),
    OPT_UTC(struct ls_opts),
};

static const struct column COLUMNS[] = {
    {.title = MSG_NAME, .flags = COLUMN_FLEX, .least = 16},
    {.title = MSG_KIND, .rank = 2},
    {.title = MSG_SIZE, .flags = COLUMN_RIGHT},
    {.title = MSG_CHANGED, .rank = 1},
};

static void add_row(struct table *t, const json_t *e, const char *name, const struct when *w)
{
    char size[PROGRESS_SIZE_MAX] = "", at[WHEN_TEXT_MAX];
    const char *kind = json_get_str(e, "kind", "");
    const char *target = json_get_str(e, "target", NULL);
    bool is_file = str_eq(kind, "file");
    if (target)
        table_addf(t, STYLE_CYAN, "%s -> %s", name, target);
    else
        table_addf(t, STYLE_PLAIN, "%s%s", name, str_eq(kind, "directory") ? "/" : "");
    table_add(t, STYLE_PLAIN, kind);
    table_add(t, STYLE_PLAIN,
              is_file ? progress_size((double)json_get_int(e, "bytes", 0), size) : NULL);
    table_add(t, STYLE_PLAIN, when_point(w, when_get(e, "changed_at"), at));
}

static void print(struct cli *cli, const json_t *v, const struct ls_opts *o)
{
    _cleanup_(table_freep) struct table *t = table_new(COLUMNS, array_len(COLUMNS));
    struct when w = cli_when(cli, o->utc);
    const json_t *entries = json_get_array(v, "entries");
    size_t i;
    json_t *e;
    if (!entries)
        add_row(t, v, json_get_str(v, "path", "-"), &w);
    json_array_foreach (entries, i, e)
        add_row(t, e, json_get_str(e, "name", "-"), &w);
    (void)table_print(t, &cli->term, o->output == OUTPUT_WIDE,
                      cli->out); /* nothing is dropped unsaid */
    if (json_get_str(v, "next_cursor", NULL))
        cli_say(cli, MSG_MORE, NULL, NULL, NULL);
}

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct ls_opts *o = opts;
    _cleanup_(json_unrefp) json_t *v = NULL;
    int r = cli_open(cli, err);
    if (r == 0)
        r = filecall_look(cli, args->n ? args->v[0] : NULL, o->limit ? o->limit : 10000, &v, err);
    if (r < 0)
        return r;
    if (o->output >= OUTPUT_JSON)
        cli_emit(cli, v, o->output);
    else
        print(cli, v, o);
    return 0;
}

const struct command cmd_files_ls = {
    .name = "files ls",
    .args = "[PATH]",
    .most = 1,
    .summary = "list a directory of the shared root",
    .text = "PATH is common/…, users/<you>/… or jobs/<id>/… below the shared root, or an absolute "
            "path in it. Without one, shows where you may begin.",
    .example = "argus files ls common/datasets\tdata sets of everybody\n"
               "argus files ls jobs/grpo-7/checkpoints -o json\tfor programs",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct ls_opts),
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* find.c - whatever has this in its name, of all kinds: what fits best first, as the server ranks
 * it. */
#include "argus/noun/noun.h"

#include <inttypes.h>

#include "argus/cli/listing.h"
#include "argus/show/member.h"
#include "base/message.h"
#include "base/text.h"

struct find_opts {
    int output;
    int64_t limit; /* 0: not given */
};

static const struct opt FIND_OPTS[] = {
    {.name = "limit",
     .type = OPT_NUMBER,
     .offset = offsetof(struct find_opts, limit),
     .arg = "N",
     .doc = "show at most N, 1 to 50 (20)"},
    OPT_OUTPUT(struct find_opts),
};

/* A job is called by its name, and asked for by its id. */
static void find_name(struct table *t, const json_t *hit, const struct when *w)
{
    const char *id = member_str(hit, "id"), *name = member_str(hit, "name");
    (void)w;
    if (str_eq(member_str(hit, "kind"), "job") && !str_eq(id, name))
        table_addf(t, STYLE_BOLD, "%s (%s)", id, name);
    else
        table_add(t, STYLE_BOLD, id);
}

static const struct column FOUND[] = {
    {.title = "say_kind", .key = "kind"},
    {.title = "say_name", .flags = COLUMN_FLEX, .least = 24, .draw = find_name},
    {.title = "say_about", .key = "about"},
};
static const struct listing FOUND_LIST = {.key = "results",
                                          COLUMNS(FOUND),
                                          .none = "say_nothing_found"};

static int find_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct find_opts *o = opts;
    _cleanup_(buf_release) struct buf path = BUF_INIT(8192);
    _cleanup_(json_unrefp) json_t *found = NULL;
    char limit[24];
    text_printf(limit, "%" PRId64, o->limit);
    (void)buf_adds(&path, "/v1/search"); /* it fits */
    url_query(&path, "q", args->v[0]);
    url_query(&path, "limit", o->limit ? limit : NULL);
    if (path.failed)
        return message_refuse(err, ERR_USAGE, "cli_filters_long", MESSAGE_NO_ARGS);
    int r = cli_open(cli, err);
    if (r >= 0)
        r = client_get(cli->client, buf_str(&path), &found, err);
    if (r >= 0)
        listing_print(cli, &FOUND_LIST, found, o->output, false);
    return r < 0 ? r : 0;
}

static const struct command FIND_COMMANDS[] = {
    {
        .name = "find",
        .args = "TEXT",
        .least = 1,
        .most = 1,
        .summary = "find whatever has TEXT in its name: jobs, nodes, people, data, models …",
        .text =
            "Jobs by id or name, and all else that you may see by its name: nodes, users, projects, data sets, "
            "models, services, pipelines, notebooks, snapshots, presets. Upper and lower case are the same. First what is "
            "called TEXT, then what begins with it, then what has a word that does, then the rest; last what "
            "belongs to a user or project of that name. NAME is alice/main where several users may have one of that name, "
            "rl/baseline of a project's preset, and alice:gsm8k@2 of data sets and models. ABOUT is the "
            "state of a job or node, the role of a user, the project of a preset, else the owner.",
        .example = "argus find gsm8k\n"
                   "argus find alice --limit 50 -o json",
        .opts = FIND_OPTS,
        .n_opts = array_len(FIND_OPTS),
        .opts_size = sizeof(struct find_opts),
        .run = find_run,
    },
};

NOUN(find, FIND_COMMANDS);

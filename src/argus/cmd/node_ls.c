/* SPDX-License-Identifier: Apache-2.0 */
/* node_ls.c - the machines as a table: what is free on each, who is on it, and
 * whether it is well. */
#include "argus/cmd/cmd.h"

#include <inttypes.h>
#include <stdlib.h>

#include "argus/jobview.h"
#include "argus/listing.h"
#include "base/str.h"

static const struct opt OPTS[] = {LISTING_OPTS};

static const struct column COLUMNS[] = {
    {.title = MSG_NODE},
    {.title = MSG_POOL, .flags = COLUMN_FLEX, .least = 6, .rank = 2},
    {.title = MSG_STATE},
    {.title = MSG_GPUS, .flags = COLUMN_RIGHT},
    {.title = MSG_JOBS, .flags = COLUMN_FLEX, .least = 8},
    {.title = MSG_HEALTH, .flags = COLUMN_FLEX, .least = 6, .rank = 4},
    {.title = MSG_SINCE, .rank = 3},
    {.title = MSG_IP, .flags = COLUMN_WIDE},
    {.title = MSG_REASON, .flags = COLUMN_FLEX, .least = 10},
};

/* free/used/bad, as the title says. */
static void add_gpus(struct table *t, const json_t *node)
{
    const json_t *gpus = json_get_object(node, "gpus");
    if (!gpus)
        table_add(t, STYLE_PLAIN, NULL);
    else
        table_addf(t, STYLE_PLAIN, "%g/%g/%g", json_get_real(gpus, "free", 0),
                   json_get_real(gpus, "used", 0), json_get_real(gpus, "bad", 0));
}

static void add_jobs(struct table *t, const json_t *node)
{
    struct buf names = BUF_INIT(4096);
    size_t i;
    json_t *v;
    json_array_foreach (json_get_array(node, "jobs"), i, v)
        if (json_is_string(v))
            (void)buf_addf(&names, "%s%s", i ? "," : "", json_string_value(v)); /* the first ones */
    int64_t hidden = json_get_int(node, "jobs_hidden", 0);
    if (hidden > 0)
        (void)buf_addf(&names, "%s+%" PRId64, names.len ? "," : "", hidden); /* cut: fine */
    table_add(t, STYLE_PLAIN, buf_str(&names));
    buf_release(&names);
}

static void add_row(struct table *t, const json_t *node, const struct when *w)
{
    char text[WHEN_TEXT_MAX];
    bool is_head = json_get_bool(node, "is_head", false);
    char *state = jobview_state(node), *reason = jobview_reason(node);
    table_addf(t, STYLE_PLAIN, "%s%s", jobview_str(node, "name"), is_head ? " (head)" : "");
    table_add(t, STYLE_PLAIN, jobview_str(node, "pool"));
    table_add(t, str_starts(state, "online") ? STYLE_GREEN : STYLE_YELLOW, state);
    add_gpus(t, node);
    add_jobs(t, node);
    table_add(t, STYLE_PLAIN, jobview_str(node, "health"));
    table_add(t, STYLE_PLAIN, when_point(w, when_get(node, "since"), text));
    table_add(t, STYLE_PLAIN, jobview_str(node, "ip"));
    table_add(t, STYLE_PLAIN, *reason ? reason : json_get_str(node, "reason", ""));
    free(state);
    free(reason);
}

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    static const struct listing listing = {
        .path = "/v1/nodes",
        .key = "nodes",
        .columns = COLUMNS,
        .n_columns = array_len(COLUMNS),
        .add_row = add_row,
        .none = MSG_NO_NODES,
    };
    return listing_run(cli, &listing, opts, args, err);
}

const struct command cmd_node_ls = {
    .name = "node ls",
    .args = "",
    .summary = "list the machines",
    .text = "Lists the nodes of the Ray cluster: state, GPUs as free/used/bad, the jobs on each, "
            "health. The head carries no job. '+2' are two jobs that you may not see.",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct listing_opts),
    .run = run,
};

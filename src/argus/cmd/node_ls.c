/* SPDX-License-Identifier: Apache-2.0 */
/* node_ls.c - the machines as a table: what is free on each, who is on it, and
 * whether it is well. */
#include "argus/cmd/cmd.h"

#include <inttypes.h>
#include <stdlib.h>

#include "argus/jobview.h"
#include "argus/table.h"
#include "base/str.h"

struct node_opts {
    int output;
    bool utc, watch;
};

static const struct opt OPTS[] = {
    OPT_OUTPUT(struct node_opts),
    OPT_UTC(struct node_opts),
    OPT_WATCH(struct node_opts),
};

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

static int page(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct node_opts *o = opts;
    _cleanup_(json_unrefp) json_t *answer = NULL;
    (void)args;
    int r = client_get(cli->client, "/v1/nodes", &answer, err);
    if (r < 0)
        return r;
    if (o->output >= OUTPUT_JSON) {
        cli_emit(cli, answer, o->output);
        return 0;
    }
    _cleanup_(table_freep) struct table *t = table_new(COLUMNS, array_len(COLUMNS));
    struct when w = cli_when(cli, o->utc);
    size_t i;
    json_t *node;
    json_array_foreach (json_get_array(answer, "nodes"), i, node)
        add_row(t, node, &w);
    int dropped = table_print(t, &cli->term, o->output == OUTPUT_WIDE, cli->out);
    if (!i)
        cli_say(cli, MSG_NO_NODES, "", "", "");
    else if (dropped)
        cli_say(cli, MSG_COLUMNS_HIDDEN, "", "", "");
    return 0;
}

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct node_opts *o = opts;
    int r = cli_open(cli, err);
    return r < 0 ? r : cli_page(cli, o->watch, page, opts, args, err);
}

const struct command cmd_node_ls = {
    .name = "node ls",
    .args = "",
    .summary = "list the machines",
    .text = "Lists the nodes of the Ray cluster: state, GPUs as free/used/bad, the jobs on each, "
            "health. The head carries no job.",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct node_opts),
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* listing.c - see listing.h. What the server answered is printed as it is for programs (-o json,
 * yaml); the table for people leaves out the columns for which the terminal has no room. */
#include "argus/listing.h"

struct shown {
    const struct listing *l;
    const struct listing_opts *o;
};

static int page(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct shown *s = opts;
    _cleanup_(json_unrefp) json_t *answer = NULL;
    (void)args;
    int r = client_get(cli->client, s->l->path, &answer, err);
    if (r < 0)
        return r;
    if (s->o->output >= OUTPUT_JSON) {
        cli_emit(cli, answer, s->o->output);
        return 0;
    }
    _cleanup_(table_freep) struct table *t = table_new(s->l->columns, s->l->n_columns);
    struct when w = cli_when(cli, s->o->utc);
    size_t i;
    json_t *item;
    json_array_foreach (json_get_array(answer, s->l->key), i, item)
        s->l->add_row(t, item, &w);
    int dropped = table_print(t, &cli->term, s->o->output == OUTPUT_WIDE, cli->out);
    if (!table_rows(t))
        cli_say(cli, s->l->none, "", "", "");
    else if (dropped)
        cli_say(cli, MSG_COLUMNS_HIDDEN, "", "", "");
    return 0;
}

int listing_run(struct cli *cli,
                const struct listing *l,
                const struct listing_opts *o,
                const struct strv *args,
                struct err *err)
{
    struct shown s = {l, o};
    int r = cli_open(cli, err);
    return r < 0 ? r : cli_page(cli, o->watch, page, &s, args, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* listing.c - see listing.h. What the server answered is printed as it is for programs (-o json,
 * yaml); the table for people leaves out the columns for which the terminal has no room. */
#include "argus/cli/listing.h"

#include "argus/cli/cli.h"
#include "argus/show/member.h"

struct shown {
    const char *path;
    const struct listing *l;
    const struct listing_opts *o;
};

void listing_print(struct cli *cli,
                   const struct listing *l,
                   const json_t *answer,
                   int output,
                   bool utc)
{
    if (output >= OUTPUT_JSON) {
        cli_emit(cli, answer, output);
        return;
    }
    _cleanup_(table_freep) struct table *t = table_new(l->columns, l->n_columns);
    struct when w = cli_when(cli, utc);
    size_t i;
    json_t *item;
    json_array_foreach (json_get_array(answer, l->key), i, item)
        if (!l->having || !json_is_null(json_object_get(item, l->having)))
            table_add_item(t, item, &w);
    int dropped = table_print(t, &cli->term, output == OUTPUT_WIDE, cli->out);
    if (table_rows(t) && dropped)
        cli_say(cli, "say_columns_hidden", "", "", "");
    else if (!table_rows(t) && l->unsettled && json_get_bool(answer, l->unsettled, false))
        cli_say(cli, l->yet, "", "", "");
    else if (!table_rows(t) && l->none != NULL)
        cli_say(cli, l->none, "", "", "");
}

void listing_print_ids(struct cli *cli, const json_t *items, const char *none)
{
    size_t i;
    json_t *item;
    json_array_foreach (items, i, item)
        (void)fprintf(cli->out, "%s\n", member_str(item, "id"));
    if (none && !json_array_size(items))
        cli_say(cli, none, "", "", "");
}

static int listing_page(struct cli *cli, void *shown, const struct strv *args, struct err *err)
{
    const struct shown *s = shown;
    _cleanup_(json_unrefp) json_t *answer = NULL;
    (void)args;
    int r = client_get(cli->client, s->path, &answer, err);
    if (r >= 0)
        listing_print(cli, s->l, answer, s->o->output, s->o->utc);
    return r < 0 ? r : 0;
}

int listing_run(struct cli *cli,
                const char *path,
                const struct listing *l,
                const struct listing_opts *o,
                struct err *err)
{
    struct shown s = {path, l, o};
    int r = cli_open(cli, err);
    return r < 0 ? r : cli_page(cli, o->watch, listing_page, &s, NULL, err);
}

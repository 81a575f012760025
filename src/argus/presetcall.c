/* SPDX-License-Identifier: Apache-2.0 */
/* presetcall.c - see presetcall.h. A hole's value is shown as it would be written after --set; what
 * must be given says so in its place. */
#include "argus/presetcall.h"

#include <stdlib.h>

#include "argus/jobview.h"
#include "base/str.h"

enum { PATH_BYTES = 1024, NAMES_MAX = 8 << 10 };

char *presetcall_path(const char *name, const char *project)
{
    struct buf path = BUF_INIT(PATH_BYTES);
    (void)buf_adds(&path, "/v1/presets/"); /* overflow: the server knows no such name */
    url_escape(&path, name);
    url_query(&path, "project", project);
    return buf_take(&path);
}

/* "model_id, train_file": those that must be filled. */
static void add_required(struct table *t, const json_t *preset)
{
    _cleanup_(buf_release) struct buf names = BUF_INIT(NAMES_MAX);
    size_t i;
    const json_t *hole;
    json_array_foreach (json_get_array(preset, "holes"), i, hole)
        if (json_get_bool(hole, "required", false))
            (void)buf_addf(&names, "%s%s", names.len ? ", " : "",
                           jobview_str(hole, "name")); /* too many are cut */
    table_add(t, STYLE_PLAIN, buf_str(&names));
}

void presetcall_row(struct table *t, const json_t *preset, const struct when *w)
{
    (void)w;
    table_add(t, STYLE_BOLD, jobview_str(preset, "name"));
    table_add(t, STYLE_PLAIN, json_get_str(preset, "project", "(shipped)"));
    table_add(t, STYLE_PLAIN, json_get_str(preset, "workload", NULL));
    add_required(t, preset);
    table_add(t, STYLE_PLAIN, json_get_str(preset, "description", NULL));
}

static void add_value(struct table *t, const json_t *v)
{
    char *text = json_is_string(v) ? xstrdup(json_string_value(v))
                 : json_is_null(v) ? NULL
                                   : json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
    table_add(t, STYLE_PLAIN, text);
    free(text);
}

void presetcall_print(struct cli *cli, const json_t *preset, bool wide)
{
    static const struct column columns[] = {
        {.title = MSG_HOLE},
        {.title = MSG_KIND},
        {.title = MSG_VALUE, .flags = COLUMN_FLEX, .least = 10},
        {.title = MSG_EXAMPLE, .flags = COLUMN_FLEX | COLUMN_WIDE, .least = 10},
        {.title = MSG_TEXT, .flags = COLUMN_FLEX, .least = 20}};
    _cleanup_(table_freep) struct table *t = table_new(columns, array_len(columns));
    size_t i;
    const json_t *hole;
    cli_talk(cli, "%s", jobview_str(preset, "description"));
    json_array_foreach (json_get_array(preset, "holes"), i, hole) {
        bool required = json_get_bool(hole, "required", false);
        table_add(t, STYLE_BOLD, jobview_str(hole, "name"));
        table_add(t, STYLE_PLAIN, jobview_str(hole, "type"));
        if (required)
            table_add(t, STYLE_YELLOW, "required");
        else
            add_value(t, json_object_get(hole, "default"));
        add_value(t, json_object_get(hole, "example"));
        table_add(t, STYLE_PLAIN, json_get_str(hole, "description", NULL));
    }
    (void)table_print(t, &cli->term, wide, cli->out); /* what has no room is in -o wide */
}

/* SPDX-License-Identifier: Apache-2.0 */
/* preset.c - presets: specs with holes. A hole's value is shown as it would be written after --set;
 * what must be given says so in its place. Jobs that were made of a preset keep their spec. */
#include "argus/noun/noun.h"

#include <stdlib.h>
#include <string.h>

#include "argus/job/submission.h"
#include "argus/model/entry.h"
#include "argus/show/member.h"
#include "base/message.h"

enum { NAMES_MAX = 8 << 10 };

static const struct opt LS_OPTS[] = {LISTING_OPTS};

struct preset_show_opts {
    int output;
    const char *project;
    bool text;
};

static const struct opt SHOW_OPTS[] = {
    {.name = "project",
     .type = OPT_TEXT,
     .offset = offsetof(struct preset_show_opts, project),
     .arg = "NAME",
     .doc = "presets of this project alone"},
    {.name = "text",
     .type = OPT_FLAG,
     .offset = offsetof(struct preset_show_opts, text),
     .doc = "print its YAML as it was stored, to be changed and stored under another name"},
    OPT_OUTPUT(struct preset_show_opts),
};

struct preset_add_opts {
    int output;
    const char *name, *project;
};

static const struct opt ADD_OPTS[] = {
    {.name = "name",
     .type = OPT_TEXT,
     .offset = offsetof(struct preset_add_opts, name),
     .arg = "NAME",
     .doc = "name of the preset; if not given, that of FILE without .yaml"},
    {.name = "project",
     .type = OPT_TEXT,
     .offset = offsetof(struct preset_add_opts, project),
     .arg = "NAME",
     .doc = "project that owns it; default, which is everybody's, if not given"},
    OPT_OUTPUT(struct preset_add_opts),
};

static const struct opt RM_OPTS[] = {
    {.name = "project",
     .type = OPT_TEXT,
     .arg = "NAME",
     .doc = "presets of this project; those of project default if not given",
     .to = "query:project"},
    ENTRY_DRY_RUN,
};

/* ---- tables ---- */

static void preset_project(struct table *t, const json_t *preset, const struct when *w)
{
    (void)w;
    table_add(t, STYLE_PLAIN, json_get_str(preset, "project", "(shipped)"));
}

/* "model_id, train_file": those that must be filled. */
static void preset_required(struct table *t, const json_t *preset, const struct when *w)
{
    _cleanup_(buf_release) struct buf names = BUF_INIT(NAMES_MAX);
    size_t i;
    const json_t *hole;
    (void)w;
    json_array_foreach (json_get_array(preset, "holes"), i, hole)
        if (json_get_bool(hole, "required", false))
            (void)buf_addf(&names, "%s%s", names.len ? ", " : "",
                           member_str(hole, "name")); /* too many are cut */
    table_add(t, STYLE_PLAIN, buf_str(&names));
}

static const struct column PRESETS[] = {
    {.title = "say_name", .flags = COLUMN_FLEX, .least = 16, .key = "name", .style = STYLE_BOLD},
    {.title = "say_project", .flags = COLUMN_FLEX, .least = 9, .draw = preset_project},
    {.title = "say_workload", .key = "workload"},
    {.title = "say_required",
     .flags = COLUMN_FLEX,
     .least = 12,
     .rank = 1,
     .draw = preset_required},
    {.title = "say_text", .flags = COLUMN_ROOM, .key = "description"},
};

static void preset_add_value(struct table *t, const json_t *v)
{
    char *text = json_is_string(v) ? xstrdup(json_string_value(v))
                 : json_is_null(v)
                     ? NULL
                     : json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15));
    table_add(t, STYLE_PLAIN, text);
    free(text);
}

static void preset_value(struct table *t, const json_t *hole, const struct when *w)
{
    (void)w;
    if (json_get_bool(hole, "required", false))
        table_add(t, STYLE_YELLOW, "required");
    else
        preset_add_value(t, json_object_get(hole, "default"));
}

static void preset_example(struct table *t, const json_t *hole, const struct when *w)
{
    (void)w;
    preset_add_value(t, json_object_get(hole, "example"));
}

static const struct column HOLES[] = {
    {.title = "say_hole", .flags = COLUMN_FLEX, .least = 12, .key = "name", .style = STYLE_BOLD},
    {.title = "say_kind", .key = "type"},
    {.title = "say_value", .flags = COLUMN_FLEX, .least = 10, .draw = preset_value},
    {.title = "say_example",
     .flags = COLUMN_FLEX | COLUMN_WIDE,
     .least = 10,
     .draw = preset_example},
    {.title = "say_text", .flags = COLUMN_ROOM, .key = "description"},
};

/* ---- more than data ---- */

/* "/v1/presets/NAME?project=P": yours. */
static char *preset_path(const char *name, const char *project)
{
    struct buf path = BUF_INIT(1024);
    (void)buf_adds(&path, "/v1/presets/"); /* overflow: the server knows no such name */
    buf_add_url(&path, name);
    url_query(&path, "project", project);
    return buf_take(&path);
}

static void preset_print(struct cli *cli, const json_t *preset, bool wide)
{
    _cleanup_(table_freep) struct table *t = table_new(HOLES, array_len(HOLES));
    size_t i;
    const json_t *hole;
    cli_talk(cli, "%s", member_str(preset, "description"));
    json_array_foreach (json_get_array(preset, "holes"), i, hole)
        table_add_item(t, hole, NULL);
    (void)table_print(t, &cli->term, wide, cli->out); /* what has no room is in -o wide */
}

static int preset_show(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct preset_show_opts *o = opts;
    _cleanup_(json_unrefp) json_t *answer = NULL;
    _cleanup_(freep) char *path = preset_path(args->v[0], o->project);
    int r = cli_open(cli, err);
    if (r >= 0)
        r = client_get(cli->client, path, &answer, err);
    if (r < 0)
        return r;
    if (o->text)
        (void)fputs(json_get_str(answer, "text", ""), cli->out);
    else if (o->output >= OUTPUT_JSON)
        cli_emit(cli, answer, o->output);
    else
        preset_print(cli, answer, o->output == OUTPUT_WIDE);
    return 0;
}

/* "grpo-big" of "a/grpo-big.yaml"; yours. */
static char *preset_name_of(const char *file)
{
    const char *slash = strrchr(file, '/'), *last = slash ? slash + 1 : file;
    size_t n = strlen(last);
    if (str_ends(last, ".yaml"))
        n -= strlen(".yaml");
    else if (str_ends(last, ".yml"))
        n -= strlen(".yml");
    return xstrndup(last, n);
}

static int preset_add(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct preset_add_opts *o = opts;
    static const struct submission_wish none = {0};
    _cleanup_(submission_release) struct submission s = {0};
    _cleanup_(json_unrefp) json_t *answer = NULL;
    _cleanup_(freep) char *name = o->name ? xstrdup(o->name) : preset_name_of(args->v[0]);
    _cleanup_(freep) char *path = preset_path(name, o->project);
    if (!o->name && str_eq(args->v[0], "-"))
        return message_refuse(err, ERR_USAGE, "cli_give_name", MESSAGE_NO_ARGS);
    int r = submission_read(&s, args->v[0], &none, err);
    if (r >= 0)
        r = cli_open(cli, err);
    if (r >= 0)
        r = submission_put(&s, cli, path, &answer, err);
    if (r < 0)
        return r;
    if (o->output >= OUTPUT_JSON)
        cli_emit(cli, answer, o->output);
    else
        (void)fprintf(cli->out, "preset %s stored\n", member_str(answer, "name"));
    return 0;
}

static const struct command PRESET_COMMANDS[] = {
    {
        .name = "preset ls",
        .args = "",
        .summary = "list the presets",
        .text = "Lists the shipped presets, and those of your projects. A spec names one with "
                "'preset: NAME', 'argus submit' with --preset.",
        .example = "argus preset ls\twhat there is",
        OPTS(LS_OPTS),
        .ask = {.path = "/v1/presets",
                .table = {.key = "presets", COLUMNS(PRESETS), .none = "say_no_presets"}},
    },
    {
        .name = "preset show",
        .args = "NAME",
        .least = 1,
        .most = 1,
        .summary = "show a preset's holes",
        .text = "Shows each hole with its kind, its default value, and what it is for. Without "
                "--project it is the preset of project default, or else the shipped one.",
        .example = "argus preset show grpo-7b\twhat it wants to know\n"
                   "argus preset show grpo-7b --text > mine.yaml\tthe beginning of one's own",
        OPTS(SHOW_OPTS),
        .opts_size = sizeof(struct preset_show_opts),
        .run = preset_show,
    },
    {
        .name = "preset add",
        .args = "FILE",
        .least = 1,
        .most = 1,
        .summary = "store a preset",
        .text = "FILE (- is stdin) has a description, holes, and a spec in which ${hole:NAME} "
                "stands for a hole: 'argus preset show NAME --text' prints one to begin with. The "
                "preset is checked as a spec is, with its examples filled in. A preset of the "
                "same name is replaced.",
        .example = "argus preset add grpo-big.yaml --project rlhf\tfor all of project rlhf",
        OPTS(ADD_OPTS),
        .opts_size = sizeof(struct preset_add_opts),
        .run = preset_add,
    },
    {
        .name = "preset rm",
        .args = "NAME…",
        .least = 1,
        .most = ARGS_ANY,
        .summary = "remove presets",
        .text = "You may remove your own presets; admins may remove anybody's. Jobs that were "
                "made from a removed preset keep their specs. With --dry-run it lists the "
                "pipelines that name the preset.",
        OPTS(RM_OPTS),
        .ask = {.method = "DELETE",
                .path = "/v1/presets/{}",
                .print_dry = entry_print_users,
                .done = "say_done_removed",
                .subject = "preset {name}"},
    },
};

NOUN(preset, PRESET_COMMANDS);

/* SPDX-License-Identifier: Apache-2.0 */
/* preset_show.c - what a preset is for, and what it wants to know. */
#include "argus/cmd/cmd.h"

#include <stdlib.h>

#include "argus/presetcall.h"

struct preset_show_opts {
    int output;
    const char *project;
    bool text;
};

static const struct opt OPTS[] = {
    {.name = "project",
     .type = OPT_TEXT,
     .offset = offsetof(struct preset_show_opts, project),
     .arg = "NAME",
     .doc = "this project's own"},
    {.name = "text",
     .type = OPT_FLAG,
     .offset = offsetof(struct preset_show_opts, text),
     .doc = "its YAML as it was stored, to be changed and stored under another name"},
    OPT_OUTPUT(struct preset_show_opts),
};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct preset_show_opts *o = opts;
    _cleanup_(json_unrefp) json_t *answer = NULL;
    _cleanup_(freep) char *path = presetcall_path(args->v[0], o->project);
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
        presetcall_print(cli, answer, o->output == OUTPUT_WIDE);
    return 0;
}

const struct command cmd_preset_show = {
    .name = "preset show",
    .args = "NAME",
    .least = 1,
    .most = 1,
    .summary = "show a preset's holes",
    .text = "Each hole with its kind, its value if none is given, and what it is for. Without "
            "--project the one of project default, else the shipped one.",
    .example = "argus preset show grpo-7b\twhat it wants to know\n"
               "argus preset show grpo-7b --text > mine.yaml\tthe beginning of one's own",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct preset_show_opts),
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* preset_add.c - a preset for all of a project. */
#include "argus/cmd/cmd.h"

#include <stdlib.h>
#include <string.h>

#include "argus/jobview.h"
#include "argus/presetcall.h"
#include "argus/submission.h"
#include "base/str.h"

struct preset_add_opts {
    int output;
    const char *name, *project;
};

static const struct opt OPTS[] = {
    {.name = "name",
     .type = OPT_TEXT,
     .offset = offsetof(struct preset_add_opts, name),
     .arg = "NAME",
     .doc = "what it is called; if not given as FILE without .yaml"},
    {.name = "project",
     .type = OPT_TEXT,
     .offset = offsetof(struct preset_add_opts, project),
     .arg = "NAME",
     .doc = "whose it is; project default, which is everybody's, if not given"},
    OPT_OUTPUT(struct preset_add_opts),
};

/* "grpo-big" of "a/grpo-big.yaml"; yours. */
static char *name_of(const char *file)
{
    const char *slash = strrchr(file, '/'), *last = slash ? slash + 1 : file;
    size_t n = strlen(last);
    if (str_ends(last, ".yaml"))
        n -= strlen(".yaml");
    else if (str_ends(last, ".yml"))
        n -= strlen(".yml");
    return xstrndup(last, n);
}

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct preset_add_opts *o = opts;
    static const struct submission_wish none = {0};
    _cleanup_(submission_release) struct submission s = {0};
    _cleanup_(json_unrefp) json_t *answer = NULL;
    _cleanup_(freep) char *name = o->name ? xstrdup(o->name) : name_of(args->v[0]);
    _cleanup_(freep) char *path = presetcall_path(name, o->project);
    if (!o->name && str_eq(args->v[0], "-"))
        return err_set(err, ERR_USAGE, "give it a name: --name NAME");
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
        (void)fprintf(cli->out, "preset %s stored\n", jobview_str(answer, "name"));
    return 0;
}

const struct command cmd_preset_add = {
    .name = "preset add",
    .args = "FILE",
    .least = 1,
    .most = 1,
    .summary = "store a preset",
    .text = "FILE (- is stdin) has a description, holes, and a spec in which ${hole:NAME} stands "
            "for a hole: 'argus preset show NAME --text' prints one to begin with. It is checked "
            "as a spec is, with its examples filled in. One that is there is replaced.",
    .example = "argus preset add grpo-big.yaml --project rlhf\tfor all of project rlhf",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct preset_add_opts),
    .run = run,
};

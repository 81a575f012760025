/* SPDX-License-Identifier: Apache-2.0 */
/* preset_rm.c - presets that nobody wants any more; jobs that were made of them keep their spec. */
#include "argus/cmd/cmd.h"

#include <stdlib.h>

#include "argus/jobview.h"
#include "argus/presetcall.h"

struct preset_rm_opts {
    const char *project;
};

static const struct opt OPTS[] = {
    {.name = "project",
     .type = OPT_TEXT,
     .offset = offsetof(struct preset_rm_opts, project),
     .arg = "NAME",
     .doc = "this project's own; those of project default if not given"},
};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct preset_rm_opts *o = opts;
    int r = cli_open(cli, err);
    for (size_t i = 0; r >= 0 && i < args->n; i++) {
        _cleanup_(json_unrefp) json_t *answer = NULL;
        _cleanup_(freep) char *path = presetcall_path(args->v[i], o->project);
        struct request request = {.method = "DELETE", .path = path};
        r = client_json(cli->client, &request, &answer, err);
        if (r >= 0)
            (void)fprintf(cli->out, "preset %s removed\n", jobview_str(answer, "name"));
    }
    return r;
}

const struct command cmd_preset_rm = {
    .name = "preset rm",
    .args = "NAME…",
    .least = 1,
    .most = ARGS_ANY,
    .summary = "remove presets",
    .text = "Yours, or as an admin anybody's. Jobs that were made of them keep their specs.",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct preset_rm_opts),
    .run = run,
};

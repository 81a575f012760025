/* SPDX-License-Identifier: Apache-2.0 */
/* model_rm.c - remove one version of a model, with its bytes. */
#include "argus/cmd/cmd.h"

#include "argus/datacall.h"

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    (void)opts;
    return datacall_remove(cli, "models", args->v[0], err);
}

const struct command cmd_model_rm = {
    .name = "model rm",
    .args = "NAME",
    .least = 1,
    .most = 1,
    .summary = "remove one version of a model",
    .text = "Its bytes go too, unless it was registered where it lay. Refused while a job that is "
            "not over uses it. Without a version it is the newest one.",
    .run = run,
};

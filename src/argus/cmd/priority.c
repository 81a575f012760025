/* SPDX-License-Identifier: Apache-2.0 */
/* priority.c - change a job's priority. */
#include "argus/cmd/cmd.h"

#include <inttypes.h>

#include "argus/jobchange.h"
#include "base/str.h"

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    int64_t priority;
    char body[64];
    (void)opts;
    if (str_to_int(args->v[1], 0, 100, &priority, NULL) < 0)
        return err_set(err, ERR_USAGE, "'%.40s' is no priority: 0 to 100, high first", args->v[1]);
    (void)snprintf(body, sizeof(body), "{\"priority\": %" PRId64 "}", priority); /* fits */
    int r = cli_open(cli, err);
    return r < 0 ? r : jobchange_one(cli, args->v[0], ":priority", body, err);
}

const struct command cmd_priority = {
    .name = "priority",
    .args = "ID PRIORITY",
    .least = 2,
    .most = 2,
    .summary = "change a job's priority",
    .text = "0 to 100, high first; 50 is normal. It may not be above the ceiling of the job's "
            "project.",
    .example = "argus priority grpo-7 80\tbefore those with 50",
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* status.c - all about one job. */
#include "argus/cmd/cmd.h"

#include "argus/jobpage.h"

struct status_opts {
    int output;
    bool utc, watch;
};

static const struct opt OPTS[] = {
    OPT_OUTPUT(struct status_opts),
    OPT_UTC(struct status_opts),
    OPT_WATCH(struct status_opts),
};

static int page(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct status_opts *o = opts;
    _cleanup_(json_unrefp) json_t *job = NULL;
    int r = cli_get_job(cli, args->v[0], &job, err);
    if (r < 0)
        return r;
    if (o->output >= OUTPUT_JSON) {
        cli_emit(cli, job, o->output);
        return 0;
    }
    struct when w = cli_when(cli, o->utc);
    jobpage_print(cli, job, &w);
    return 0;
}

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct status_opts *o = opts;
    int r = cli_open(cli, err);
    return r < 0 ? r : cli_page(cli, o->watch, page, opts, args, err);
}

const struct command cmd_status = {
    .name = "status",
    .args = "ID",
    .least = 1,
    .most = 1,
    .summary = "show all about one job",
    .text = "State, reason, place in the queue, nodes, the proof that the driver runs on a worker, "
            "which verl the job's processes imported, attempts, times, paths on the shared root, "
            "newest metrics and the finding of a "
            "failure. ID is an id, a name, or a beginning of an id that fits one job only.",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct status_opts),
    .run = run,
};

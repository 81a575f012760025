/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_down.c - stop what argusd manages: the machines, then the head. */
#include "argus/cmd/cmd.h"

#include <unistd.h>

#include "argus/clustercall.h"
#include "argus/jobview.h"

enum { JOBS_MAX = 10000 };

struct down_opts {
    bool yes;
};

static const struct opt OPTS[] = {
    {.letter = 'y',
     .name = "yes",
     .type = OPT_FLAG,
     .offset = offsetof(struct down_opts, yes),
     .doc = "do not ask"},
};

/* Names what would end. */
static int tell_jobs(struct cli *cli, size_t *ret_n, struct err *err)
{
    _cleanup_(json_unrefp) json_t *jobs = NULL;
    bool more = false;
    size_t i;
    json_t *job;
    int r =
        jobview_list(cli, "?state=STARTING,RUNNING,STOPPING&all=1", JOBS_MAX, &jobs, &more, err);
    json_array_foreach (jobs, i, job)
        cli_talk(cli, "%s %s %s", jobview_str(job, "id"), jobview_str(job, "user"),
                 jobview_str(job, "state"));
    *ret_n = json_array_size(jobs);
    return r;
}

static int ask(const char *cluster, size_t jobs, struct err *err)
{
    char answer[16];
    if (!isatty(STDIN_FILENO))
        return err_set(err, ERR_USAGE, "nobody can be asked whether to stop '%s': add -y", cluster);
    (void)fprintf(stderr, "stop cluster '%s' and these %zu jobs? [y/N] ", cluster, jobs);
    if (!fgets(answer, sizeof(answer), stdin) || (*answer != 'y' && *answer != 'Y'))
        return err_set(err, ERR_USAGE, "nothing was stopped");
    return 0;
}

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct down_opts *o = opts;
    _cleanup_(json_unrefp) json_t *cluster = NULL;
    size_t jobs = 0;
    int r = cli_open(cli, err);
    if (r >= 0)
        r = clustercall_find(cli, args->n ? args->v[0] : NULL, &cluster, err);
    if (r >= 0)
        r = tell_jobs(cli, &jobs, err);
    if (r >= 0 && !o->yes)
        r = ask(jobview_str(cluster, "name"), jobs, err);
    return r < 0 ? r
                 : clustercall_post(cli, cluster, ":down", json_pack("{s:b}", "stop_jobs", 1), err);
}

const struct command cmd_cluster_down = {
    .name = "cluster down",
    .args = "[NAME]",
    .most = 1,
    .summary = "stop a managed cluster",
    .text = "Stops exactly what argusd started: the jobs, Ray on the machines, then the head. The "
            "jobs that would end are named first, and one is asked. 'argus cluster up' brings it "
            "back.",
    .example = "argus cluster down\tasks",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct down_opts),
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* stop.c - stop jobs, named or filtered. */
#include "argus/cmd/cmd.h"

#include <stdlib.h>
#include <unistd.h>

#include "argus/filter.h"
#include "argus/jobview.h"
#include "argus/waiting.h"
#include "base/str.h"

enum { STOP_MAX = 10000 };

struct stop_opts {
    struct strv filter;
    bool yes, wait;
};

static const struct opt OPTS[] = {
    {.name = "filter",
     .type = OPT_LIST,
     .offset = offsetof(struct stop_opts, filter),
     .arg = "KEY=VALUE",
     .doc = "live jobs where user, project, state, workload or pool is VALUE; may be given again, "
            "all must match"},
    {.letter = 'y',
     .name = "yes",
     .type = OPT_FLAG,
     .offset = offsetof(struct stop_opts, yes),
     .doc = "do not ask"},
    {.name = "wait",
     .type = OPT_FLAG,
     .offset = offsetof(struct stop_opts, wait),
     .doc = "until they have ended"},
};

static int add_matching(struct cli *cli,
                        const struct strv *filters,
                        struct strv *ids,
                        struct err *err)
{
    _cleanup_(buf_release) struct buf query = BUF_INIT(8192);
    _cleanup_(json_unrefp) json_t *jobs = NULL;
    bool more = false;
    int r = filter_to_query(filters, &query, err);
    if (r >= 0)
        r = jobview_list(cli, buf_str(&query), STOP_MAX, &jobs, &more, err);
    size_t i;
    json_t *job;
    json_array_foreach (jobs, i, job)
        if (!jobview_is_terminal(jobview_str(job, "state")))
            strv_add(ids, jobview_str(job, "id"));
    return r;
}

/* Names what will be stopped; 0 when it may be. */
static int ask(struct cli *cli, const struct strv *ids, struct err *err)
{
    char answer[16];
    for (size_t i = 0; i < ids->n; i++)
        cli_talk(cli, "%s", ids->v[i]);
    if (!isatty(STDIN_FILENO))
        return err_set(err, ERR_USAGE, "nobody can be asked whether to stop %zu jobs: add -y",
                       ids->n);
    (void)fprintf(stderr, "stop these %zu jobs? [y/N] ", ids->n);
    if (!fgets(answer, sizeof(answer), stdin) || (*answer != 'y' && *answer != 'Y'))
        return err_set(err, ERR_USAGE, "nothing was stopped");
    return 0;
}

static int choose(struct cli *cli, const struct stop_opts *o, struct strv *ids, struct err *err)
{
    int r = add_matching(cli, &o->filter, ids, err);
    if (r >= 0 && !ids->n)
        cli_talk(cli, "no live job matches");
    return r < 0 || !ids->n || o->yes ? r : ask(cli, ids, err);
}

static int stop_one(struct cli *cli, const char *id, struct err *err)
{
    _cleanup_(json_unrefp) json_t *found = NULL, *job = NULL;
    int r = cli_get_job(cli, id, &found, err); /* a name or a prefix becomes the id */
    if (r < 0)
        return r;
    _cleanup_(freep) char *path = cli_job_path(json_get_str(found, "id", id), ":stop");
    struct request request = {.method = "POST", .path = path, .tries = 3}; /* twice is once */
    r = client_json(cli->client, &request, &job, err);
    if (r >= 0)
        (void)fprintf(cli->out, "%s %s\n", json_get_str(job, "id", id), jobview_str(job, "state"));
    return r;
}

/* All of them, even when one is refused: the first refusal is the result. */
static int stop_all(struct cli *cli, const struct strv *ids, struct err *err)
{
    int result = 0;
    for (size_t i = 0; i < ids->n; i++) {
        struct err e = {0};
        int r = stop_one(cli, ids->v[i], &e);
        if (r < 0 && result < 0)
            cli_talk(cli, "argus: '%s': %s", ids->v[i], e.text);
        else if (r < 0)
            result = err_set(err, r, "cannot stop '%s': %s", ids->v[i], e.text);
    }
    return result;
}

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct stop_opts *o = opts;
    _cleanup_(strv_release) struct strv ids = {0};
    strv_copy(&ids, args);
    if (!args->n && !o->filter.n)
        return err_set(err, ERR_USAGE, "'argus stop' needs ID… or --filter KEY=VALUE");
    int r = cli_open(cli, err);
    if (r >= 0 && o->filter.n)
        r = choose(cli, o, &ids, err);
    if (r >= 0)
        r = stop_all(cli, &ids, err);
    if (r < 0 || !o->wait || !ids.n)
        return r;
    r = waiting_run(cli, &ids, 0, OUTPUT_TABLE, err);
    return r == 11 ? 0 : r; /* STOPPED is what was asked for */
}

const struct command cmd_stop = {
    .name = "stop",
    .args = "[ID…]",
    .most = ARGS_ANY,
    .summary = "stop jobs",
    .text = "Asks for the stop and returns; --wait returns when they have ended. Stopping a job "
            "that has ended changes nothing. With --filter the jobs are named and one is asked.",
    .example = "argus stop --wait grpo-7\tand its resources are free\n"
               "argus stop --filter user=alice --filter state=QUEUED -y\tnobody is asked",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct stop_opts),
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* stop.c - stop jobs, named or filtered. */
#include "argus/cmd/cmd.h"

#include <ctype.h>

#include "argus/jobchange.h"
#include "argus/stopping.h"
#include "argus/waiting.h"
#include "base/str.h"

struct stop_opts {
    struct strv filter, state;
    const char *user, *project, *pool, *workload;
    bool all, yes, wait;
};

#define ROW(type_, member) .type = (type_), .offset = offsetof(struct stop_opts, member)

static const struct opt OPTS[] = {
    {.name = "user", ROW(OPT_TEXT, user), .arg = "NAME", .doc = "live jobs of this user"},
    {.name = "project", ROW(OPT_TEXT, project), .arg = "NAME", .doc = "… of this project"},
    {.name = "state",
     ROW(OPT_LIST, state),
     .arg = "STATE",
     .doc = "… in this state: QUEUED, STARTING, RUNNING; may be given again, or with commas"},
    {.name = "pool", ROW(OPT_TEXT, pool), .arg = "NAME", .doc = "… for this pool"},
    {.name = "workload", ROW(OPT_TEXT, workload), .arg = "KIND", .doc = "… of this workload"},
    {.letter = 'a', .name = "all", ROW(OPT_FLAG, all), .doc = "everybody's, not only yours"},
    {.name = "filter",
     ROW(OPT_LIST, filter),
     .arg = "KEY=VALUE",
     .doc = "the same as --user, --project, --state, --pool, --workload; all must match"},
    {.letter = 'y', .name = "yes", ROW(OPT_FLAG, yes), .doc = "do not ask"},
    {.name = "wait", ROW(OPT_FLAG, wait), .doc = "until they have ended"},
};

static void add_filter(struct strv *filters, const char *key, const char *value)
{
    _cleanup_(freep) char *text = value ? xasprintf("%s=%s", key, value) : NULL;
    if (text)
        strv_add(filters, text);
}

static void gather(const struct stop_opts *o, struct strv *ret)
{
    strv_copy(ret, &o->filter);
    add_filter(ret, "user", o->user);
    add_filter(ret, "project", o->project);
    add_filter(ret, "pool", o->pool);
    add_filter(ret, "workload", o->workload);
    for (size_t i = 0; i < o->state.n; i++) {
        for (char *p = o->state.v[i]; *p; p++)
            *p = (char)toupper((unsigned char)*p);
        add_filter(ret, "state", o->state.v[i]);
    }
}

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct stop_opts *o = opts;
    _cleanup_(strv_release) struct strv ids = {0}, filters = {0};
    gather(o, &filters);
    if (!args->n == !filters.n)
        return err_set(err, ERR_USAGE,
                       "'argus stop' needs ID… or a filter such as --state QUEUED%s",
                       args->n ? ", not both" : "");
    strv_copy(&ids, args);
    int r = cli_open(cli, err);
    if (r >= 0 && filters.n)
        r = stopping_run(cli, &filters, o->all, o->yes, &ids, err);
    else if (r >= 0)
        r = jobchange_all(cli, &ids, "stop", ":stop", NULL, err);
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
            "that has ended changes nothing. With a filter the jobs are named, one is asked, and "
            "all are stopped in one transaction.",
    .example = "argus stop --wait grpo-7\tand its resources are free\n"
               "argus stop --user alice --state QUEUED -y\tnobody is asked",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct stop_opts),
    .run = run,
};

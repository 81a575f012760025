/* SPDX-License-Identifier: Apache-2.0 */
/* ls.c - the list of jobs. */
#include "argus/noun/noun.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <strings.h>

#include "argus/job/jobtable.h"
#include "argus/job/jobview.h"
#include "base/message.h"
#include "base/str.h"

struct ls_opts {
    int output;
    bool utc, watch, all, quiet;
    const char *user, *project, *workload, *sort, *pool, *ran_since, *ran_until;
    const char *failure, *failure_node, *gpus;
    struct strv state, flag;
    int order;
    usec_t since;
    int64_t limit;
};

#define LS_ROW(type_, member) .type = (type_), .offset = offsetof(struct ls_opts, member)

static const char *const LS_ORDERS[] = {"", "asc", "desc", NULL};

static const struct opt LS_OPTS[] = {
    {.letter = 'a',
     .name = "all",
     LS_ROW(OPT_FLAG, all),
     .doc = "all jobs that you may see, not only yours"},
    {.name = "user", LS_ROW(OPT_TEXT, user), .arg = "NAME", .doc = "jobs of this user"},
    {.name = "project", LS_ROW(OPT_TEXT, project), .arg = "NAME", .doc = "jobs of this project"},
    {.name = "state",
     LS_ROW(OPT_LIST, state),
     .arg = "STATE",
     .doc = "QUEUED STARTING RUNNING STOPPING SUCCEEDED FAILED STOPPED TIMEOUT; may be "
            "given again, or with commas; live alone: all that are not over"},
    {.name = "flag",
     LS_ROW(OPT_LIST, flag),
     .arg = "FLAG",
     .doc = "UNKNOWN HELD RESTARTING HOLDING HUNG IDLE; any of those given"},
    {.name = "failure",
     LS_ROW(OPT_TEXT, failure),
     .arg = "CLASS",
     .doc = "jobs with an attempt that failed by this class, as gpu_oom; with commas: by any"},
    {.name = "failure-node",
     LS_ROW(OPT_TEXT, failure_node),
     .arg = "NODE",
     .doc = "jobs with an attempt that failed, for which this node may be at fault"},
    {.name = "gpus",
     LS_ROW(OPT_TEXT, gpus),
     .arg = "N",
     .doc = "jobs of so many GPUs in all: 8, 5-8, or 65- for that many and more"},
    {.name = "pool", LS_ROW(OPT_TEXT, pool), .arg = "NAME", .doc = "jobs for this pool"},
    {.name = "workload",
     LS_ROW(OPT_TEXT, workload),
     .arg = "KIND",
     .doc = "jobs of this workload: ppo, grpo, sft, ray …"},
    {.name = "since",
     LS_ROW(OPT_SPAN, since),
     .arg = "SPAN",
     .doc = "queued within the last 30m, 12h, 2d …"},
    {.name = "ran-since",
     LS_ROW(OPT_TEXT, ran_since),
     .arg = "TIME",
     .doc = "that held slots from this time on, or from this long ago (2d), whenever queued"},
    {.name = "ran-until",
     LS_ROW(OPT_TEXT, ran_until),
     .arg = "TIME",
     .doc = "that held slots before this time"},
    {.name = "sort",
     LS_ROW(OPT_TEXT, sort),
     .arg = "BY",
     .doc = "queued_at, started_at, ended_at, ran, name, user, state, priority, gpus, step, "
            "gpu_hours …: the greatest first; what a job does not have goes last"},
    {.name = "order",
     LS_ROW(OPT_CHOICE, order),
     .arg = "WAY",
     .choices = LS_ORDERS,
     .doc = "asc: the smallest first; desc, if not given"},
    {.name = "limit", LS_ROW(OPT_NUMBER, limit), .arg = "N", .doc = "list at most N jobs (50)"},
    {.letter = 'q',
     .name = "quiet",
     LS_ROW(OPT_FLAG, quiet),
     .doc = "print only the ids, one on a line"},
    OPT_OUTPUT(struct ls_opts),
    OPT_UTC(struct ls_opts),
    OPT_WATCH(struct ls_opts),
};

/* "state=RUNNING,QUEUED"; of no words nothing. */
static void ls_add_words(struct buf *query, const char *name, const struct strv *words)
{
    struct buf all = BUF_INIT(1024);
    for (size_t i = 0; i < words->n; i++)
        (void)buf_addf(&all, "%s%s", i ? "," : "", words->v[i]); /* too many: query->failed */
    bool is_group = words->n == 1 && !strcasecmp(words->v[0], "live");
    for (size_t i = 0; i < all.len; i++)
        all.data[i] = (char)(is_group ? tolower((unsigned char)all.data[i])
                                      : toupper((unsigned char)all.data[i]));
    url_query(query, name, all.len ? buf_str(&all) : NULL);
    query->failed |= all.failed;
    buf_release(&all);
}

/* "?user=alice&state=RUNNING,QUEUED" */
static int ls_make_query(const struct ls_opts *o, struct buf *query, struct err *err)
{
    char since[CLOCK_TEXT_MAX];
    url_query(query, "user", o->user);
    url_query(query, "project", o->project);
    ls_add_words(query, "state", &o->state);
    ls_add_words(query, "flag", &o->flag);
    url_query(query, "failure", o->failure);
    url_query(query, "failure_node", o->failure_node);
    url_query(query, "gpus", o->gpus);
    url_query(query, "pool", o->pool);
    url_query(query, "workload", o->workload);
    if (o->since)
        url_query(query, "since", clock_to_string(clock_wall() - o->since, since));
    url_query(query, "ran_since", o->ran_since);
    url_query(query, "ran_until", o->ran_until);
    url_query(query, "sort", o->sort);
    url_query(query, "order", o->order ? LS_ORDERS[o->order] : NULL);
    if (query->failed)
        return message_refuse(err, ERR_USAGE, "cli_filters_long", MESSAGE_NO_ARGS);
    url_query(query, "all", o->all || o->user ? "1" : "0");
    return 0;
}

static int ls_page(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct ls_opts *o = opts;
    _cleanup_(buf_release) struct buf query = BUF_INIT(8192);
    _cleanup_(json_unrefp) json_t *jobs = NULL;
    bool more = false;
    (void)args;
    int r = ls_make_query(o, &query, err);
    if (r >= 0)
        r = jobview_list(cli, buf_str(&query), o->limit ? o->limit : 50, &jobs, &more, err);
    if (r < 0)
        return r;
    if (o->output >= OUTPUT_JSON) {
        json_t *all = json_pack("{s:O}", "jobs", jobs);
        cli_emit(cli, all, o->output);
        json_decref(all);
    } else if (o->quiet) {
        listing_print_ids(cli, jobs, NULL);
    } else {
        struct when w = cli_when(cli, o->utc);
        jobtable_print(cli, jobs, o->all || o->user ? JOBTABLE_ALL : JOBTABLE_LIST, &w,
                       o->output == OUTPUT_WIDE);
        if (more)
            cli_say(cli, "say_more", "", "", "");
    }
    return 0;
}

static int ls_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct ls_opts *o = opts;
    int r = cli_open(cli, err);
    return r < 0 ? r : cli_page(cli, o->watch, ls_page, opts, args, err);
}

static const struct command LS_COMMANDS[] = {
    {
        .name = "ls",
        .alias = "list",
        .args = "",
        .summary = "list jobs",
        .text = "Lists your jobs, newest first; with --all also those of the projects that "
                "you are in, and for admins and users of role viewer everybody's. The table "
                "fits the terminal: columns that say nothing go first, -o wide shows "
                "everything.",
        .example = "argus ls -a --state RUNNING\twhat runs now, of all users\n"
                   "argus ls -a --sort gpu_hours --limit 10\twhat took most GPU-hours\n"
                   "argus ls --since 1d -o json\tfor programs",
        .opts = LS_OPTS,
        .n_opts = array_len(LS_OPTS),
        .opts_size = sizeof(struct ls_opts),
        .run = ls_run,
    },
};

NOUN(ls, LS_COMMANDS);

/* SPDX-License-Identifier: Apache-2.0 */
/* ls.c - the list of jobs. */
#include "argus/noun/noun.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>

#include "argus/job/jobtable.h"
#include "argus/job/jobview.h"
#include "argus/show/member.h"
#include "base/message.h"
#include "base/str.h"

struct ls_opts {
    int output;
    bool utc, watch, all, quiet;
    const char *user, *project, *workload;
    struct strv state;
    usec_t since;
    int64_t limit;
};

#define LS_ROW(type_, member) .type = (type_), .offset = offsetof(struct ls_opts, member)

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
            "given again, or with commas"},
    {.name = "workload",
     LS_ROW(OPT_TEXT, workload),
     .arg = "KIND",
     .doc = "jobs of this workload: ppo, grpo, sft, ray …"},
    {.name = "since",
     LS_ROW(OPT_SPAN, since),
     .arg = "SPAN",
     .doc = "queued within the last 30m, 12h, 2d …"},
    {.name = "limit", LS_ROW(OPT_NUMBER, limit), .arg = "N", .doc = "list at most N jobs (50)"},
    {.letter = 'q',
     .name = "quiet",
     LS_ROW(OPT_FLAG, quiet),
     .doc = "print only the ids, one on a line"},
    OPT_OUTPUT(struct ls_opts),
    OPT_UTC(struct ls_opts),
    OPT_WATCH(struct ls_opts),
};

/* "?user=alice&state=RUNNING,QUEUED" */
static int ls_make_query(const struct ls_opts *o, struct buf *query, struct err *err)
{
    struct buf states = BUF_INIT(1024);
    char since[CLOCK_TEXT_MAX];
    for (size_t i = 0; i < o->state.n; i++)
        (void)buf_addf(&states, "%s%s", i ? "," : "", o->state.v[i]); /* too many: refused below */
    for (size_t i = 0; i < states.len; i++)
        states.data[i] = (char)toupper((unsigned char)states.data[i]);
    url_query(query, "user", o->user);
    url_query(query, "project", o->project);
    url_query(query, "state", states.len ? buf_str(&states) : NULL);
    url_query(query, "workload", o->workload);
    if (o->since)
        url_query(query, "since", clock_to_string(clock_wall() - o->since, since));
    bool failed = states.failed || query->failed;
    buf_release(&states);
    if (failed)
        return message_refuse(err, ERR_USAGE, "cli_filters_long", MESSAGE_NO_ARGS);
    url_query(query, "all", o->all || o->user ? "1" : "0");
    return 0;
}

static void ls_print_ids(struct cli *cli, const json_t *jobs)
{
    size_t i;
    json_t *job;
    json_array_foreach (jobs, i, job)
        (void)fprintf(cli->out, "%s\n", member_str(job, "id"));
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
        ls_print_ids(cli, jobs);
    } else {
        struct when w = cli_when(cli, o->utc);
        jobtable_print(cli, jobs, JOBTABLE_LIST, &w, o->output == OUTPUT_WIDE);
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
                   "argus ls --since 1d -o json\tfor programs",
        .opts = LS_OPTS,
        .n_opts = array_len(LS_OPTS),
        .opts_size = sizeof(struct ls_opts),
        .run = ls_run,
    },
};

NOUN(ls, LS_COMMANDS);

/* SPDX-License-Identifier: Apache-2.0 */
/* stopping.c - the list that is shown is the list that is stopped: ids and not the filter go
 * to the server, so that a job which came meanwhile is not met. See stopping.h. */
#include "argus/job/stopping.h"

#include <stdlib.h>
#include <unistd.h>

#include "argus/job/filter.h"
#include "argus/job/jobview.h"
#include "argus/show/member.h"
#include "base/message.h"
#include "base/str.h"

enum { STOP_MAX = 10000, BODY_MAX = 1 << 20 };

/* Prints one, and takes its id. */
static void stopping_add_job(struct cli *cli, const json_t *job, struct strv *ids)
{
    char *state = jobview_state(job);
    const char *name = json_get_str(job, "name", NULL);
    cli_talk(cli, "%s %s %s %s", member_str(job, "id"), member_str(job, "user"), state,
             str_or(name, ""));
    strv_add(ids, member_str(job, "id"));
    free(state);
}

static int add_matching(struct cli *cli,
                        const struct strv *filters,
                        bool all,
                        struct strv *ids,
                        struct err *err)
{
    _cleanup_(buf_release) struct buf query = BUF_INIT(8192);
    _cleanup_(json_unrefp) json_t *jobs = NULL, *me = NULL;
    bool more = false;
    int r = filter_to_query(filters, &query, err);
    if (r >= 0 && !all && !filter_has(filters, "user")) {
        r = client_get(cli->client, "/v1/whoami", &me, err);
        url_query(&query, "user", json_get_str(me, "user", NULL));
    }
    if (r >= 0)
        r = jobview_list(cli, buf_str(&query), STOP_MAX, &jobs, &more, err);
    size_t i;
    json_t *job;
    json_array_foreach (jobs, i, job)
        if (!jobview_is_terminal(member_str(job, "state")))
            stopping_add_job(cli, job, ids);
    if (more)
        cli_talk(cli, "these are the newest %d: there are more", STOP_MAX);
    return r;
}

/* What will be stopped was named; 0 when it may be. */
static int stopping_ask(size_t n, struct err *err)
{
    char answer[16];
    if (!isatty(STDIN_FILENO))
        return message_refuse(err, ERR_USAGE, "cli_stop_no_terminal",
                              MESSAGE_ARGS(MESSAGE_NUM("jobs", n)));
    (void)fprintf(stderr, "stop these %zu jobs? [y/N] ", n);
    if (!fgets(answer, sizeof(answer), stdin) || (*answer != 'y' && *answer != 'Y'))
        return message_refuse(err, ERR_USAGE, "cli_nothing_stopped", MESSAGE_NO_ARGS);
    return 0;
}

/* All of them in one request, so that it is all or none. */
static int stop_together(struct cli *cli, const struct strv *ids, struct err *err)
{
    _cleanup_(json_unrefp) json_t *answer = NULL;
    _cleanup_(buf_release) struct buf body = BUF_INIT(BODY_MAX);
    struct jout j = jout_begin(&body);
    jout_open(&j, NULL, '{');
    jout_open(&j, "ids", '[');
    for (size_t i = 0; i < ids->n; i++)
        jout_str(&j, NULL, ids->v[i]);
    jout_close(&j, ']');
    jout_close(&j, '}');
    struct request request = {.method = "POST",
                              .path = "/v1/jobs:stop",
                              .content_type = "application/json",
                              .body = buf_str(&body),
                              .body_len = body.len,
                              .tries = 3}; /* twice is once */
    int r = client_json(cli->client, &request, &answer, err);
    size_t i;
    json_t *job;
    json_array_foreach (json_get_array(answer, "jobs"), i, job)
        (void)fprintf(cli->out, "%s %s\n", member_str(job, "id"), member_str(job, "state"));
    return r;
}

int stopping_run(struct cli *cli,
                 const struct strv *filters,
                 bool all,
                 bool yes,
                 struct strv *ids,
                 struct err *err)
{
    int r = add_matching(cli, filters, all, ids, err);
    if (r >= 0 && !ids->n)
        cli_talk(cli, "no live job matches");
    if (r >= 0 && ids->n && !yes)
        r = stopping_ask(ids->n, err);
    return r < 0 || !ids->n ? r : stop_together(cli, ids, err);
}

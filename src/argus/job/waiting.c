/* SPDX-License-Identifier: Apache-2.0 */
/* waiting.c - one long-poll per job, all in one loop; see waiting.h. */
#include "argus/job/waiting.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "argus/job/jobview.h"
#include "argus/net/watch.h"
#include "argus/show/member.h"
#include "base/message.h"
#include "base/str.h"

struct waited {
    struct watch *watch;
    char *told;
    json_t *end; /* the job, once it is terminal */
};

struct waiting {
    struct cli *cli;
    struct waited *v;
    size_t n, n_left;
    bool is_table;
    int worst;
    bool is_lost; /* it was said that the server is away */
};

static void waiting_on_job(struct waiting *a, struct waited *x, const json_t *job)
{
    struct when w = cli_when(a->cli, false);
    bool is_over = jobview_is_terminal(member_str(job, "state"));
    char *line = is_over ? jobview_last_line(job, &w) : jobview_progress(job);
    if (is_over && a->is_table) {
        (void)fprintf(a->cli->out, "%s\n", line);
        (void)fflush(a->cli->out); /* ferror(out) tells at the end */
    } else if (!is_over && !str_eq(line, x->told)) {
        cli_talk(a->cli, "%s", line);
        set_str(&x->told, line);
    }
    free(line);
    if (!is_over)
        return;
    a->worst = jobview_worse(a->worst, jobview_exit_status(job));
    x->end = json_deep_copy(job);
    a->n_left--;
}

static int waiting_step(struct waiting *a, struct err *err)
{
    const char *trouble = NULL;
    for (size_t i = 0; i < a->n; i++) {
        json_t *job = NULL;
        if (a->v[i].end)
            continue;
        int r = watch_step(a->v[i].watch, &job, err);
        if (r < 0)
            return r;
        if (job)
            waiting_on_job(a, &a->v[i], job);
        json_decref(job);
        trouble = trouble ? trouble : watch_trouble(a->v[i].watch);
    }
    if (trouble && !a->is_lost)
        cli_say(a->cli, "say_lost", trouble, "", "");
    else if (!trouble && a->is_lost)
        cli_say(a->cli, "say_back", "", "", "");
    a->is_lost = trouble;
    return a->n_left ? client_turn(a->cli->client, 300) : 0;
}

static void emit(const struct waiting *a, int output)
{
    json_t *jobs = json_array();
    for (size_t i = 0; i < a->n; i++)
        if (a->v[i].end)
            (void)json_array_append(jobs, a->v[i].end); /* fails only for lack of memory */
    json_t *all = json_pack("{s:o}", "jobs", jobs);
    cli_emit(a->cli, all, output);
    json_decref(all);
}

/* Resolve every name first: a wrong one is told before the waiting, and an unreachable server
 * is an error only here. */
static int waiting_begin(struct waiting *a, const struct strv *ids, struct err *err)
{
    for (size_t i = 0; i < ids->n; i++) {
        _cleanup_(json_unrefp) json_t *job = NULL;
        int r = cli_get_job(a->cli, ids->v[i], &job, err);
        if (r < 0)
            return r;
        char *path = cli_job_path(json_get_str(job, "id", ids->v[i]), "");
        a->v[i].watch = watch_new(a->cli->client, path);
        free(path);
    }
    return cli_catch_interrupt(a->cli, err);
}

int waiting_run(struct cli *cli,
                const struct strv *ids,
                usec_t timeout,
                int output,
                struct err *err)
{
    struct waiting a = {.cli = cli,
                        .v = xcalloc(ids->n, sizeof(struct waited)),
                        .n = ids->n,
                        .n_left = ids->n,
                        .is_table = output < OUTPUT_JSON};
    usec_t deadline = timeout ? clock_mono() + timeout : 0;
    int r = waiting_begin(&a, ids, err);
    while (r >= 0 && a.n_left) {
        r = waiting_step(&a, err);
        if (r >= 0 && a.n_left && deadline && clock_mono() >= deadline)
            r = message_refuse(
                err, ERR_TIMEOUT, "cli_not_in_time",
                MESSAGE_ARGS(MESSAGE_NUM("left", a.n_left), MESSAGE_NUM("jobs", a.n)));
    }
    if (!a.is_table && (r >= 0 || r == ERR_TIMEOUT))
        emit(&a, output);
    for (size_t i = 0; i < a.n; i++) {
        watch_free(a.v[i].watch);
        free(a.v[i].told);
        json_decref(a.v[i].end);
    }
    free(a.v);
    if (r == -EINTR)
        return 128 + SIGINT;
    return r < 0 ? r : a.worst;
}

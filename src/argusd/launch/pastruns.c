/* SPDX-License-Identifier: Apache-2.0 */
/* pastruns.c - see pastruns.h. One page of the store, read and judged on a worker thread; which of
 * the runs are like the job is compared on the loop. */
#include "argusd/launch/pastruns.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/jobs/record.h"
#include "argusd/people/people_rules.h"
#include "base/log.h"
#include "base/str.h"

struct pastruns {
    struct past_line line;
    struct past_kind kind; /* borrows line and verl */
    char *verl;
    pastruns_f done;
    void *arg;
    struct store_read *read; /* NULL: the store is closing */
};

static void pastruns_free(struct pastruns *pr)
{
    past_line_release(&pr->line);
    free(pr->verl);
    free(pr);
}

const struct past_line *pastruns_line(const struct pastruns *pr)
{
    return &pr->line;
}

void pastruns_forget(struct pastruns *pr)
{
    if (pr->read)
        store_read_cancel(pr->read);
    pastruns_free(pr);
}

static void *pastruns_render(const struct store_result *r, void *arg)
{
    struct past *past = xcalloc(1, sizeof(*past));
    (void)arg;
    for (size_t i = 0; i < r->njobs; i++) {
        const struct store_job *job = &r->jobs[i];
        const char *detail = str_or(job->detail, "{}");
        _cleanup_(json_unrefp) json_t *v = NULL;
        if (json_parse(detail, strlen(detail), RECORD_DETAIL_MAX, &v, NULL) < 0)
            continue;
        struct past_row row;
        record_past_row(job, v, &row);
        past_add(past, &row);
    }
    return past;
}

static void pastruns_drop(void *rendered)
{
    past_release(rendered);
    free(rendered);
}

static void on_read(const struct store_result *r, void *arg)
{
    struct pastruns *pr = arg;
    struct past none = {0}, *past = r->rendered;
    if (r->err.code)
        log_warn("jobs", "runs of the past cannot be read: %s", r->err.text);
    if (past)
        past_keep(past, &pr->kind);
    pr->done(past ? past : &none, pr->arg);
    if (past)
        pastruns_drop(past);
    pastruns_free(pr);
}

static void read_line(struct pastruns *pr, const char *argv)
{
    _cleanup_(json_unrefp) json_t *v = NULL;
    if (argv && json_parse(argv, strlen(argv), RECORD_DETAIL_MAX, &v, NULL) == 0)
        past_line_read(v, &pr->line);
}

struct pastruns *pastruns_find(struct store *store,
                               const struct people *people,
                               const struct pastruns_ask *ask,
                               pastruns_f done,
                               void *arg)
{
    static const char *const ended[] = {"SUCCEEDED", "FAILED", "STOPPED", "TIMEOUT"};
    struct pastruns *pr = xcalloc(1, sizeof(*pr));
    *pr = (struct pastruns){.verl = xstrdup(ask->verl), .done = done, .arg = arg};
    read_line(pr, ask->argv);
    struct store_job row;
    record_job_row(ask->job, NULL, NULL, &row);
    pr->kind = (struct past_kind){.line = &pr->line,
                                  .verl = pr->verl,
                                  .nnodes = row.nnodes,
                                  .gpus_per_node = row.n_gpus_per_node};
    struct store_job_query q = {.states = ended,
                                .nstates = array_len(ended),
                                .workload = ask->job->workload,
                                .pool = ask->job->pool,
                                .limit = PAST_RUNS_MAX,
                                .want_detail = true};
    struct store_then then = {
        .render = pastruns_render, .done = on_read, .drop = pastruns_drop, .arg = pr};
    struct people_view view;
    people_view(people, ask->who, PEOPLE_WISH_ALL, &view);
    q.scope = view.scope;
    pr->read = store_list_jobs(store, &q, &then);
    people_view_release(&view);
    return pr;
}

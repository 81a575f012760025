/* SPDX-License-Identifier: Apache-2.0 */
/* simulations_history.c - our own jobs as a trace: page after page from the store, newest first.
 *
 * What never started says nothing of its length and is left out; what runs counts until now. What
 * the asker may see is looked up for each page. All jobs are of one pool: the one that was asked
 * for, or the whole cluster, with the nodes that it has now. */
#include <math.h>
#include <stdlib.h>

#include "argusd/kit/api.h"
#include "argusd/simulations/simulations.h"
#include "base/message.h"
#include "base/str.h"

/* The simulation may go while this is read. */
struct history {
    struct api *a;
    struct http_principal who;
    char *id;
    struct buf text;
    size_t n;
};

static void history_free(struct history *h)
{
    buf_release(&h->text);
    free(h->id);
    free(h);
}

static void history_add_time(struct buf *out, usec_t at, char end)
{
    (void)buf_addf(out, "%llu.%06llu%c", (unsigned long long)(at / USEC_SEC),
                   (unsigned long long)(at % USEC_SEC), end); /* overflow: out->failed */
}

static void history_add(struct history *h, const struct store_job *job, usec_t now)
{
    usec_t end = job->ended_at ? job->ended_at : now;
    double gpus = (double)job->nnodes * job->n_gpus_per_node;
    if (!job->started_at || end <= job->started_at || gpus <= 0 || gpus > TRACE_MAX_GPUS ||
        h->n == SIMULATIONS_JOBS_MAX)
        return;
    history_add_time(&h->text, job->queued_at, ',');
    history_add_time(&h->text, end - job->started_at, ',');
    (void)buf_addf(&h->text, "%d\n", (int)ceil(gpus));
    h->n++;
}

static void history_play(struct history *h, struct simulated *s)
{
    struct api *a = h->a;
    struct sched_pool pool;
    struct err err = {0};
    if (!h->n || h->text.failed) {
        (void)message_refuse(&err, ERR_REFUSED, "simulation_no_jobs", MESSAGE_NO_ARGS);
        simulations_fail(a->simulations, s, &err);
        return;
    }
    sched_pool(jobs_sched(a->jobs), str_or(s->pool, ""), jobs_now(a->jobs), &pool);
    int gpus = pool.nodes > 0 ? (int)ceil(pool.gpus / pool.nodes) : 0;
    s->jobs = (int64_t)h->n;
    simulations_play(a->simulations, s, &h->text, gpus > 0 ? pool.nodes : 0, gpus);
}

static void history_read(struct history *h, const struct simulated *s, const char *cursor);

static void history_on_jobs(const struct store_result *r, void *arg)
{
    struct history *h = arg;
    struct simulated *s = simulations_find(h->a->simulations, h->id);
    usec_t now = clock_wall();
    if (s && !simulated_is_over(s) && r->err.code) {
        simulations_fail(h->a->simulations, s, &r->err);
    } else if (s && !simulated_is_over(s)) {
        for (size_t i = 0; i < r->njobs; i++)
            history_add(h, &r->jobs[i], now);
        s->is_cut = r->next && h->n == SIMULATIONS_JOBS_MAX;
        if (r->next && !s->is_cut) {
            history_read(h, s, r->next);
            return;
        }
        history_play(h, s);
    }
    history_free(h);
}

static void history_read(struct history *h, const struct simulated *s, const char *cursor)
{
    struct people_view view;
    people_view(h->a->people, &h->who, PEOPLE_WISH_ALL, &view);
    struct store_job_query q = {.pool = s->pool,
                                .user = view.user,
                                .scope = view.scope,
                                .since = s->since,
                                .cursor = cursor,
                                .limit = STORE_PAGE_MAX};
    (void)store_list_jobs(h->a->store, &q, &(struct store_then){.done = history_on_jobs, .arg = h});
    people_view_release(&view);
}

void simulations_play_history(struct api *a, const struct http_principal *who, struct simulated *s)
{
    struct history *h = xcalloc(1, sizeof(*h));
    *h = (struct history){
        .a = a, .who = *who, .id = xstrdup(s->id), .text = BUF_INIT(SIMULATIONS_TRACE_MAX)};
    (void)buf_adds(&h->text, "submit_time,duration_s,num_gpus\n"); /* fits */
    history_read(h, s, NULL);
}

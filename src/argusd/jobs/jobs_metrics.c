/* SPDX-License-Identifier: Apache-2.0 */
/* jobs_metrics.c - jobs, their queue and the GPUs of the pools, for Prometheus.
 *
 * No id of a job is a label but in lanes.c. A node may be in several pools, so the GPUs of pools do
 * not add up to those of the cluster, which has a family of its own. */
#include <string.h>

#include "argusd/jobs/jobs_state.h"
#include "argusd/jobs/lanes.h"
#include "base/str.h"
#include "base/text.h"

enum { POOLS_MAX = 200, POOL_MAX = 128 };

static const usec_t wait_bounds[] = {1 * USEC_SEC,   5 * USEC_SEC,   30 * USEC_SEC,  2 * USEC_MIN,
                                     10 * USEC_MIN,  1 * USEC_HOUR,  4 * USEC_HOUR,  12 * USEC_HOUR,
                                     24 * USEC_HOUR, 72 * USEC_HOUR, 168 * USEC_HOUR};
static const usec_t pass_bounds[] = {10, 50, 100, 500, 1000, 5000, 10000, 50000, 200000, 1000000};

void jobs_metrics_init(struct jobs *js)
{
    js->seen.waits = (struct expo_spans){.bounds = wait_bounds, .n = array_len(wait_bounds)};
    js->seen.runs = (struct expo_spans){.bounds = wait_bounds, .n = array_len(wait_bounds)};
    js->seen.passes = (struct expo_spans){.bounds = pass_bounds, .n = array_len(pass_bounds)};
}

void jobs_metrics_count(struct live *l, enum job_event_kind kind, usec_t now)
{
    struct jobs_counts *seen = &l->jobs->seen;
    const struct job *j = l->job;
    if (job_state_is_terminal(j->state)) {
        usec_t ran = j->started_at && now > j->started_at ? now - j->started_at : 0;
        seen->ended[j->state]++;
        expo_spans_add(&seen->runs, ran);
        seen->gpu_seconds += (double)ran / 1e6 * demand_gpus(&j->demand);
        lanes_end(l->jobs->lanes, l, now);
    }
    if (kind != JOB_EV_ADMITTED)
        return;
    if (j->n_attempts > 1)
        seen->restarts++;
    else
        expo_spans_add(&seen->waits, now > j->queued_at ? now - j->queued_at : 0);
}

/* ---- pools ---- */

struct pools {
    char names[POOLS_MAX][POOL_MAX];
    size_t n;
};

static void pools_add(struct pools *p, const char *name, size_t len)
{
    if (!len || len >= POOL_MAX || p->n == POOLS_MAX)
        return;
    for (size_t i = 0; i < p->n; i++)
        if (strlen(p->names[i]) == len && !memcmp(p->names[i], name, len))
            return;
    memcpy(p->names[p->n], name, len);
    p->names[p->n++][len] = 0;
}

static void pools_find(const struct jobs *js, struct pools *ret)
{
    const char *labels, *item;
    for (size_t pos = 0; (labels = sched_node_labels_next(js->sched, &pos));)
        for (size_t n; (item = str_item(&labels, &n));)
            pools_add(ret, item, n);
}

static void put_gpus(struct expo *e, const struct sched_pool *p, const char *pool)
{
    const struct {
        const char *use;
        double gpus;
    } rows[] = {{"leased", p->used},
                {"foreign", p->held},
                {"free", p->free},
                {"draining", p->draining},
                {"broken", p->bad}};
    for (size_t i = 0; i < array_len(rows); i++)
        if (pool)
            EXPO_PUT(e, rows[i].gpus, {"pool", pool}, {"use", rows[i].use});
        else
            EXPO_PUT(e, rows[i].gpus, {"use", rows[i].use});
}

static void put_pools(const struct jobs *js, struct expo *e)
{
    struct pools *pools = xcalloc(1, sizeof(*pools));
    struct sched_pool *v = xcalloc(POOLS_MAX, sizeof(*v)), all;
    usec_t now = jobs_now(js);
    pools_find(js, pools);
    for (size_t i = 0; i < pools->n; i++)
        sched_pool(js->sched, pools->names[i], now, &v[i]);
    sched_pool(js->sched, "", now, &all);
    expo_family(e, EXPO_GAUGE, "gpus", "GPUs of all machines by use.");
    put_gpus(e, &all, NULL);
    expo_family(e, EXPO_GAUGE, "pool_gpus", "GPUs of a pool by use; a machine may be in several.");
    for (size_t i = 0; i < pools->n; i++)
        put_gpus(e, &v[i], pools->names[i]);
    expo_family(e, EXPO_GAUGE, "pool_queued_jobs",
                "Jobs that wait and name the pool, or no pool at all.");
    for (size_t i = 0; i < pools->n; i++)
        EXPO_PUT(e, v[i].queued, {"pool", pools->names[i]});
    expo_one(e, EXPO_GAUGE, "largest_gang_gpus", "GPUs that one gang could get now.",
             all.largest_gang);
    free(v);
    free(pools);
}

static double oldest_wait(const struct jobs *js)
{
    struct sched_lease_view w;
    usec_t now = clock_wall(), oldest = now;
    for (size_t pos = 0; sched_waiting_next(js->sched, &pos, &w);) {
        const struct live *l = w.job;
        if (!(l->job->flags & JOB_FLAG_HELD) && l->job->queued_at < oldest)
            oldest = l->job->queued_at;
    }
    return (double)(now - oldest) / 1e6;
}

/* Each job that holds GPUs has a lane while there are some; how many have none is told. */
static void put_lanes(const struct jobs *js, const struct access_who *who, struct expo *e)
{
    size_t without = 0;
    struct live *l;
    for (size_t pos = 0; (l = jobs_next_placed(js, &pos));)
        if (!l->over && demand_gpus(&l->job->demand) > 0)
            without += !lanes_join(js->lanes, l);
    lanes_put(js->lanes, who, e);
    expo_one(e, EXPO_GAUGE, "jobs_without_lane",
             "Jobs that hold GPUs and of which nothing is told, since every lane is taken.",
             (double)without);
}

const struct live *jobs_next_lane(const struct jobs *js, size_t *pos)
{
    return lanes_next(js->lanes, pos);
}

void jobs_put_metrics(const struct jobs *js, const struct access_who *who, struct expo *e)
{
    const struct jobs_counts *seen = &js->seen;
    expo_family(e, EXPO_GAUGE, "jobs", "Jobs that are not over, by state.");
    for (int s = JOB_QUEUED; s <= JOB_STOPPING; s++)
        EXPO_PUT(e, (double)js->counts[s], {"state", job_state_to_string((enum job_state)s)});
    expo_family(e, EXPO_COUNTER, "jobs_ended_total", "Jobs that ended, by state.");
    for (int s = 0; s < JOB_STATE_END; s++)
        if (job_state_is_terminal((enum job_state)s))
            EXPO_PUT(e, (double)seen->ended[s], {"state", job_state_to_string((enum job_state)s)});
    expo_one(e, EXPO_COUNTER, "job_restarts_total", "Attempts after the first one of their job.",
             (double)seen->restarts);
    expo_one(e, EXPO_GAUGE, "queue_oldest_wait_seconds",
             "How long the oldest job that is not held has been waiting.", oldest_wait(js));
    expo_family(e, EXPO_HISTOGRAM, "job_wait_seconds",
                "From the submission of a job to the start of its first attempt.");
    expo_spans_put(e, &seen->waits, NULL, 0);
    expo_family(e, EXPO_HISTOGRAM, "job_run_seconds",
                "How long jobs that ended ran: their last attempt.");
    expo_spans_put(e, &seen->runs, NULL, 0);
    expo_one(e, EXPO_COUNTER, "job_gpu_seconds_total",
             "GPU time that the last attempts of jobs that ended held.", seen->gpu_seconds);
    expo_family(e, EXPO_HISTOGRAM, "scheduler_pass_seconds", "One pass of the scheduler.");
    expo_spans_put(e, &seen->passes, NULL, 0);
    put_lanes(js, who, e);
    put_pools(js, e);
}

void jobs_set_useful(struct live *l, double seconds)
{
    if (!l->over)
        lanes_set(l->jobs->lanes, l, seconds, clock_wall());
}

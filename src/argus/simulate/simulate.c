/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.c - from a trace to pools of nodes, and those through each policy; see simulate.h. */
#include "argus/simulate/simulate.h"

#include <math.h>
#include <stdlib.h>

#include "base/str.h"

enum { STARVING_DAYS = 30 };

usec_t simulate_bound(void)
{
    return STARVING_DAYS * USEC_DAY;
}

double simulate_load(const struct simulation *s, const struct simulate_pool *p)
{
    return p->gpu_seconds / ((double)p->nodes * p->gpus_per_node * ((double)s->span / 1e6));
}

/* ---- pools ---- */

static void take_jobs(struct simulation *s, const struct trace_pool *from, struct simulate_pool *p)
{
    *p = (struct simulate_pool){.name = from->name, .n = from->n};
    p->jobs = xcalloc(from->n, sizeof(*p->jobs));
    for (size_t i = 0; i < from->n; i++) {
        const struct trace_row *row = &s->trace.rows[from->first + i];
        p->jobs[i] = (struct replay_job){
            .submit = row->submit, .duration = row->duration, .gpus = row->gpus};
        p->largest = row->gpus > p->largest ? row->gpus : p->largest;
        p->gpu_seconds += (double)row->gpus * ((double)row->duration / 1e6);
    }
    replay_guess(p->jobs, p->n, s->opts.guess_low, s->opts.guess_high, s->opts.seed, p->name);
}

/* The fewest nodes that offer demand / load over the span and hold the largest gang. */
static int place_nodes(const struct simulation *s, struct simulate_pool *p, struct err *err)
{
    p->gpus_per_node = s->opts.gpus_per_node;
    p->nodes = s->opts.nodes;
    if (p->nodes)
        return 0;
    double of_one = p->gpus_per_node * ((double)s->span / 1e6) * s->opts.load;
    double by_load = ceil(p->gpu_seconds / of_one * (1 - 1e-12));
    int by_gang = (p->largest + p->gpus_per_node - 1) / p->gpus_per_node;
    if (by_load > SIMULATE_MAX_NODES)
        return err_set(err, ERR_REFUSED,
                       "pool '%s' would need %.0f nodes at this load, and a pool has at most %d: "
                       "ask for a higher --load",
                       p->name, by_load, SIMULATE_MAX_NODES);
    p->nodes = by_load > by_gang ? (int)by_load : by_gang;
    p->nodes = p->nodes ? p->nodes : 1;
    return 0;
}

static int lay_out(struct simulation *s, struct err *err)
{
    s->pools = xcalloc(s->trace.n_pools, sizeof(*s->pools));
    for (size_t i = 0; i < s->trace.n_pools; i++) {
        if (s->opts.pool && !str_eq(s->opts.pool, s->trace.pools[i].name))
            continue;
        struct simulate_pool *p = &s->pools[s->n_pools++];
        take_jobs(s, &s->trace.pools[i], p);
        int r = place_nodes(s, p, err);
        if (r < 0)
            return r;
    }
    if (!s->n_pools)
        return err_set(err, ERR_NOT_FOUND, "the trace has no pool '%s'", s->opts.pool);
    return 0;
}

/* ---- runs ---- */

static void simulate_play(struct simulation *s, enum sched_policy policy)
{
    struct simulate_run *run = &s->runs[policy];
    run->tally = tally_new(s->start, s->span);
    run->pools = xcalloc(s->n_pools, sizeof(*run->pools));
    for (size_t i = 0; i < s->n_pools; i++) {
        const struct simulate_pool *p = &s->pools[i];
        struct replay replay = {.jobs = p->jobs,
                                .n = p->n,
                                .nodes = p->nodes,
                                .gpus_per_node = p->gpus_per_node,
                                .policy = policy,
                                .learner = s->opts.learner,
                                .forecasts = true};
        struct tally *tally = tally_new(s->start, s->span);
        s->digest = replay_mix(s->digest, replay_run(&replay, tally));
        tally_report(tally, simulate_bound(), &run->pools[i]);
        tally_add(run->tally, tally);
        tally_free(tally);
    }
    tally_report(run->tally, simulate_bound(), &run->report);
}

int simulate_run(const struct simulate_opts *opts,
                 struct trace *trace,
                 struct simulation *ret,
                 struct err *err)
{
    struct simulation s = {.opts = *opts, .trace = *trace};
    *trace = (struct trace){0};
    s.start = trace_start(&s.trace);
    s.span = trace_span(&s.trace);
    int r = lay_out(&s, err);
    if (r < 0) {
        simulate_release(&s);
        return r;
    }
    for (int p = 0; p < SCHED_POLICY_END; p++)
        if (opts->policies[p])
            simulate_play(&s, (enum sched_policy)p);
    *ret = s;
    return 0;
}

void simulate_release(struct simulation *s)
{
    for (int p = 0; p < SCHED_POLICY_END; p++) {
        tally_free(s->runs[p].tally);
        free(s->runs[p].pools);
    }
    for (size_t i = 0; i < s->n_pools; i++)
        free(s->pools[i].jobs);
    free(s->pools);
    trace_release(&s->trace);
    *s = (struct simulation){0};
}

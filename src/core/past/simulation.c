/* SPDX-License-Identifier: Apache-2.0 */
/* simulation.c - from a trace to pools of nodes, and those through each policy; see simulation.h.
 */
#include "core/past/simulation.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/message.h"
#include "base/str.h"

enum { STARVING_DAYS = 30 };

usec_t simulation_bound(void)
{
    return STARVING_DAYS * USEC_DAY;
}

double simulation_load(const struct simulation *s, const struct simulation_pool *p)
{
    return p->gpu_seconds / ((double)p->nodes * p->gpus_per_node * ((double)s->span / 1e6));
}

/* ---- pools ---- */

static void take_jobs(struct simulation *s,
                      const struct trace_pool *from,
                      struct simulation_pool *p)
{
    *p = (struct simulation_pool){.name = from->name, .n = from->n};
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
static int place_nodes(const struct simulation *s, struct simulation_pool *p, struct err *err)
{
    p->gpus_per_node = s->opts.gpus_per_node;
    p->nodes = s->opts.nodes;
    if (p->nodes)
        return 0;
    double of_one = p->gpus_per_node * ((double)s->span / 1e6) * s->opts.load;
    double by_load = ceil(p->gpu_seconds / of_one * (1 - 1e-12));
    int by_gang = (p->largest + p->gpus_per_node - 1) / p->gpus_per_node;
    if (by_load > SIMULATION_MAX_NODES)
        return message_refuse(err, ERR_REFUSED, "simulation_nodes",
                              MESSAGE_ARGS(MESSAGE_STR("name", p->name),
                                           MESSAGE_NUM("nodes", (int64_t)fmin(by_load, 1e15)),
                                           MESSAGE_NUM("most", SIMULATION_MAX_NODES)));
    p->nodes = by_load > by_gang ? (int)by_load : by_gang;
    p->nodes = p->nodes ? p->nodes : 1;
    return 0;
}

static int lay_out(struct simulation *s, size_t most_nodes, struct err *err)
{
    size_t nodes = 0;
    s->pools = xcalloc(s->trace.n_pools, sizeof(*s->pools));
    for (size_t i = 0; i < s->trace.n_pools; i++) {
        if (s->opts.pool && !str_eq(s->opts.pool, s->trace.pools[i].name))
            continue;
        struct simulation_pool *p = &s->pools[s->n_pools++];
        take_jobs(s, &s->trace.pools[i], p);
        int r = place_nodes(s, p, err);
        if (r < 0)
            return r;
        nodes += (size_t)p->nodes;
    }
    if (!s->n_pools)
        return message_refuse(err, ERR_NOT_FOUND, "simulation_no_pool",
                              MESSAGE_ARGS(MESSAGE_STR("name", s->opts.pool)));
    if (most_nodes && nodes > most_nodes)
        return message_refuse(
            err, ERR_REFUSED, "simulation_nodes_all",
            MESSAGE_ARGS(MESSAGE_NUM("nodes", nodes), MESSAGE_NUM("most", most_nodes)));
    return 0;
}

/* ---- runs ---- */

/* How far all replays together are; told to the watch by each of them. */
struct watching {
    const struct simulation_watch *watch;
    size_t before, all;
    bool stopped;
};

static bool simulation_goes_on(size_t submitted, void *arg)
{
    struct watching *w = arg;
    w->stopped = !w->watch->go_on(w->before + submitted, w->all, w->watch->arg);
    return !w->stopped;
}

static bool simulation_play(struct simulation *s, enum sched_policy policy, struct watching *w)
{
    struct simulation_run *run = &s->runs[policy];
    run->tally = tally_new(s->start, s->span);
    run->pools = xcalloc(s->n_pools, sizeof(*run->pools));
    for (size_t i = 0; i < s->n_pools && !w->stopped; i++) {
        const struct simulation_pool *p = &s->pools[i];
        struct replay replay = {.jobs = p->jobs,
                                .n = p->n,
                                .nodes = p->nodes,
                                .gpus_per_node = p->gpus_per_node,
                                .policy = policy,
                                .learner = s->opts.learner,
                                .costs = s->opts.costs,
                                .forecasts = true,
                                .go_on = w->watch ? simulation_goes_on : NULL,
                                .arg = w};
        struct tally *tally = tally_new(s->start, s->span);
        s->digest = replay_mix(s->digest, replay_run(&replay, tally));
        tally_report(tally, simulation_bound(), &run->pools[i]);
        tally_join(run->tally, tally);
        tally_free(tally);
        w->before += p->n;
    }
    tally_report(run->tally, simulation_bound(), &run->report);
    return !w->stopped;
}

static int play_all(struct simulation *s, const struct simulation_watch *watch, struct err *err)
{
    struct watching w = {.watch = watch && watch->go_on ? watch : NULL};
    for (int p = 0; p < SCHED_POLICY_END; p++)
        for (size_t i = 0; s->opts.policies[p] && i < s->n_pools; i++)
            w.all += s->pools[i].n;
    for (int p = 0; p < SCHED_POLICY_END; p++)
        if (s->opts.policies[p] && !simulation_play(s, (enum sched_policy)p, &w))
            return err_set(err, -ECANCELED, "the simulation was stopped");
    return 0;
}

int simulation_run(const struct simulation_opts *opts,
                   struct trace *trace,
                   const struct simulation_watch *watch,
                   struct simulation *ret,
                   struct err *err)
{
    struct simulation s = {.opts = *opts, .trace = *trace};
    *trace = (struct trace){0};
    s.start = trace_start(&s.trace);
    s.span = trace_span(&s.trace);
    int r = lay_out(&s, watch ? watch->most_nodes : 0, err);
    if (r == 0)
        r = play_all(&s, watch, err);
    if (r < 0) {
        simulation_release(&s);
        return r;
    }
    *ret = s;
    return 0;
}

void simulation_release(struct simulation *s)
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

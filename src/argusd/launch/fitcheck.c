/* SPDX-License-Identifier: Apache-2.0 */
/* fitcheck.c - see fitcheck.h. The pool is taken as if it were empty: what others hold now is no
 * reason to refuse, and while Ray is away nothing is known of it. */
#include "argusd/launch/fitcheck.h"

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

/* The most nodes of the shape that was asked. */
static int largest_of(const struct sched *sched, const struct fitcheck_ask *ask)
{
    return sched_largest_gang(sched, ask->pool, ask->needs, ask->demand);
}

/* As a name that is misspelt: no machine bears it. A job without GPUs lacks no number of them. */
static int warn_empty_pool(const char *pool,
                           double needs,
                           bool required,
                           struct problems *ps,
                           struct err *err)
{
    if (required && needs > 0)
        return message_refuse(
            err, ERR_POOL_TOO_SMALL, "pool_too_small",
            MESSAGE_ARGS(MESSAGE_NUM("needs", needs), MESSAGE_STR("empty_pool", pool)));
    if (required)
        return message_refuse(err, ERR_POOL_TOO_SMALL, "pool_too_small",
                              MESSAGE_ARGS(MESSAGE_STR("empty_pool", pool)));
    if (needs > 0)
        problems_add(ps, PROBLEM_WARNING, "pool", 0, 0, "pool_is_empty",
                     MESSAGE_ARGS(MESSAGE_NUM("needs", needs), MESSAGE_STR("empty_pool", pool)));
    else
        problems_add(ps, PROBLEM_WARNING, "pool", 0, 0, "pool_is_empty",
                     MESSAGE_ARGS(MESSAGE_STR("empty_pool", pool)));
    return 0;
}

/* Why a pool is too small, and the largest size that it would take, in nodes of the shape that was
 * asked. */
struct small_pool {
    struct message_arg args[7];
};

static struct small_pool look_at_small(const struct sched *sched,
                                       const struct fitcheck_ask *ask,
                                       double has,
                                       bool some_do_not_fit)
{
    const struct demand *d = ask->demand;
    double needs = demand_gpus(d);
    int n = largest_of(sched, ask);
    const double gpus = d->gpus_per_node + (n > 0 && d->nnodes == 1 ? d->driver_gpus : 0);
    struct small_pool small = {{
        MESSAGE_NUM("has", has),
        MESSAGE_NUM("needs", needs),
        MESSAGE_NUM("few_gpus", (has < needs ? 1 : 2) + (some_do_not_fit ? 2 : 0)),
        MESSAGE_NUM(n > 0 ? "fit_nodes" : "node_cpus", n > 0 ? n : d->cpus_per_node),
        MESSAGE_NUM(n > 0 ? "fit_gpus" : "node_gpus", gpus),
        {.key = NULL},
        {.key = NULL},
    }};
    if (n <= 0 && d->memory_per_node > 0)
        small.args[5] = (struct message_arg)MESSAGE_NUM("node_memory", d->memory_per_node);
    return small;
}

int fitcheck(const struct jobs *js,
             const struct cluster *cluster,
             const struct fitcheck_ask *ask,
             struct problems *ps,
             struct err *err)
{
    const struct sched *sched = jobs_sched(js);
    if (sched_fits_empty(sched, ask->pool, ask->needs, ask->demand))
        return 0;
    if (!ask->required && !cluster_is_up(cluster))
        return 0; /* nothing is known of the pool */
    struct sched_pool all, sum;
    sched_pool(sched, ask->pool, jobs_now(js), &all);
    sched_pool_fit(sched, ask->pool, str_or(ask->needs, ""), jobs_now(js), &sum);
    if (*ask->pool && !all.nodes && !(all.gpus > 0))
        return warn_empty_pool(ask->pool, demand_gpus(ask->demand), ask->required, ps, err);
    const struct small_pool small =
        look_at_small(sched, ask, sum.gpus, !ask->required && all.nodes > sum.nodes);
    if (ask->required)
        return message_refuse(err, ERR_POOL_TOO_SMALL, "pool_too_small", small.args);
    problems_add(ps, PROBLEM_WARNING, "nnodes", 0, 0, "gang_waits_for_nodes", small.args);
    return 0;
}

void fitcheck_advise(const struct jobs *js,
                     const struct job *job,
                     const char *needs,
                     const struct advise_in *in,
                     struct jout *j)
{
    const struct sched *sched = jobs_sched(js);
    struct advise_in all = *in;
    all.demand = &job->demand;
    all.fits_pool = sched_fits_empty(sched, job->pool, needs, &job->demand);
    all.largest = sched_largest_gang(sched, job->pool, needs, &job->demand);
    jobs_expect(js, job, &all.p50, &all.p90);
    advise_put(&all, j);
}

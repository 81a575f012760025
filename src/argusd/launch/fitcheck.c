/* SPDX-License-Identifier: Apache-2.0 */
/* fitcheck.c - see fitcheck.h. The pool is taken as if it were empty: what others hold now is no
 * reason to refuse, and while Ray is away nothing is known of it. */
#include "argusd/launch/fitcheck.h"

#include "base/message.h"
#include "base/text.h"

/* The largest size that would be taken, in nodes of the shape that was asked. */
static void tell_largest(const struct sched *sched,
                         const char *pool,
                         const struct demand *d,
                         char *ret,
                         size_t size)
{
    int n = sched_largest_gang(sched, pool, d);
    if (n > 0)
        text_printf_to(ret, size, "at most nnodes: %d with n_gpus_per_node: %g fits it", n,
                       d->gpus_per_node + (d->nnodes == 1 ? d->driver_gpus : 0));
    else
        text_printf_to(ret, size, "not even one node with %g GPUs and %g CPUs fits it",
                       d->gpus_per_node, d->cpus_per_node);
}

/* As a name that is misspelt: no machine bears it. */
static int warn_empty_pool(const struct cluster *cluster,
                           const char *pool,
                           double needs,
                           bool required,
                           struct problems *ps,
                           struct err *err)
{
    if (required)
        return message_refuse(
            err, ERR_POOL_TOO_SMALL, "pool_too_small",
            MESSAGE_ARGS(MESSAGE_NUM("needs", needs), MESSAGE_STR("empty_pool", pool)));
    if (cluster_is_up(cluster))
        problems_add(ps, PROBLEM_WARNING, "pool", 0, 0,
                     "'argus pool ls' shows the pools; it starts when enough machines join",
                     "pool_too_small (has 0, needs %g): no machine is in pool '%.80s' now", needs,
                     pool);
    return 0;
}

/* With the largest size that would be taken, as tell_largest(). */
static int refuse_small_pool(const struct sched *sched,
                             const char *pool,
                             const struct demand *d,
                             double has,
                             struct err *err)
{
    double needs = demand_gpus(d);
    int n = sched_largest_gang(sched, pool, d);
    if (n > 0)
        return message_refuse(
            err, ERR_POOL_TOO_SMALL, "pool_too_small",
            MESSAGE_ARGS(
                MESSAGE_NUM("has", has), MESSAGE_NUM("needs", needs),
                MESSAGE_NUM("few_gpus", has < needs ? 1 : 2), MESSAGE_NUM("fit_nodes", n),
                MESSAGE_NUM("fit_gpus", d->gpus_per_node + (d->nnodes == 1 ? d->driver_gpus : 0))));
    return message_refuse(err, ERR_POOL_TOO_SMALL, "pool_too_small",
                          MESSAGE_ARGS(MESSAGE_NUM("has", has), MESSAGE_NUM("needs", needs),
                                       MESSAGE_NUM("few_gpus", has < needs ? 1 : 2),
                                       MESSAGE_NUM("node_gpus", d->gpus_per_node),
                                       MESSAGE_NUM("node_cpus", d->cpus_per_node)));
}

int fitcheck(const struct jobs *js,
             const struct cluster *cluster,
             const struct demand *d,
             const char *pool,
             bool required,
             struct problems *ps,
             struct err *err)
{
    const struct sched *sched = jobs_sched(js);
    if (sched_fits_empty(sched, pool, d))
        return 0;
    struct sched_pool sum;
    sched_pool(sched, pool, jobs_now(js), &sum);
    double has = sum.gpus, needs = demand_gpus(d);
    const char *what = has < needs ? "GPUs" : "CPUs beside them, or GPUs on one node";
    char largest[120];
    if (*pool && !sum.nodes && !(has > 0))
        return warn_empty_pool(cluster, pool, needs, required, ps, err);
    if (!required && !cluster_is_up(cluster))
        return 0;
    if (required)
        return refuse_small_pool(sched, pool, d, has, err);
    tell_largest(sched, pool, d, largest, sizeof(largest));
    problems_add(ps, PROBLEM_WARNING, "nnodes", 0, 0,
                 "it starts when enough nodes join; --require-fit refuses instead",
                 "pool_too_small (has %g, needs %g): the pool does not have the %s now; %s", has,
                 needs, what, largest);
    return 0;
}

void fitcheck_advise(const struct jobs *js,
                     const struct job *job,
                     const struct advise_in *in,
                     struct jout *j)
{
    const struct sched *sched = jobs_sched(js);
    struct advise_in all = *in;
    all.demand = &job->demand;
    all.fits_pool = sched_fits_empty(sched, job->pool, &job->demand);
    all.largest = sched_largest_gang(sched, job->pool, &job->demand);
    jobs_expect(js, job, &all.p50, &all.p90);
    advise_put(&all, j);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.h - a trace replayed under several policies, side by side; and the three forms in
 * which the result is told. No server takes part: core's scheduler is linked in.
 *
 * Each pool of the trace is a cluster of its own. Utilisation and fragmentation are counted from
 * the first to the last submission of the whole trace, the same for all pools and policies. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "core/past/replay.h"
#include "core/past/trace.h"

enum {
    SIMULATE_MAX_NODES = 20000, /* of one pool */
    SIMULATE_MAX_GPUS = 64,     /* of one node */
    SIMULATE_GPUS = 8,          /* of a node, with --load */
    SIMULATE_OUT_MAX = 64 << 20,
};

struct simulate_opts {
    const char *file;         /* as the user named it */
    int nodes, gpus_per_node; /* of each pool; 0 nodes: by load */
    double load;
    bool policies[SCHED_POLICY_END];
    uint64_t seed;
    double guess_low, guess_high;
    const char *pool; /* only this one; NULL = all */
    bool learner;
};

/* The options as they were given; NULL: not. Borrowed for the simulation's life. */
struct simulate_texts {
    const char *trace, *nodes, *load, *policy, *guess, *pool;
    int64_t seed;
    bool no_learner;
};
/* ERR_USAGE with what the option takes. */
must_check int simulate_read(const struct simulate_texts *t,
                             struct simulate_opts *ret,
                             struct err *err);

struct simulate_pool {
    const char *name; /* the trace's */
    struct replay_job *jobs;
    size_t n;
    int nodes, gpus_per_node, largest; /* the largest job's GPUs */
    double gpu_seconds;                /* of all jobs */
};

struct simulate_run { /* under one policy */
    struct tally *tally;
    struct tally_report report;
    struct tally_report *pools;
};

struct simulation {
    struct simulate_opts opts;
    struct trace trace;
    usec_t start, span;
    struct simulate_pool *pools;
    size_t n_pools;
    struct simulate_run runs[SCHED_POLICY_END]; /* without a tally: not asked for */
    uint64_t digest;
};

/* Lay out the pools and play them under every policy. Takes the trace (empty afterwards).
 * ERR_NOT_FOUND: no such pool; ERR_REFUSED: a pool would need too many nodes. */
must_check int simulate_run(const struct simulate_opts *opts,
                            struct trace *trace,
                            struct simulation *ret,
                            struct err *err);
void simulate_release(struct simulation *s);

/* GPU-seconds of the jobs by those of the nodes in the span. */
double simulate_load(const struct simulation *s, const struct simulate_pool *p);
/* Of a wait that is called starvation. */
usec_t simulate_bound(void);

void simulate_json(const struct simulation *s, struct buf *out);
/* One standalone picture. */
void simulate_svg(const struct simulation *s, struct buf *out);

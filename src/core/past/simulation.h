/* SPDX-License-Identifier: Apache-2.0 */
/* simulation.h - a trace replayed under several policies, side by side, and the result as a page.
 *
 * Pure and deterministic: the same trace and options give the same decisions, of which the digest
 * tells. Each pool of the trace is a cluster of its own. Utilisation and fragmentation are counted
 * from the first to the last submission of the whole trace, the same for all pools and policies.
 * `argus simulate` and POST /v1/simulations are this. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/field.h"
#include "core/past/replay.h"
#include "core/past/trace.h"

enum {
    SIMULATION_MAX_NODES = 20000, /* of one pool */
    SIMULATION_MAX_GPUS = 64,     /* of one node */
    SIMULATION_GPUS = 8,          /* of a node, with a load */
    SIMULATION_OUT_MAX = 64 << 20,
};

struct simulation_opts {
    const char *name;         /* of the trace, as the user said it */
    int nodes, gpus_per_node; /* of each pool; 0 nodes: by load */
    double load;
    bool policies[SCHED_POLICY_END];
    uint64_t seed;
    double guess_low, guess_high;
    const char *pool; /* only this one; NULL = all */
    bool learner;
    struct replay_costs costs;
};

/* The options as they were given; NULL: not. Borrowed for the simulation's life. */
struct simulation_texts {
    const char *trace, *nodes, *load, *policy, *guess, *pool;
    const char *checkpoints, *restartable;
    int64_t seed;
    bool no_learner;
    bool dashes; /* a refusal says "--nodes" and not "nodes" */
};
/* ERR_BAD_REQUEST with what the option takes. The trace may be missing. */
must_check int simulation_read(const struct simulation_texts *t,
                               struct simulation_opts *ret,
                               struct err *err);

/* Who may say that it is enough. Asked at each instant of a replay, on its thread. */
struct simulation_watch {
    /* done of all: jobs of all policies that have been submitted. False: stop. */
    bool (*go_on)(size_t done, size_t all, void *arg);
    void *arg;
    size_t most_nodes; /* of all pools together; 0 = no ceiling but that of each pool */
};

struct simulation_pool {
    const char *name; /* the trace's */
    struct replay_job *jobs;
    size_t n;
    int nodes, gpus_per_node, largest; /* the largest job's GPUs */
    double gpu_seconds;                /* of all jobs */
};

struct simulation_run { /* under one policy */
    struct tally *tally;
    struct tally_report report;
    struct tally_report *pools;
};

struct simulation {
    struct simulation_opts opts;
    struct trace trace;
    usec_t start, span;
    struct simulation_pool *pools;
    size_t n_pools;
    struct simulation_run runs[SCHED_POLICY_END]; /* without a tally: not asked for */
    uint64_t digest;
};

/* Lay out the pools and play them under every policy. Takes the trace (empty afterwards). watch may
 * be NULL. ERR_NOT_FOUND: no such pool; ERR_REFUSED: too many nodes would be needed; -ECANCELED:
 * the watch said that it is enough. */
must_check int simulation_run(const struct simulation_opts *opts,
                              struct trace *trace,
                              const struct simulation_watch *watch,
                              struct simulation *ret,
                              struct err *err);
void simulation_release(struct simulation *s);

/* GPU-seconds of the jobs by those of the nodes in the span. */
double simulation_load(const struct simulation *s, const struct simulation_pool *p);
/* The least wait that is called starvation. */
usec_t simulation_bound(void);

/* The result as one JSON object: simulation_table. Spans are seconds. */
void simulation_page(const struct simulation *s, struct buf *out);
extern const struct field_table simulation_waits_table, simulation_part_table,
    simulation_pool_table, simulation_policy_table, simulation_table;

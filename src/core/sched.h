/* SPDX-License-Identifier: Apache-2.0 */
/* sched.h - who starts next, and where: nodes, the ledger of leases, the queue.
 *
 * Pure and deterministic: the same calls in the same order give the same
 * decisions. Order is priority, then submission. A gang starts only when all of
 * its slots and CPUs are free at once, each node's share whole on one node. The
 * first in line that fits the pool but not the moment blocks those behind it
 * (FIFO); one that is larger than the whole pool blocks nobody and keeps its
 * place. The ledger, not Ray, says what is free. A pass costs what it starts,
 * plus the jobs that are too large for the pool, once per change of nodes.
 *
 * The seam for what comes later: fair share, backfill and quotas replace the
 * order and the rule "first blocks", behind these same calls. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "core/demand.h"

struct sched;

/* A machine as last seen. Texts are copied. */
struct sched_node {
    const char *name;
    const char *pool;  /* labels, comma-separated; NULL = none */
    double gpus, cpus; /* totals */
    bool usable;       /* alive, not the head, takes drivers and gangs */
};

struct sched_limits {
    int live_jobs; /* at most so many leases at once; 0 = no limit */
};

struct sched *sched_new(const unsigned char seed[static 16], const struct sched_limits *limits);
void sched_free(struct sched *s); /* NULL is fine */

/* Replace the node table. Leases on nodes that are gone or smaller stay until
 * they are removed: nothing is taken from a running job here. */
void sched_set_nodes(struct sched *s, const struct sched_node *nodes, size_t n);

/* A job waits. pool: labels that a node must all have, comma-separated, "" = any. seq orders within
 * a priority; adding out of order is fine. `job` is borrowed and comes back in decisions; id is
 * copied. */
void sched_enqueue(struct sched *s,
                   const char *id,
                   int64_t seq,
                   int priority,
                   const char *pool,
                   const struct demand *d,
                   void *job);
/* It waits no more (stopped, timed out). Nothing happens if it does not wait. */
void sched_dequeue(struct sched *s, const char *id);

/* Record a lease that exists already (at start, from the store). nodes: names,
 * comma-separated, the driver's first. */
void sched_lease_restore(struct sched *s,
                         const char *id,
                         const char *nodes,
                         const struct demand *d);
/* The slots come back. Nothing happens if there is no lease. */
void sched_lease_end(struct sched *s, const char *id);

struct sched_decision {
    void *job;
    char nodes[16384]; /* comma-separated, the driver's node first */
    char driver_node[128];
};

/* Take the next job that may start now off the queue and lease its gang. False:
 * none. Call until false. */
bool sched_next(struct sched *s, struct sched_decision *ret);

/* Why a waiting job waits, and its place in line from 1. False if it does not wait. */
struct sched_why {
    int position;
    const char
        *code; /* pool_too_small waiting_for_gpus waiting_for_cpus live_jobs_limit queued_behind */
    char text[320];
};
bool sched_explain(struct sched *s, const char *id, struct sched_why *ret);

/* The largest total of GPUs that any gang shape of this pool could have ("" = any
 * pool), for preflight: does d fit the pool when it is empty? */
bool sched_fits_empty(const struct sched *s, const char *pool, const struct demand *d);
/* Usable GPUs of the pool ("" = all). */
double sched_pool_gpus(const struct sched *s, const char *pool);
/* Leased on this node. */
void sched_node_used(const struct sched *s, const char *node, double *ret_gpus, double *ret_cpus);

size_t sched_queue_length(const struct sched *s);
size_t sched_lease_count(const struct sched *s);

/* NULL, or the first broken invariant: sums, order, nothing used beyond what leases say. */
const char *sched_check(const struct sched *s);

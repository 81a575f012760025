/* SPDX-License-Identifier: Apache-2.0 */
/* whatif.h - the last weeks once more with another number of nodes: what their jobs would have
 * waited.
 *
 * Pure. Two replays (replay.h), by the scheduler that argusd runs: one with the nodes that there
 * are, one with more or fewer. Only the difference between the two is worth something: the jobs of
 * the other side of a real queue (quotas, preemption by others, broken nodes) are in neither. */
#pragma once
#include "core/past/replay.h"

struct whatif_facts {
    struct replay_job *jobs; /* by time of submission, each with what it really ran */
    size_t n;
    int nodes, more, gpus_per_node; /* nodes >= 1, nodes + more >= 1 */
    enum sched_policy policy;
    usec_t from, span; /* in which use is counted */
};

struct whatif_side {
    int nodes;
    double utilisation;          /* GPU-seconds used / offered */
    double mean_s, p50_s, p95_s; /* waits of all jobs that fitted */
    size_t never;                /* larger than the pool */
};

struct whatif {
    struct whatif_side now, then;
};

void whatif_run(const struct whatif_facts *f, struct whatif *ret);

/* SPDX-License-Identifier: Apache-2.0 */
/* placement.h - reads back from Ray where jobs' demands really are, and compares with their
 * leases.
 *
 * The hook binds demand to the lease, this is the guard behind it: what is elsewhere, or more
 * than leased, is an event `lease_breach` within 10 s, and stops the job where argus.yaml's
 * lease_breach says so. What was found is told with the job ("placement").
 *
 * Actors that hold no GPU and are on a node that is not leased are an event `outside_lease`, once,
 * and no breach: libraries have some on each node.
 *
 * Bounded: one small request each 3 s while jobs run (what is used on each node); the two
 * lists of actors and groups, which hold at most 10,000 rows each, only when the GPUs in use
 * changed, when a job began, 10 s after the last look where CPUs changed, and once a minute.
 * Tasks without an actor or a group are in neither list: they
 * show in what is used alone. */
#pragma once
#include <uv.h>

#include "argusd/ground/cluster.h"
#include "argusd/ground/settings.h"
#include "argusd/jobs/jobs.h"
#include "ray/ray.h"

struct placement;

struct placement_parts { /* all borrowed */
    uv_loop_t *loop;
    const struct settings *settings;
    struct cluster *cluster;
    struct ray_client *ray;
    struct jobs *jobs;
    const char *instance;
};

struct placement *placement_new(const struct placement_parts *parts);
void placement_start(struct placement *p);
/* Nothing is called any more; freed when the loop has let go of it. NULL is fine. */
void placement_free(struct placement *p);

/* Ray's job list: which of its hexadecimal ids belong to which of our jobs. */
void placement_saw_jobs(struct placement *p, const struct ray_jobs *jobs);

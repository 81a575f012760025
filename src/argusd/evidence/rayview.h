/* SPDX-License-Identifier: Apache-2.0 */
/* rayview.h - what Ray said last of a job's nodes and of its actors, for the scene of a failure.
 *
 * Nothing is asked for it: Ray may be away, and the dead are no longer in its lists. */
#pragma once
#include "argusd/ground/cluster.h"
#include "argusd/jobs/jobs.h"

/* {"version": 1, "at", "ray_answers", "ray_version", "session", "head_ip", "nodes": [{"name",
 * "node_id", "ip", "pool", "is_alive", "since", "gpus", "gpus_used", "cpus", "cpus_used",
 * "message"}]}: the nodes of the job and of its driver; is_alive is null for one that Ray does not
 * name. Yours; NULL: it would be too long. */
char *rayview_nodes(const struct cluster *c, const struct job *j);
/* {"version": 1, "at", "placement": what the newest read-back saw of its actors and bundles on each
 * node (placement.h), or null}. The same. */
char *rayview_actors(const struct record_extra *extra);

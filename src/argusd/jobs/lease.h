/* SPDX-License-Identifier: Apache-2.0 */
/* lease.h - what a job is told of its lease, and the share that counts it.
 *
 * The text goes into the job's environment as ARGUS_LEASE, from where the hook takes it:
 *   {"job":"x","attempt":1,"gpus":2,"driver_gpus":0,"nodes":[{"name":"h2","id":"7e…"}],
 *    "label":"argus.node","share":"argus_share_3","worker":"worker_node","spread":"lease"}
 * gpus: of each node; driver_gpus: those that the driver holds beside them on the first node;
 * label: by which Ray tells the nodes apart (argus.node by name, ray.io/node-id by "id", null = it
 * cannot); a node whose own resource is not argus_node_<name> names it ("resource"), one whose
 * processes get variables of its network has them ("env", see core/job/network.h); share: null =
 * none; worker: a resource that all workers and not the head have; spread: as in the spec. */
#pragma once
#include "argusd/ground/cluster.h"
#include "argusd/jobs/jobs.h"
#include "core/job/share.h"

/* A share that no live lease on any of the gang's nodes has; SHARE_NONE. */
int lease_share(const struct jobs *js, const struct gang *gang);
/* The text of the lease of a job that was admitted; env: the network variables of each node of its
 * gang. To be freed. */
char *lease_text(const struct job *j,
                 const struct cluster *c,
                 const struct settings *settings,
                 const struct pairs *env);
/* May what needs no GPU run on any worker? By the spec. */
bool lease_spreads(const struct job *j, const struct settings *settings);
/* As a job's driver is sent to it and GPU demand is bound where Ray has no labels:
 * "argus_node_w1" or "node:10.0.0.3". To be freed. */
char *lease_node_resource(const struct cluster_node *n);

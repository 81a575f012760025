/* SPDX-License-Identifier: Apache-2.0 */
/* demand.h - the CPUs and GPUs that a job will really ask Ray for.
 *
 * verl checks GPUs only, and as a sum over nodes: a gang that lacks a CPU hangs
 * in silence. So admission counts what the version asks, bundle by bundle. */
#pragma once
#include "core/spec/spec.h"
#include "core/verl/verl.h"

/* Node 0 of the gang carries the driver as well: it needs the bundles and driver_*.
 * Over the whole gang extra_cpus more must be free, in pieces of one CPU anywhere. */
struct demand {
    int nnodes;
    double gpus_per_node; /* bundles of one node; 0 where the driver itself holds the GPUs */
    double cpus_per_node;
    double extra_cpus;
    double driver_cpus, driver_gpus; /* entrypoint_num_cpus, entrypoint_num_gpus of the submit */
    double memory_per_node;          /* GiB, as the spec states it; Ray is not asked; 0 */
};

struct demand_defaults {
    double entrypoint_cpus, entrypoint_gpus; /* of argus.yaml */
};

/* v is NULL for an entrypoint. dflt may be NULL (1 CPU, no GPU). */
void demand_compute(const struct spec *s,
                    const struct verl_version *v,
                    const struct demand_defaults *dflt,
                    struct demand *ret);
double demand_gpus(const struct demand *d); /* of the whole gang, driver included */
double demand_cpus(const struct demand *d);
double demand_memory(const struct demand *d); /* GiB */

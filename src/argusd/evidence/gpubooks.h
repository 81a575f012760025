/* SPDX-License-Identifier: Apache-2.0 */
/* gpubooks.h - what the GPUs of running jobs do, by the books that their scouts keep.
 *
 * Every 15 s the books of each running job (attempts/<k>/gpus/<node>.json) are read in the worker
 * pool. What they say of GPUs of the job's own lease becomes figures (figures_put_cards(),
 * figures_put_parts()); what each attempt used of each GPU becomes rows that are kept with the job
 * (record_extra.gpus) and shown after its end. A job can write there, too: of other GPUs nothing is
 * believed, and no machine is judged by it. */
#pragma once
#include <uv.h>

#include "argusd/figures/figures.h"
#include "argusd/ground/cluster.h"
#include "argusd/ground/settings.h"
#include "argusd/jobs/jobs.h"

struct gpubooks;

struct gpubooks_parts { /* all borrowed */
    uv_loop_t *loop;
    const struct settings *settings;
    const struct cluster *cluster;
    struct jobs *jobs;
    struct figures *figures;
};

struct gpubooks *gpubooks_new(const struct gpubooks_parts *parts);
void gpubooks_start(struct gpubooks *gs);
void gpubooks_close(struct gpubooks *gs); /* nothing is begun any more; NULL is fine */
void gpubooks_free(struct gpubooks *gs);  /* once the loop has run dry */

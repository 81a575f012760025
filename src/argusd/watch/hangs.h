/* SPDX-License-Identifier: Apache-2.0 */
/* hangs.h - the watch over jobs that run and get nowhere.
 *
 * Each second what is known of a running job (its steps, its output) goes to core/metric/hang.h.
 * What is late is asked where it stands (stackask.h); what is then sure is told: the flag HUNG, an
 * event with the odd rank, a finding `timeout_or_hang`, and what the spec's restart policy says.
 * When the job goes on, the finding closes with `none`. A job whose GPUs hardly work is judged by
 * core/metric/gpu_idle.h: warned, and taken back where its spec says so. While nobody can see the
 * job, and while argusd is away, no time passes. */
#pragma once
#include <uv.h>

#include "argusd/checkpoints/checkpoints.h"
#include "argusd/ground/cluster.h"
#include "argusd/ground/settings.h"
#include "argusd/jobs/jobs.h"
#include "argusd/watch/findings.h"
#include "argusd/watch/metrics.h"

struct hangs;

struct hangs_parts { /* all borrowed */
    uv_loop_t *loop;
    const struct settings *settings;
    const struct cluster *cluster;
    struct jobs *jobs;
    struct metrics *metrics;
    struct findings *findings;
    struct figures *figures;
    const struct checkpoints *checkpoints;
};

struct hangs *hangs_new(const struct hangs_parts *parts);
void hangs_start(struct hangs *hs);
void hangs_close(struct hangs *hs); /* nothing is begun any more; NULL is fine */
void hangs_free(struct hangs *hs);  /* once the loop has run dry; NULL is fine */

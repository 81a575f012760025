/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.h - follows the metrics of the jobs that run, one reader each, in the worker pool.
 *
 * fsroot/logs/metricfile.c reads and merges, fsroot/samples/samplefigures.c adds what the samples
 * of a step say; here is when, and what becomes of it: the job's page (record_extra.metrics,
 * verdict, anatomy), its step, and events for what is wrong. Nothing is kept that the job's
 * directory does not hold. */
#pragma once
#include <uv.h>

#include "argusd/figures/figures.h"
#include "argusd/ground/cluster.h"
#include "argusd/ground/settings.h"
#include "argusd/jobs/jobs.h"
#include "core/metric/metric_watch.h"

struct metrics;

struct metrics_parts { /* all borrowed */
    uv_loop_t *loop;
    const struct settings *settings;
    const struct cluster *cluster;
    const struct figures *figures;
    struct jobs *jobs;
    /* Somebody waits for metrics_settle(), and it would say otherwise now. */
    void (*settled)(void *arg);
    void *arg;
};

struct metrics *metrics_new(const struct metrics_parts *parts);
void metrics_start(struct metrics *ms);
void metrics_close(struct metrics *ms); /* nothing is begun any more; NULL is fine */
void metrics_free(struct metrics *ms);  /* once the loop has run dry */

/* How a job's training goes, by what was read last. False: nobody can say now. */
bool metrics_pace(const struct metrics *ms, const char *id, struct metric_pace *ret);

/* The attempt of l has ended. True once the last that it said is read, or cannot be. */
bool metrics_settle(struct metrics *ms, struct live *l);

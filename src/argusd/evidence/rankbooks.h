/* SPDX-License-Identifier: Apache-2.0 */
/* rankbooks.h - which rank of a running job is slower than the others, by what the ranks tell.
 *
 * Every few seconds attempts/<k>/ranks of each running job is read in the worker pool and judged
 * (core/training/rank.h). The job's row says which rank it is, on which node and why
 * (record_extra.slow_rank), for as long as that holds; that it began is an event `rank_slow`, once
 * for each rank and cause of an attempt, as long as argusd runs. */
#pragma once
#include <uv.h>

#include "argusd/ground/cluster.h"
#include "argusd/ground/settings.h"
#include "argusd/jobs/jobs.h"
#include "argusd/machines/nodes.h"

struct rankbooks;

struct rankbooks_parts { /* all borrowed */
    uv_loop_t *loop;
    const struct settings *settings;
    const struct cluster *cluster;
    struct jobs *jobs;
    struct nodes *nodes; /* told of each slow rank's */
};

struct rankbooks *rankbooks_new(const struct rankbooks_parts *parts);
void rankbooks_start(struct rankbooks *rs);
void rankbooks_close(struct rankbooks *rs); /* nothing is begun any more; NULL is fine */
void rankbooks_free(struct rankbooks *rs);  /* once the loop has run dry */

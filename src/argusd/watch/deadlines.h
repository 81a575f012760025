/* SPDX-License-Identifier: Apache-2.0 */
/* deadlines.h - what no job may take longer than: waiting, starting, running, and stopping. The
 * spans are core/job/job.h's; what is late is stopped, sent again, or told. Where a beat stands
 * still and Ray calls the job running, Ray is asked for its supervisor; sight.h has the answer. */
#pragma once
#include "argusd/ground/cluster.h"
#include "argusd/ground/settings.h"
#include "argusd/jobs/jobs.h"
#include "ray/ray.h"

struct deadlines { /* all borrowed */
    const struct settings *settings;
    const struct cluster *cluster;
    struct ray_client *ray; /* whether it will ever start what it accepted */
};

/* Each second, of each job; l is busy for the call. An attempt that was not sent and cannot be goes
 * back to the queue at once, so that others may have its place. now: monotonic. */
void deadlines_check(const struct deadlines *d, struct live *l, usec_t now, usec_t wall);

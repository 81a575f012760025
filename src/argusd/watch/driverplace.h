/* SPDX-License-Identifier: Apache-2.0 */
/* driverplace.h - v1's proof: the driver of an attempt runs on a worker, as Ray tells it. One that
 * runs on the head is stopped. */
#pragma once
#include "argusd/ground/cluster.h"
#include "argusd/jobs/jobs.h"
#include "ray/ray.h"

/* rj: Ray's record of the job's newest attempt, which has begun and names the driver's node. It is
 * proven once, and once more when the driver has told its address and process. */
void driverplace_check(const struct cluster *c, struct live *l, const struct ray_job *rj);

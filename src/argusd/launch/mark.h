/* SPDX-License-Identifier: Apache-2.0 */
/* mark.h - our mark in the metadata of a Ray job: which argusd made it (`argus`, the instance of
 * its store), for which job and which attempt. A record of Ray without it is somebody else's. */
#pragma once
#include "ray/ray.h"

/* attempt 0: the trial of the job. All texts are copied. */
void mark_put(struct pairs *metadata,
              const char *instance,
              const char *job,
              int attempt,
              const char *user);
/* This record of Ray was made by this instance. */
bool mark_is_ours(const char *instance, const struct ray_job *rj);
/* A submission of somebody else's: without our mark, or an attempt of a job that our store does not
 * know, as after a restore what was submitted after the backup. Trials of ours may be of no job. */
bool mark_is_foreign(const char *instance,
                     const struct ray_job *rj,
                     bool (*knows_id)(const char *id, void *arg),
                     void *arg);
/* The job that the record is an attempt of, borrowed; NULL: the record bears no mark. */
const char *mark_job(const struct ray_job *rj);

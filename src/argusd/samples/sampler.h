/* SPDX-License-Identifier: Apache-2.0 */
/* sampler.h - keeps the indexes of samples (fsroot/samples) up to the trainings that run. */
#pragma once
#include <uv.h>

#include "argusd/ground/cluster.h"
#include "argusd/ground/settings.h"
#include "argusd/jobs/jobs.h"

struct sampler;

struct sampler_parts { /* all borrowed */
    uv_loop_t *loop;
    const struct settings *settings;
    const struct cluster *cluster;
    const struct jobs *jobs;
};

struct sampler *sampler_new(const struct sampler_parts *parts);
void sampler_start(struct sampler *s);
void sampler_close(struct sampler *s); /* nothing is begun any more; NULL is fine */
void sampler_free(struct sampler *s);  /* once the loop has run dry */

/* Where the index of this user's job is. Yours. */
char *sampler_path(const struct settings *settings, const char *user, const char *job);
/* Somebody looks at a job whose index lacks something: it is brought up soon, whether it runs or
 * not. user: of the job. Copied. */
void sampler_want(struct sampler *s, const char *job, const char *user);

/* SPDX-License-Identifier: Apache-2.0 */
/* secretsweep.h - no secret stays on the shared root longer than its attempt.
 *
 * The shepherd removes the file of Ray's workers at the attempt's end, and a trial its own once it
 * has read it. Where they could not (killed with their machine, never started) we do: soon after an
 * attempt ended, at our start, and once a minute. */
#pragma once
#include <uv.h>

#include "argusd/ground/cluster.h"
#include "argusd/jobs/jobs.h"
#include "argusd/launch/drytrial.h"

struct secretsweep;

struct secretsweep_parts { /* all borrowed; shared_root is copied */
    uv_loop_t *loop;
    const char *shared_root;
    const struct cluster *cluster;
    const struct jobs *jobs;
    const struct drytrials *drytrials;
};
struct secretsweep *secretsweep_new(const struct secretsweep_parts *parts);
void secretsweep_free(struct secretsweep *s); /* when its worker is back; NULL is fine */
void secretsweep_soon(struct secretsweep *s); /* NULL is fine */

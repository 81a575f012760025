/* SPDX-License-Identifier: Apache-2.0 */
/* secretsweep.h - no secret stays on the shared root longer than its attempt.
 *
 * The shepherd removes the file of Ray's workers at the attempt's end. Where it could not (killed
 * with its machine, never started) we do: soon after an attempt ended, at our start, and
 * once a minute. */
#pragma once
#include <uv.h>

#include "argusd/cluster.h"
#include "argusd/jobs.h"

struct secretsweep;

/* All borrowed. */
struct secretsweep *secretsweep_new(uv_loop_t *loop,
                                    const char *shared_root,
                                    const struct cluster *cluster,
                                    const struct jobs *jobs);
void secretsweep_free(struct secretsweep *s); /* when its worker is back; NULL is fine */
void secretsweep_soon(struct secretsweep *s); /* NULL is fine */

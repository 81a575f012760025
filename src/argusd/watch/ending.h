/* SPDX-License-Identifier: Apache-2.0 */
/* ending.h - the end of an attempt as the witnesses saw it, or of a job by its trial, and its
 * finding: both become one event.
 *
 * An end that nobody need explain (exit 0) is told at once; any other is told with its finding
 * (findings.h), and ending_is_awaited() until then. The metrics are settled by then. */
#pragma once
#include "argusd/jobs/jobs.h"
#include "argusd/watch/findings.h"
#include "argusd/watch/metrics.h"
#include "fsroot/attempt/witness.h"

/* Its exit file is there. head_lost: Ray's head was lost since it began. */
void ending_by_exit(struct findings *fs,
                    const struct metrics *ms,
                    struct live *l,
                    const struct fsroot_exit *x,
                    bool head_lost);
/* It is gone without one. */
void ending_lost(struct findings *fs, const struct metrics *ms, struct live *l, bool head_lost);
/* Its trial failed it, see trials.h: message, text and left, as there. */
void ending_by_trial(struct findings *fs,
                     struct live *l,
                     const struct finding *found,
                     const char *message,
                     const char *text,
                     bool left);
/* Its end is known and waits for its finding. */
bool ending_is_awaited(const struct live *l);

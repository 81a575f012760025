/* SPDX-License-Identifier: Apache-2.0 */
/* unsaved.h - the work of a job that no checkpoint has: what a stop or a failure throws away. */
#pragma once
#include "argusd/jobs/jobs.h"

/* Seconds of its newest attempt: the steps since its newest checkpoint, or, where it has told of no
 * step, all that it ran, until `now` (wall) if it runs still. */
double live_unsaved(const struct live *l, usec_t now);

/* SPDX-License-Identifier: Apache-2.0 */
/* placement_page.h - where a job is, as its page shows: the part of the read-back (placement.h)
 * that compares nothing and asks nobody. */
#pragma once
#include "argusd/jobs/tally.h"
#include "base/field.h"
#include "core/job/job.h"

#define PLACEMENT_TINY 1e-3 /* GPUs: less is rounding */

struct placement_seen {
    const struct job *job;
    const struct tally_owner *held;
    double beyond_gpus;
    bool is_partial;
    usec_t checked_at; /* wall; 0 = null */
};
extern const struct field_table placement_table; /* "Placement" in openapi.json */

/* As JSON. Heap; NULL: it is too long. */
char *placement_text(const struct placement_seen *seen);
/* The GPUs that the job has leased on this node. */
double placement_leased(const struct job *j, const char *node);

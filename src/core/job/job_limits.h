/* SPDX-License-Identifier: Apache-2.0 */
/* job_limits.h - the spans of a job that its spec sets, as its states need them.
 *
 * They are copied out of the spec once, and stored with the job: the state machine acts on them
 * after a restart of argusd without reading the texts of all specs again. */
#pragma once
#include "base/field.h"

struct spec;

struct job_limits {
    usec_t timeout, queue_timeout, stop_grace; /* 0 = none */
    usec_t hold_on_failure;                    /* for so long its slots are kept then; 0 = not */
};
/* The limits in a job's row in the store; the keys are those of the JobSpec. */
extern const struct field_table job_limits_table;

struct job_limits job_limits_of(const struct spec *spec);

/* SPDX-License-Identifier: Apache-2.0 */
/* job_limits.c - see job_limits.h. A new span is a member and a line in each of the two lists. */
#include "core/job/job_limits.h"

#include "core/spec/spec.h"

#define LIMIT(member, ...) FIELD_AT(job_limits, #member, FIELD_SPAN, member, __VA_ARGS__)
static const struct field limit_rows[] = {
    LIMIT(timeout, .flags = 0),
    LIMIT(queue_timeout, .flags = 0),
    LIMIT(stop_grace, .flags = 0),
    LIMIT(hold_on_failure, .flags = FIELD_OMIT),
};
const struct field_table job_limits_table = FIELD_TABLE(NULL, limit_rows, job_limits);

struct job_limits job_limits_of(const struct spec *spec)
{
    return (struct job_limits){.timeout = spec->timeout,
                               .queue_timeout = spec->queue_timeout,
                               .stop_grace = spec->stop_grace,
                               .hold_on_failure = spec->hold_on_failure};
}

/* SPDX-License-Identifier: Apache-2.0 */
/* recovery_job.h - the moments of a job's attempts and of their steps, as recovery.h asks for them,
 * and the form in which they are shown. Pure. */
#pragma once
#include "base/field.h"
#include "core/account/recovery.h"
#include "core/job/job.h"
#include "core/metric/goodput.h"

/* now: wall, where what has not ended ends. The texts in ret and its v are borrowed from the job;
 * v is heap, of the caller. */
void recovery_of_job(const struct job *job,
                     const struct goodput_sums *steps,
                     usec_t now,
                     struct recovery_job *ret,
                     struct recovery_attempt **ret_v);

/* A page shows one job in seconds of its own time. */
struct recovery_page {
    double ettr, mttr_s; /* NaN: there is none */
    int64_t failures, interruptions, repaired;
    double held, waited, first_wait, part[RECOVERY_PARTS];
};
extern const struct field_table recovery_page_table; /* "Recovery": of a job */
void recovery_to_page(const struct recovery *r, struct recovery_page *ret);

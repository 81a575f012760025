/* SPDX-License-Identifier: Apache-2.0 */
/* jobdir.h - whose directory jobs/<id> is: made for a job once, or there before. Blocking. */
#pragma once
#include <stdbool.h>

#include "base/err.h"
#include "base/strv.h"
#include "fsroot/attempt/seen.h"

#define JOBDIR_TRIAL "trial" /* what a trial has in jobs/<job>, before there is an attempt */

/* Makes jobs/<job> for a job that has none yet. ERR_CONFLICT: something is there already, and it is
 * not just a directory of ours that is empty, or holds a trial alone. */
must_check int fsroot_job_make(const char *root, const char *job, struct err *err);
/* For each of these names, whether anything, a broken link as well, has it below jobs. ret: one for
 * each. */
void fsroot_jobs_are_there(const char *root, const struct strv *jobs, enum fsroot_seen *ret);

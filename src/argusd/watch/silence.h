/* SPDX-License-Identifier: Apache-2.0 */
/* silence.h - a job that nobody can see: its flag, and the finding of that interruption.
 *
 * Nothing is done to the job. Of one that runs it is found that Ray's head went away where that is
 * known, else that nobody knows; once for each silence, and once more when it is known later. When
 * it is seen again the finding closes with `none`; the finding of its end takes the place of both.
 */
#pragma once
#include "argusd/jobs/jobs.h"
#include "argusd/watch/findings.h"

/* Nobody can see it: as often as that is judged. */
void silence_begin(struct findings *fs, struct live *l);
/* Somebody can again. */
void silence_end(struct findings *fs, struct live *l);

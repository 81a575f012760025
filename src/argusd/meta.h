/* SPDX-License-Identifier: Apache-2.0 */
/* meta.h - keeps meta.json of each job's directory equal to the job, in the worker
 * pool, one write per job at a time, the newest last. */
#pragma once
#include <uv.h>

#include "argusd/jobs.h"
#include "argusd/settings.h"

/* The job changed: write it, or once more after the write that is under way. */
void meta_write(uv_loop_t *loop, const struct settings *settings, struct live *l);

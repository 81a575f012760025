/* SPDX-License-Identifier: Apache-2.0 */
/* stopper.h - ends attempts, by Ray and by a file that the shepherd reads; and
 * clears Ray of records that are of no more use.
 *
 * Both ways are asked each time: Ray cannot stop what is still PENDING and may be
 * away, the shared root may be slow. Asking again is harmless. */
#pragma once
#include <uv.h>

#include "argusd/ground/settings.h"
#include "argusd/jobs/jobs.h"
#include "ray/ray.h"

struct stopper;

struct stopper_parts { /* all borrowed */
    uv_loop_t *loop;
    const struct settings *settings;
    struct ray_client *ray;
};

struct stopper *stopper_new(const struct stopper_parts *parts);
void stopper_free(struct stopper *s);

/* l owes JOB_ACT_STOP. Does nothing while it is under way or before l->stop_after. */
void stopper_act(struct stopper *s, struct live *l);
/* The stop file of its newest attempt is there, written since this start. */
bool stopper_has_written(const struct live *l);
/* An attempt that was given up: whatever of it may still start is told to end. */
void stopper_stray(struct stopper *s, const char *job, int k, const char *ray_id);
/* A record of ours in Ray that no live job needs: stop it if it runs, delete it if it is over. */
void stopper_clear(struct stopper *s, const char *job, int k, const struct ray_job *rj);
/* The same of a trial, which has no files to be told by. */
void stopper_clear_trial(struct stopper *s, const struct ray_job *rj);

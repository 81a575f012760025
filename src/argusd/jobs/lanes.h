/* SPDX-License-Identifier: Apache-2.0 */
/* lanes.h - what Prometheus is told of each live job, without its id for a label.
 *
 * An id as a label would leave a series behind for every job there ever was. So a job that holds
 * GPUs, or tells of its steps, has a lane until it ends, the smallest number that is free; its
 * figures bear the lane alone, and which job is in a lane stands in an info series. There are at
 * most LANES_MAX; how many jobs that hold GPUs have none is a figure, too. In memory: after a
 * restart a job has a lane again with the next page, and its goodput once its steps were read. */
#pragma once
#include "argusd/jobs/jobs.h"
#include "core/job/access.h"
#include "http/expo.h"

struct lanes;

enum { LANES_MAX = 1000 };

struct lanes *lanes_new(void);
void lanes_free(struct lanes *ls); /* NULL is fine */

/* It has a lane from now on, or has one already. False: all are taken. l is borrowed until
 * lanes_end(). */
bool lanes_join(struct lanes *ls, struct live *l);
/* The job's steps that counted took useful_s, as of now (wall). It joins, if it can. */
void lanes_set(struct lanes *ls, struct live *l, double useful_s, usec_t now);
/* It is over: nothing happens if it has no lane. */
void lanes_end(struct lanes *ls, const struct live *l, usec_t now);
/* The lanes that have a job, from *pos = 0 on; NULL: that was the last. *pos is then the number of
 * this one. */
const struct live *lanes_next(const struct lanes *ls, size_t *pos);

/* Which job is in a lane is told of those that `who` may see; the figures of a lane name nobody. */
void lanes_put(const struct lanes *ls, const struct access_who *who, struct expo *e);

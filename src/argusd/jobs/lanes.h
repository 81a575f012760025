/* SPDX-License-Identifier: Apache-2.0 */
/* lanes.h - how much of the time of each job went into steps that counted, for Prometheus.
 *
 * An id as a label would leave a series behind for every job there ever was. So a job that tells of
 * its steps has a lane until it ends, the smallest number that is free; its figure bears the lane
 * alone, and which job is in a lane stands in an info series. There are at most LANES_MAX. In
 * memory: after a restart a job has a lane again once its steps were read. */
#pragma once
#include "argusd/jobs/jobs.h"
#include "http/expo.h"

struct lanes;

enum { LANES_MAX = 1000 };

struct lanes *lanes_new(void);
void lanes_free(struct lanes *ls); /* NULL is fine */

/* The job's steps that counted took useful_s, as of now (wall). l is borrowed until lanes_end(). */
void lanes_set(struct lanes *ls, const struct live *l, double useful_s, usec_t now);
/* It is over: nothing happens if it has no lane. */
void lanes_end(struct lanes *ls, const struct live *l, usec_t now);

void lanes_put(const struct lanes *ls, struct expo *e);

/* SPDX-License-Identifier: Apache-2.0 */
/* due.h - which jobs the clock has to look at, so that 10,000 that only wait cost nothing.
 *
 *   placed    a job that holds slots: looked at each second
 *   eager     a job in the queue with a trial due, or somebody waiting for news of it: the same
 *   heap      a job in the queue whose queue_timeout or pause ends some day: looked at then
 *
 * Every other job in the queue is changed by others alone. A job is looked at anew after each of
 * its changes (due_follow). Nobody outside jobs/ includes this file. */
#pragma once
#include <stdbool.h>

#include "argusd/jobs/jobs.h"

struct due;

struct due *due_new(void);
void due_free(struct due *d); /* NULL is fine */
/* A job's state, flags, pause or waiters changed, or it is new. boot: of clock_moment(). */
void due_follow(struct due *d, struct live *l, const struct moment *now);
/* It is freed next. Not within a walk, nor is due_tidy(), which closes the gaps of those that left.
 */
void due_forget(struct due *d, struct live *l);
void due_tidy(struct due *d);

/* Walks as jobs_next() has them. */
struct live *due_next_placed(const struct due *d, size_t *pos);
struct live *due_next_eager(struct due *d, size_t *pos);
/* Those of the heap whose time has come, each once; NULL: no more. */
struct live *due_take(struct due *d, const struct moment *now);

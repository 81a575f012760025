/* SPDX-License-Identifier: Apache-2.0 */
/* due.h - which jobs the clock has to look at, so that 10,000 that only wait cost nothing.
 *
 *   placed    a job that holds slots: looked at each second
 *   awaited   a job in the queue with somebody waiting for news of it: the same
 *   untried   a job in the queue with a trial due: launch/trials.c looks at as many as it can run
 *   changed   a job that changed since whoever asks about all jobs has seen it (jobs_seen)
 *   spans     a job in the queue whose queue_timeout or pause ends some day: looked at then
 *   looks     a job that counts as changed at a time that somebody named (jobs_look_later)
 *   waits     the jobs in the queue that nobody holds, by the time since when they wait
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

/* A walk as jobs_next() has it, over one list. */
struct live *due_next(const struct due *d, enum live_roster which, size_t *pos);
/* The same over those that are awaited. */
struct live *due_next_awaited(struct due *d, size_t *pos);
/* Those with a span that has ended, each once; NULL: no more. */
struct live *due_take(struct due *d, const struct moment *now);

void due_seen(struct due *d, struct live *l);
/* It counts as changed from this time on, by the wall clock. */
void due_look_later(struct due *d, struct live *l, usec_t at);
/* Those whose time has come by now count as changed. */
void due_look(struct due *d, usec_t now);
/* Since when the job waits that has waited longest and is not held; 0: there is none. */
usec_t due_oldest(const struct due *d);

/* SPDX-License-Identifier: Apache-2.0 */
/* foresight.h - how long jobs are expected to run, and when those that wait will start.
 *
 * Spans are learnt from every run that ends; at a start from the newest HISTORY_MAX ends of
 * the store, page by page, while argusd works already. Starts are foreseen by running a
 * copy of the scheduler ahead on a worker thread, a few seconds after something changed;
 * what jobs were told first is compared with what came, and corrects what is told next.
 * A part of jobs.c; nobody else calls it. */
#pragma once
#include "argusd/jobs/jobs.h"

struct foresight;

struct foresight *foresight_new(struct jobs *js);
void foresight_free(struct foresight *f); /* NULL is fine */

/* Read what ended before. Once, when the live jobs are there. */
void foresight_learn(struct foresight *f);

/* Learnt spans of running; 0 where nothing is known. */
void foresight_expect(const struct foresight *f, const struct job *j, usec_t *p50, usec_t *p90);
/* l waits from now on, starts now, ends now. */
void foresight_waits(struct foresight *f, struct live *l);
void foresight_starts(struct foresight *f, struct live *l);
void foresight_ends(struct foresight *f, const struct job *j);
/* Something changed: what was foreseen is old. */
void foresight_touch(struct foresight *f);
/* Once a second: look ahead if it is time. */
void foresight_tick(struct foresight *f);
/* A look ahead is under way and points at live jobs: none may be freed. */
bool foresight_is_looking(const struct foresight *f);
/* A copy. */
struct forecast_error *foresight_error(const struct foresight *f);

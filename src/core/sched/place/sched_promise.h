/* SPDX-License-Identifier: Apache-2.0 */
/* sched_promise.h - the start that is promised to a job that cannot start yet. The scheduler's
 * own.
 *
 * A promise is a time and hosts: by then, whatever happens, the leases there have ended, as far
 * as limits are true. A later job may take those slots of these hosts that the promise leaves
 * free, or any free slot if it ends before. So no job that starts later moves a promise. */
#pragma once
#include "core/sched/sched_state.h"

/* The earliest time and the hosts, the driver's first. NEVER: even when all leases have ended. */
usec_t promise_find(struct sched *s, const struct shape *shape, struct numbers *ret_hosts);
/* Keep it, for this waiting job, which cannot start. */
void promise_make(struct sched *s, uint32_t job);
/* Let others pass this job, that could start or was passed before: hosts are kept for the time when
 * it is due. False: it does not yield, or could not have started yet. */
bool promise_yield(struct sched *s, uint32_t job);
void promise_drop_last(struct sched *s);
void promises_clear(struct sched *s);
/* A job of this pool waits in line already; jobs that compete with it come after it. */
void pool_wait(struct sched *s, uint32_t pool);
bool pool_has_waiting(const struct sched *s, uint32_t pool);
/* The promise that a job of this pool waits behind, NULL = none. */
const struct promise *promise_ahead(const struct sched *s, uint32_t pool);
const struct promise *promise_of(const struct sched *s, uint32_t job);

/* May a job with this share run on the host until `ends`, for all that is kept there? */
bool keep_allows(const struct sched *s,
                 const struct host *h,
                 const struct share *share,
                 usec_t ends);
void foresight_release(struct sched *s);

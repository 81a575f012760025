/* SPDX-License-Identifier: Apache-2.0 */
/* sched_ledger.h - the leases: which job holds which slots of which node. The scheduler's own. */
#pragma once
#include "core/sched/sched_state.h"

/* The gang's share of its driver's node, and of each other node. CPUs that may lie anywhere are
 * counted evenly on the gang's own nodes. */
void shares_of(const struct demand *d, struct share *ret_driver, struct share *ret_other);
void facts_take(struct sched *s, struct facts *f, const struct sched_job *job);
void facts_give(struct sched *s, struct facts *f); /* its accounts have one user less */

/* 0 if there is none. */
uint32_t lease_find(const struct sched *s, const char *id);
/* Lease n hosts, the driver's first, all of which hold their share. f is taken. */
uint32_t lease_begin(struct sched *s,
                     const struct facts *taken,
                     const struct shape *shape,
                     const struct numbers *hosts,
                     usec_t now);
/* When the lease's slots are promised to be free; now at the earliest is the caller's. */
usec_t lease_ends(const struct lease *l);
/* The lease was told to go, or goes by itself, and will be gone at this time. */
void lease_leave(struct sched *s, struct lease *l, usec_t at);
void lease_stay(struct sched *s, struct lease *l);
/* From its limit, or what stands for it: FAR if nothing does. */
usec_t job_lasts(const struct sched *s, usec_t limit);

/* Has a slot that others share room for `part` more? */
bool host_shares(const struct host *h, int part);
/* Is there room for this share now? */
bool host_holds(const struct host *h, const struct share *share);
/* host_holds() for the host without leases; others_too: also without what others hold. */
bool host_holds_empty(const struct host *h, const struct share *share, bool others_too);
/* The host as it would be without this part of a lease. */
struct host host_without(const struct host *h, const struct part *p);
/* The earliest time at which the ends of its leases leave room; 0 = now, NEVER = not even then. */
usec_t host_holds_at(const struct sched *s, const struct host *h, const struct share *share);
/* What no lease holds any more after `at`. */
struct room {
    int slots;
    int64_t cpus, memory;
};
void host_free_at(const struct sched *s, const struct host *h, usec_t at, struct room *ret);

/* "a,b" */
void ledger_names(const struct sched *s, const struct lease *l, struct buf *out);
void ledger_gang(const struct sched *s, const struct lease *l, struct gang *ret);
const char *ledger_check(const struct sched *s);

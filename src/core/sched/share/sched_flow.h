/* SPDX-License-Identifier: Apache-2.0 */
/* sched_flow.h - least attained service: who goes before whom, and which leases give way. The
 * scheduler's own.
 *
 * A job's rank is its level of attained service: the GPU time that it has had, or that jobs like
 * it are known to need if that is more. A lease gives way to a job that goes before it, right
 * after a checkpoint, and not before it ran for its slice: flow.quantum, or what its own costs of
 * saving and starting ask for. */
#pragma once
#include "core/sched/sched_state.h"

usec_t flow_back_within(const struct sched *s);
/* Its place within its level, the lowest first; 0 under other policies. */
uint64_t flow_rank(const struct sched *s, const struct waiting *w);
/* How many leases give way on the promise's nodes. */
int flow_count_givers(const struct sched *s, const struct promise *p);
/* Jobs behind those with promises so far may get promises of their own. */
bool flow_goes_on(const struct sched *s);
/* Ask leases to give way for the latest promise, if it comes much earlier by that. */
void flow_ask(struct sched *s);
/* See sched_is_wanted_back(). */
bool flow_is_wanted(struct sched *s, uint32_t lease, usec_t now);

/* SPDX-License-Identifier: Apache-2.0 */
/* sched_policy.h - how the policy fair uses the room between limits and learnt spans. The
 * scheduler's own.
 *
 * A job that is expected to run long lets shorter ones pass for a tenth of its own span:
 * `yields`, until `due`. Without learnt expectations no job yields, and all is as under easy. */
#pragma once
#include "core/sched/sched_state.h"

/* Jobs run in slices: what one ran before counts, and it may give way. */
bool policy_slices(const struct sched *s);

/* The start that w is promised when it becomes the first in line and could start at `earliest`. */
usec_t policy_told(const struct sched *s, const struct waiting *w, usec_t earliest);
/* Until when w, that could start now, may let others pass; now or earlier: it does not. */
usec_t policy_due(const struct sched *s, const struct waiting *w);
/* When the first yielding job of this walk is due; NEVER: none yields. */
usec_t policy_first_due(const struct sched *s);
/* True if w may start now as far as the yielding jobs ahead of it are concerned. Only jobs of
 * their project and priority pass, only if they end before, and whole nodes are left to jobs
 * that take whole nodes. */
bool policy_may_pass(const struct sched *s, const struct waiting *w);

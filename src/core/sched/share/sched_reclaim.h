/* SPDX-License-Identifier: Apache-2.0 */
/* sched_reclaim.h - borrowers that have to make room for a guarantee. The scheduler's own. */
#pragma once
#include "core/sched/sched_state.h"

/* Chooses the leases that must go for the claims whose promise is later than the grace. False:
 * no claim needed it; else promises have to be made anew. */
bool reclaim_begin(struct sched *s);
/* The account has a guarantee and holds no more than that. */
bool reclaim_is_covered(const struct account *a);
/* A node of the lease may serve jobs of the pool. */
bool reclaim_is_in_pool(const struct sched *s, const struct lease *l, uint32_t pool);
/* The next lease that must go and has not been told; false: all were. */
bool reclaim_tell(struct sched *s, struct sched_decision *ret);

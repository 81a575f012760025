/* SPDX-License-Identifier: Apache-2.0 */
/* sched_reclaim.h - borrowers who have to make room for a guarantee. The scheduler's own. */
#pragma once
#include "core/sched_state.h"

/* Choose who must go for the claims whose promise is later than the grace. False: there was nothing
 * to choose for; else promises have to be made anew. */
bool reclaim_begin(struct sched *s);
/* The next who must go and has not been told; false: all were. */
bool reclaim_tell(struct sched *s, struct sched_decision *ret);

/* SPDX-License-Identifier: Apache-2.0 */
/* sched_claims.h - waiting jobs that their account's guarantee covers. The scheduler's own.
 *
 * A claim comes before all that is not one; for it, borrowers are asked to go. */
#pragma once
#include "core/sched/sched_state.h"

/* Find out anew which jobs are claims, for the accounts where something changed. */
void claims_advance(struct sched *s);

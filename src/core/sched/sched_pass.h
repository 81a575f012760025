/* SPDX-License-Identifier: Apache-2.0 */
/* sched_pass.h - one walk down the queue. The scheduler's own. */
#pragma once
#include "core/sched/sched_state.h"

/* Makes the promises that a pass would make now, without starting a job: to explain by. */
void pass_look(struct sched *s, usec_t now);
bool pass_at_live_limit(const struct sched *s);
/* Longest that a job of this shape may last to start now in a gap; 0 = it may not, NEVER = any. */
usec_t pass_window(struct sched *s, struct shape *shape);
void pass_release(struct sched *s);

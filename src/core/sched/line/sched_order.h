/* SPDX-License-Identifier: Apache-2.0 */
/* sched_order.h - the order of the waiting jobs. The scheduler's own.
 *
 * Levels from the highest: jobs within a guarantee, starved jobs, priorities 100 … 0. In a level
 * of the fair policy each project has a group of its own, in order of submission, and the groups
 * are merged by standing: each job ahead in its group counts as if it had started. */
#pragma once
#include "core/sched/sched_state.h"

struct rank order_rank(const struct sched *s, uint32_t job);
/* The job's place, from 1, among those that compete for the same nodes. */
int order_place(struct sched *s, uint32_t job);
void listed_release(struct sched *s);

/* Heap of candidates, the best first. */
bool candidate_before(const struct candidate *a, const struct candidate *b);
void candidate_push(struct heap *h, const struct candidate *c);
struct candidate candidate_pop(struct heap *h);

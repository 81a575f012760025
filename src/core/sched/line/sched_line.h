/* SPDX-License-Identifier: Apache-2.0 */
/* sched_line.h - the jobs that wait, by level, pool and shape. The scheduler's own. */
#pragma once
#include "core/sched/sched_state.h"

/* The order within a group; a lane is a part of one. */
bool line_in_order(const struct sched *s, uint32_t a, uint32_t b);
uint64_t line_own_gpus(const struct sched *s, uint32_t job);
extern const struct tree_kind line_of_group, line_of_lane; /* line_of_group sums GPUs */

/* Adds a job whose level, a and b are set; project: the project whose group it joins, 0 = the
 * group of all projects. */
void line_join(struct sched *s, uint32_t job, uint32_t project);
void line_leave(struct sched *s, uint32_t job);

/* The first job of a line, in order, that lasts no longer than `lasts`. */
uint32_t line_within(const struct sched *s, uint32_t line, usec_t lasts);
/* The first of a line behind a job of another line; and behind one of its own. 0 at the end. */
uint32_t line_after(const struct sched *s, uint32_t line, uint32_t job);
uint32_t line_next(const struct sched *s, uint32_t job);
/* The jobs of a lane in order; 0 at the end. */
uint32_t lane_first(const struct sched *s, uint32_t lane);
uint32_t lane_next(const struct sched *s, uint32_t job);
/* How many of the lane are before this job of its group. */
uint32_t lane_before(const struct sched *s, uint32_t lane, uint32_t job);
const char *line_check(const struct sched *s);

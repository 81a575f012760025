/* SPDX-License-Identifier: Apache-2.0 */
/* sched_queue.h - the waiting jobs: into line and out of it. The scheduler's own. */
#pragma once
#include "core/sched/sched_state.h"

/* 0 if it does not wait. */
uint32_t waiting_find(const struct sched *s, const char *id);
/* Into line, out of line; a job that is held is in none. */
void queue_join(struct sched *s, uint32_t job);
void queue_leave(struct sched *s, uint32_t job);
/* The job waits no more: its row is gone. */
void queue_drop(struct sched *s, uint32_t job);
/* The jobs of this account may have another level now. */
void queue_reorder(struct sched *s, uint32_t account);
/* Time has come to `now`: starving jobs are moved up, and the jobs within a guarantee are known. */
void queue_advance(struct sched *s, usec_t now);
void queue_set_claims(struct sched *s, uint32_t job, uint8_t claims);

void queue_release(struct sched *s);
const char *queue_check(const struct sched *s);

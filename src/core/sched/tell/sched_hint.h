/* SPDX-License-Identifier: Apache-2.0 */
/* sched_hint.h - the smallest change that would start a waiting job now. The scheduler's own. */
#pragma once
#include "core/sched/sched_state.h"

/* Fills ret->hint and ret->hint_text; ret->code is known. Every hint was tried on a copy: it is
 * true of this state. */
void hint_find(struct sched *s, uint32_t job, struct sched_why *ret);
/* "2026-11-21T10:15Z" */
const char *minute_to_string(usec_t at, char text[static CLOCK_TEXT_MAX]);

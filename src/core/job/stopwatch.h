/* SPDX-License-Identifier: Apache-2.0 */
/* stopwatch.h - how long something has lasted, whatever clocks and restarts do.
 *
 * Within one start of the machine the span is exact: neither a jump of the wall clock nor
 * a restart of the program shortens or lengthens it. Across a start of the machine only
 * the wall clock knows how long it was away; it is believed, but never below zero. Pure. */
#pragma once
#include <stdbool.h>

#include "base/clock.h"
#include "base/field.h"

struct stopwatch {
    usec_t spent; /* before it was last started */
    bool running;
    usec_t wall, boot; /* when that was */
    char boot_id[CLOCK_BOOT_ID_MAX];
};

/* As rows keep it. */
extern const struct field_table stopwatch_table;

/* From zero. */
void stopwatch_start(struct stopwatch *w, const struct moment *now);
/* Pausing one that stands, or resuming one that runs, changes nothing. */
void stopwatch_pause(struct stopwatch *w, const struct moment *now);
void stopwatch_resume(struct stopwatch *w, const struct moment *now);
usec_t stopwatch_read(const struct stopwatch *w, const struct moment *now);

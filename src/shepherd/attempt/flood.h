/* SPDX-License-Identifier: Apache-2.0 */
/* flood.h - a ceiling per second for a stream, and the line for what it costs.
 *
 * The ceiling holds on the average: FLOOD_SPAN seconds of it may come at once. What is
 * dropped is dropped from the middle: the newest FLOOD_KEPT bytes of it are kept until the
 * stream may go on, so that an end that comes in a flood is never missing. Pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

enum { FLOOD_SPAN = 16, FLOOD_KEPT = 1 << 20, FLOOD_LINE = 400 };

struct flood;

struct flood *flood_new(uint64_t rate); /* bytes a second; 0: no ceiling */
void flood_free(struct flood *f);       /* NULL is fine */

/* May n bytes pass now? They are counted if so. While bytes are being dropped only after a
 * pause long enough for a second of output. */
bool flood_pass(struct flood *f, size_t n, usec_t mono);

/* These do not pass, for a reason that is copied. */
void flood_drop(struct flood *f, const char *p, size_t n, const char *why);
bool flood_is_dropping(const struct flood *f);
uint64_t flood_dropped(
    const struct flood *f); /* The number of bytes dropped so far, kept ones included. */
/* How that would end: the line that stands for what is missing, how many bytes are, and what was
 * kept of the newest, in two pieces. All is valid until the next call. */
struct flood_end {
    char line[FLOOD_LINE];
    uint64_t dropped;
    const char *kept[2];
    size_t kept_n[2];
};
void flood_end(const struct flood *f, struct flood_end *ret);
/* The flood has ended in the way just described. */
void flood_reset(struct flood *f);

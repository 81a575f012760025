/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - time as numbers and as text.
 *
 * usec_t everywhere: microseconds. Wall times count from 1970 UTC; spans are
 * plain differences. Only the programs (argusd, argus, shepherd) ask for the
 * time; everything below them gets `now` as an argument. */
#pragma once
#include <stdint.h>

#include "base/err.h"

typedef uint64_t usec_t;

#define USEC_MS ((usec_t)1000)
#define USEC_SEC ((usec_t)1000000)
#define USEC_MIN (60 * USEC_SEC)
#define USEC_HOUR (60 * USEC_MIN)
#define USEC_DAY (24 * USEC_HOUR)

usec_t clock_wall(void); /* may jump */
usec_t clock_mono(void); /* never jumps; only differences mean anything */

/* One instant on two clocks. `boot` runs on evenly while the machine sleeps or its wall clock
 * is set, and starts anew with the machine: boot_id says which start it counts from. */
struct moment {
    usec_t wall, boot;
    const char *boot_id; /* borrowed; "" = not known, then `boot` compares with nothing */
};
enum { CLOCK_BOOT_ID_MAX = 40 };
/* "" if the system does not say. Returns ret. */
const char *clock_boot_id(char ret[static CLOCK_BOOT_ID_MAX]);
struct moment clock_moment(const char *boot_id);

#define CLOCK_TEXT_MAX 32
/* "2026-11-21T10:15:00.123Z" (RFC 3339, UTC, milliseconds); "" for 0. Returns text. */
const char *clock_to_string(usec_t wall, char text[static CLOCK_TEXT_MAX]);
/* -EINVAL: not of that form (seconds' fraction and 'Z' are optional). */
must_check int clock_from_string(const char *text, usec_t *ret_wall, struct err *err);

/* "90s 30m 12h 2d" and sums such as "1h30m"; a bare number is seconds.
 * -EINVAL with a sentence that says the form. */
must_check int span_from_string(const char *text, usec_t *ret_span, struct err *err);
/* "2d3h", "4m10s", "12s": the two largest units. Returns text. */
const char *span_to_string(usec_t span, char text[static CLOCK_TEXT_MAX]);

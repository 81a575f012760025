/* SPDX-License-Identifier: Apache-2.0 */
/* when.h - times as a person wants them in a table: "3m ago", or UTC. */
#pragma once
#include <stdbool.h>

#include "argus/show/msg.h"
#include "base/clock.h"
#include "base/json.h"

enum { WHEN_TEXT_MAX = 64 };

struct when {
    usec_t now;
    bool utc;
    enum message_language lang;
};

/* The time of a member such as "queued_at"; 0 when it is missing, null or no time. */
usec_t when_get(const json_t *object, const char *key);
usec_t when_of(const json_t *text);

/* "3m ago", "in 2h" or "2026-11-21T10:15:00Z"; "-" for 0. Returns out. */
const char *when_point(const struct when *w, usec_t at, char out[static WHEN_TEXT_MAX]);

/* The same with the time as the clock on the wall here has it, and its zone: "3m ago (2026-11-21
 * 18:15:00 +0800)"; UTC alone where that was asked for. For the page of one thing. */
const char *when_here(const struct when *w, usec_t at, char out[static WHEN_TEXT_MAX]);

/* From start to end, or to now when end is 0: "4m10s"; "-" when it has not begun. A clock that
 * stands before the start gives "0s". */
const char *when_lasted(const struct when *w,
                        usec_t start,
                        usec_t end,
                        char out[static WHEN_TEXT_MAX]);

/* Only the largest unit: "3d", "4m". Returns out. */
const char *when_rough(usec_t span, char out[static WHEN_TEXT_MAX]);

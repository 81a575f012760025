/* SPDX-License-Identifier: Apache-2.0 */
/* serve_idle.h - when a service that nobody asks goes to sleep, and how long he who wakes it is
 * told to wait. Pure: what was seen and the time go in. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

/* "30m", "2h"; "off" is 0, it never sleeps. ERR_BAD_SPEC. */
must_check int serve_idle_read(const char *text, usec_t *ret, struct err *err);
/* ERR_BAD_SPEC: shorter than least. 0 is fine. */
must_check int serve_idle_check(usec_t idle, usec_t least, struct err *err);

struct serve_idle_seen {
    usec_t idle;      /* it sleeps after so long without a request; 0: never */
    bool answers;     /* a replica of the version that has the traffic is ready */
    bool is_changing; /* another version is being loaded, which is to get the traffic */
    int64_t requests; /* under way */
};
/* Is it time to sleep? *since, monotonic, is from when on nobody asks; 0: not known yet. Whoever
 * takes requests sets it to now with each that comes and each that ends. What is being loaded is
 * not idle: its time begins when it answers. */
bool serve_idle_is_over(usec_t *since, const struct serve_idle_seen *seen, usec_t now);

enum { SERVE_WAKE_UNKNOWN_S = 30, SERVE_WAKE_LEAST_S = 2 };
/* After how many seconds it is worth to ask a service again that is being woken. took: its last
 * load, 0: none was measured; gone: since it holds its lease this time, 0: it does not yet. */
int64_t serve_wake_left_s(usec_t took, usec_t gone);
/* A span in whole seconds, at least one. */
int64_t serve_wake_seconds(usec_t span);

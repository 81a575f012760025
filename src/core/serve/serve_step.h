/* SPDX-License-Identifier: Apache-2.0 */
/* serve_step.h - what a replica, a version and a service do next. Pure: what was seen goes in, the
 * next step comes out; asked again it says the same, so a restart goes on where it was.
 *
 *   replica   NEW -> WAITING (for its lease) -> LOADING (in Ray Serve's list) -> CHECKING -> READY
 *             LEAVING: it gets no request any more, finishes those that it has, gives its lease
 * back version   as its replicas: a version that was never ready and whose replicas fail has FAILED
 *   service   `wanted` takes the traffic from `current` in the moment in which it is ready */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "core/serve/serve_spec.h"

#define SERVE_UNIT_TABLE(X) X(NEW) X(WAITING) X(LOADING) X(CHECKING) X(READY) X(LEAVING) X(GONE)
enum serve_unit_state {
#define X(word) SERVE_UNIT_##word,
    SERVE_UNIT_TABLE(X)
#undef X
        SERVE_UNIT_STATES
};
extern const char *const serve_unit_words[];

enum serve_lease { SERVE_LEASE_NONE, SERVE_LEASE_WAITS, SERVE_LEASE_HELD, SERVE_LEASE_ENDS };

struct serve_unit_seen {
    bool leaves;            /* its service does not want it any more */
    enum serve_lease lease; /* ENDS: its job is asked to stop, whoever did it */
    bool is_running;        /* serve_seen_is_ready() */
    bool has_door;          /* a guarded proxy is there for it */
    bool passed;            /* it has answered its check since it runs */
};
enum serve_unit_state serve_unit_state(const struct serve_unit_seen *u);

#define SERVE_VERSION_TABLE(X)                                                                     \
    X(WAITING) X(LOADING) X(READY) X(DEGRADED) X(FAILED) X(COLD) X(SLEEPING)
enum serve_version_state {
#define X(word) SERVE_VERSION_##word,
    SERVE_VERSION_TABLE(X)
#undef X
        SERVE_VERSION_STATES
};
extern const char *const serve_version_words[];

struct serve_version_seen {
    bool failed;                    /* it was given up */
    bool awaits;                    /* its model is still being made */
    bool sleeps;                    /* it has the traffic, and nobody asked for long */
    bool was_ready;                 /* once */
    int64_t wanted, ready, loading; /* replicas */
};
enum serve_version_state serve_version_state(const struct serve_version_seen *v);

/* How long the next try of a replica waits whose job or application has failed so often in a row:
 * 5 s, doubled each time, 5 minutes at most. */
usec_t serve_unit_pause(int failures);
enum { SERVE_FAILURES_MAX = 3 }; /* of a version that was never ready: then it is given up */

/* ---- autoscaling ---- */

enum { SERVE_UP_AFTER_S = 5, SERVE_DOWN_AFTER_S = 120 };
struct serve_scale {
    usec_t above_since, below_since; /* monotonic; 0: it is not */
};
/* How many replicas there should be now, of one that has so many and so many requests under way on
 * average. s keeps since when that is so. */
int64_t serve_scale_next(struct serve_scale *s,
                         const struct serve_spec *spec,
                         int64_t replicas,
                         double requests,
                         usec_t now);

/* ---- rolling back where there is no room for both versions ---- */

/* Replicas of the version that is to get the traffic, and of the one that has it still. */
struct serve_yield_seen {
    int64_t to_waiting, to_loading, to_ready;
    int64_t to_failed; /* that came to nothing and have not been ready since; once it has the
                          traffic, none */
    int64_t from_held, from_ready, from_leaving; /* held: those that leave are none of them */
};
/* One more lease is given, if that would let a replica that waits begin. One at a time: what still
 * answers stays while a replica of the other version is being loaded. The last one that answers is
 * not given to a version that has only failed so far. */
bool serve_yield_is_due(const struct serve_yield_seen *y);
/* So many leases were given: the traffic goes over once as many replicas answer there as here,
 * though fewer than are wanted, for the rest have no room before. */
bool serve_yield_is_over(const struct serve_yield_seen *y, int64_t given);

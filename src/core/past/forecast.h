/* SPDX-License-Identifier: Apache-2.0 */
/* forecast.h - when waiting jobs will start: the scheduler's own copy run ahead.
 *
 * Pure. Works on a copy (sched_copy), so it may run on a worker thread. What runs is taken to
 * end as its learnt spans say, given how long it has run already; what the copy starts then, to
 * last its own span. That gives a wait, and a second one where all spans are long. Nobody knows
 * who will come later and overtake, so both are corrected by how past forecasts came true
 * (struct forecast_error): of late half of the waits would have ended by P50, nine in ten by P90.
 */
#pragma once
#include "core/sched/sched.h"

enum {
    FORECAST_MAX_STEPS = 50000, /* starts and ends of one run ahead: about 100 ms */
    FORECAST_SEEN = 400,        /* newest waits of each order of magnitude that count */
    FORECAST_OF_ONE = 8,        /* of those told at about one time all these count, then fewer */
};

struct forecast_error; /* bounded, deterministic */
struct forecast_error *forecast_error_new(void);
void forecast_error_free(struct forecast_error *e); /* NULL is fine */
struct forecast_error *forecast_error_copy(const struct forecast_error *e);

struct forecast_row {
    void *job;
    usec_t p50, p90;     /* wall: starts by then; 0 = cannot be foreseen */
    usec_t raw50, raw90; /* the waits from `now` before the correction: for forecast_error_add() */
};

/* A job that was told this row at told_at waited for `waited` from then. Tell each job once, of the
 * first forecast that it got, when it starts. One that was not foreseen teaches nothing. */
void forecast_error_add(struct forecast_error *e,
                        const struct forecast_row *row,
                        usec_t told_at,
                        usec_t waited);
/* The same for one that still waits: once its P90 is over that is learnt at once, and not only when
 * it starts at last. True: now it has been told. */
bool forecast_error_late(struct forecast_error *e,
                         const struct forecast_row *row,
                         usec_t told_at,
                         usec_t now);

/* The first `max` waiting jobs in the order of the queue. Takes the copy; e is borrowed and may
 * be NULL. Returns how many rows. What would need more than FORECAST_MAX_STEPS is not foreseen. */
size_t forecast_run(struct sched *taken_copy,
                    const struct forecast_error *e,
                    usec_t now,
                    size_t max,
                    struct forecast_row *ret);

/* How much longer something runs that has run for `ran`, of which the quantiles of the whole span
 * are p50 and p90 (0 = not known) and the limit is `limit` (0 = none): the q-quantile, 0.5 or 0.9.
 * At least a second; UINT64_MAX: nothing is known. */
usec_t forecast_left(usec_t ran, usec_t p50, usec_t p90, usec_t limit, double q);

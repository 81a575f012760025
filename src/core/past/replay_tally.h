/* SPDX-License-Identifier: Apache-2.0 */
/* replay_tally.h - what a replay measures: time integrals of use, waits, forecasts that came
 * true or not; tallies of several pools add up to that of all.
 *
 * Pure. Use, offer and fragmentation are counted inside one window, so that policies which end
 * at different times can be compared; waits are those of all jobs. Seconds are doubles. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

enum { TALLY_BUCKETS = 240, TALLY_CLASSES = 5 };

/* Sizes of gangs are put into classes: 1 (and 0), 2-4, 5-8, 9-16, >16 GPUs. Borrowed for ever. */
const char *tally_class_name(size_t i);
size_t tally_class_of(int gpus);

struct tally;

struct tally *tally_new(usec_t window_start, usec_t window_span);
void tally_free(struct tally *t); /* NULL is fine */

/* ---- what happens; times never fall ---- */

void tally_capacity(struct tally *t, int gpus); /* once, before anything else */
/* Everything that was said before held until now. */
void tally_advance(struct tally *t, usec_t now);
/* A job that holds `held` GPUs when it runs (whole nodes) joins the line or leaves it. */
void tally_waiting(struct tally *t, int held, bool joins);
/* It starts to use or leaves its GPUs; held >= gpus. */
void tally_running(struct tally *t, int gpus, int held, bool starts);

/* ---- what became of each job ---- */

void tally_started(struct tally *t, int gpus, usec_t waited, usec_t ran);
void tally_never(struct tally *t); /* it never fitted its pool */
/* A wait that had been forecast, counted from the moment of telling. */
void tally_forecast(struct tally *t, usec_t p50, usec_t p90, usec_t waited);
void tally_unforeseen(struct tally *t); /* asked, without an answer */
void tally_broken(struct tally *t);     /* started after the time that was promised */
void tally_preempted(struct tally *t);
/* A job that had given way runs again: after `away`, with `lost` before its next step. */
void tally_again(struct tally *t, int gpus, usec_t lost, usec_t away);
/* Its GPUs did nothing that lasts for so long. */
void tally_wasted(struct tally *t, int gpus, usec_t span);
/* A job ended that had given way so often. */
void tally_set_backs(struct tally *t, size_t n);

/* ---- adding up, and the result ---- */

/* Add what `pool` has to `sum`; both have the same window. */
void tally_join(struct tally *sum, const struct tally *pool);

struct tally_waits {
    size_t jobs;
    double mean, p50, p95, max;
};
struct tally_report {
    size_t jobs, never;
    int gpus;
    double utilisation;   /* GPU-seconds used / offered, in the window */
    double under_load;    /* the same while at least one job waited; NaN: none ever did */
    double fragmentation; /* GPU-seconds free while a waiting job needed no more than were free */
    double slowdown;      /* mean of max(1, (wait + run) / max(run, 10 s)) */
    double last_end;      /* of the last job, after the start of the window */
    struct tally_waits wait, classes[TALLY_CLASSES];
    size_t beyond; /* jobs that waited longer than `bound` */
    size_t forecasts, unforeseen, broken, preempted, set_backs; /* set_backs: the most of one job */
    double away;    /* the longest that one job was set back at once */
    double wasted;  /* share of the GPU time in use that saving, starting and redoing took */
    double covered; /* share of forecast waits that were over by P90; NaN without any */
    double error;   /* median of |waited - P50| */
};
/* bound: of starvation. Percentiles are of the nearest rank. */
void tally_report(struct tally *t, usec_t bound, struct tally_report *ret);

/* Means over the window's TALLY_BUCKETS equal parts: GPUs used, jobs waiting. Borrowed. */
const double *tally_used(const struct tally *t);
const double *tally_queue(const struct tally *t);
usec_t tally_bucket(const struct tally *t); /* the span of a part */

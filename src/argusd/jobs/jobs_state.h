/* SPDX-License-Identifier: Apache-2.0 */
/* jobs_state.h - what jobs.c (the table), queue.c (the scheduler's side) and foresight.c (what
 * is expected) share; nobody else includes it. */
#pragma once
#include "argusd/jobs/jobs.h"
#include "base/map.h"
#include "http/expo.h"

struct due;
struct foresight;
struct lanes;

/* Somebody who waits for news of a job. */
struct jobs_waiter {
    struct jobs_waiter *next;
    struct live *live;
    jobs_wait_f cb;
    void *arg;
    char told_code[JOB_REASON_CODE_MAX]; /* the reason that he knows: another one wakes him */
    int told_position;
};

/* What Prometheus is told that no table has; since this start of argusd. */
struct jobs_counts {
    uint64_t ended[JOB_STATE_END]; /* by state */
    uint64_t restarts;             /* attempts after the first one of their job */
    struct expo_spans waits;       /* of first attempts, in the queue */
    struct expo_spans runs;        /* of jobs that ended: their last attempt */
    double gpu_seconds;            /* that those attempts held */
    struct expo_spans passes;      /* of the scheduler */
};

struct jobs {
    struct jobs_parts p;
    struct store *store;
    struct sched *sched;
    struct map *by_id, *by_ray;
    size_t counts[JOB_STATE_END];
    struct jobs_counts seen; /* jobs_metrics.c */
    struct lanes *lanes;
    int64_t next_seq;
    struct live *act_first, **act_tail;
    struct live *ended; /* over; freed by jobs_sweep() */
    struct reason block;
    bool admit_soon;
    struct foresight *foresight;
    struct due *due;
    struct census *census;
    char boot_id[CLOCK_BOOT_ID_MAX];
    usec_t wall_then, boot_then; /* both clocks, once: jobs_now() counts on from there */
};

/* ---- jobs.c ---- */

/* Its state, flags or waiters changed, see due.h. */
void jobs_follow_due(struct live *l);
void jobs_wake(struct live *l);

/* ---- jobs_metrics.c ---- */

void jobs_metrics_init(struct jobs *js);
/* The event was applied. */
void jobs_metrics_count(struct live *l, enum job_event_kind kind, usec_t now);

/* ---- queue.c ---- */

/* A job that waits, or one whose lease exists already. */
void queue_enter(struct live *l);
void queue_restore(struct live *l);
/* Its lease is over, if it had one: what it held is the job's, before that is stored. */
void queue_settle(struct live *l);
/* Its state or flags changed. */
void queue_follow(struct live *l, enum job_state before);

/* SPDX-License-Identifier: Apache-2.0 */
/* advice_taken.h - was the advice right: what it foresaw beside what the job that took it got.
 *
 * Pure. hindsight.h tries an advice on jobs that never heard of it; here only jobs count that did
 * as an earlier job of their kind was advised. The advice is not stored: the figures of a job that
 * is over no longer change, so that judging them again gives the same advice.
 *
 * The next job of an advised one is the first job of its kind that was queued when the advised one
 * was over, that is over itself, took the newest advice of the kind, and can be compared; each
 * advice has one next job. What counts as taken is read from what the job was given, never from
 * what came of it:
 *
 * - fewer GPUs: at least those advised, and at least half of the way there from what the advised
 *   job had. What was foreseen is of the number that the next job had. What was got: the GPU time
 *   of the advised job less what its steps take at the next job's price of a step (all of its GPU
 *   time by the steps that counted). One of the two has at most twice the steps of the other. Where
 *   neither tells of steps both have to have succeeded, and are compared whole.
 * - saving more often: between two saves lay half to one and a half times the steps advised, and
 *   those of the advised job were further apart. What was got: what the advised job lost less what
 *   as many failures at the next job's mean loss cost. A next job that never failed tests nothing.
 *
 * Two kinds of advice are never compared: that data came faster can be seen only by what came of
 * it, and a shorter time limit foresees no GPU time. Both figures are GPU-seconds of the advised
 * job. That a step is the same work in both jobs is what their kind says; a batch that was made
 * larger meanwhile is in what was got. */
#pragma once
#include "core/account/waste.h"

struct advice_taken_job {
    const char *kind;           /* who runs what on which inputs; equal texts are alike. Borrowed */
    size_t row;                 /* the caller's own number of it */
    usec_t queued_at, ended_at; /* 0: not over yet */
    struct waste_facts facts;
    struct waste waste; /* as judged of these facts */
    bool is_tested;     /* zero at first: it has its next job */
};

struct advice_taken {
    size_t advised, next;     /* rows of the two jobs */
    usec_t ended_at;          /* when the next one was over */
    double foreseen_s, got_s; /* GPU-seconds of the advised job; got below 0: it cost more */
};

/* Sorts the jobs. ret has room for n pairs; returns how many there are, those first whose next job
 * ended last. */
size_t advice_taken_find(struct advice_taken_job *jobs, size_t n, struct advice_taken *ret);

/* The median of |got - foreseen| / foreseen; NaN: there is no pair. */
double advice_taken_error(const struct advice_taken *pairs, size_t n);

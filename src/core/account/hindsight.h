/* SPDX-License-Identifier: Apache-2.0 */
/* hindsight.h - was the advice any good: what the advice of one week would have saved in the next.
 *
 * Pure. A job of the later week that is of the same kind as an advised one of the earlier week is
 * judged by its own figures, as if it had run as that advice says. It never counts what the job
 * itself would be advised: it is a test of the advice, not another advice. */
#pragma once
#include "core/account/waste.h"

struct hindsight_job {
    const char *kind; /* who runs what: equal texts are alike. Borrowed */
    bool later;       /* of the later week */
    int64_t order;    /* of two advised jobs of one kind the one with the higher order counts */
    struct waste_facts facts;
    struct waste waste; /* as judged of these facts */
};

struct hindsight {
    size_t advised;    /* kinds with an advice that spares GPU time in the earlier week */
    size_t tried;      /* jobs of these kinds in the later week */
    size_t too_small;  /* of these: more was busy than the advice leaves them, so it was wrong */
    double promised_s; /* GPU-seconds that the tried kinds' advice promised of its own job */
    double saved_s;    /* GPU-seconds that it would have saved in the tried jobs; below 0: cost */
    double held_s;     /* that the tried jobs held */
};
/* Sorts the jobs. */
void hindsight_judge(struct hindsight_job *jobs, size_t n, struct hindsight *ret);

/* What this job would have saved by that advice, in GPU-seconds; NaN: it would not have fitted. */
double hindsight_of(const struct waste *advice, const struct hindsight_job *job);

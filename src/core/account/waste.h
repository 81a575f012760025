/* SPDX-License-Identifier: Apache-2.0 */
/* waste.h - what of a job's GPU time came to nothing, by name, and what would change it.
 *
 * All of it from the job's own figures: what its leases held, what of that was measured idle, which
 * steps were run again, what a save takes and how far its failures were apart. Times are
 * GPU-seconds. Pure. */
#pragma once
#include <stdbool.h>

#include "core/metric/goodput.h"

/* The words leave the process (JSON). */
#define WASTE_ADVICE_TABLE(X)                                                                      \
    X(NONE, none)                                                                                  \
    X(FEWER_GPUS, fewer_gpus)           /* `gpus` would have held what was not idle */             \
    X(SAVE_MORE_OFTEN, save_more_often) /* every `save_freq` steps */                              \
    X(FASTER_DATA, faster_data)         /* no more between steps than in the best tenth of them */ \
    X(SHORTER_TIME_LIMIT, shorter_time_limit) /* a timeout of `timeout` */
#define X(name, word) WASTE_##name,
enum waste_advice { WASTE_ADVICE_TABLE(X) WASTE_ADVICES };
#undef X
const char *waste_advice_to_string(enum waste_advice a);

struct waste_facts {
    double held_s, idle_s, unknown_s; /* GPU-seconds */
    double gpus;
    const struct goodput_sums *sums; /* of its steps; NULL: it told of none */
    int failures;                    /* that ended an attempt */
    bool failed;                     /* the last one ended the job: nobody goes on from its saves */
    usec_t timeout, ran;             /* of running; 0: none, or not known */
    bool succeeded;
};

struct waste {
    double idle_s;            /* held, and measured idle */
    double redone_s;          /* steps that a later attempt ran again */
    double failed_s;          /* steps since the last save of a job that failed for good */
    double between_s;         /* between steps: waiting for data; a part of it may be idle, too */
    enum waste_advice advice; /* the one that gains most */
    int gpus;
    int64_t save_freq;
    double least_between; /* the part of its time between steps that is advised */
    usec_t timeout;
    double gain_s; /* GPU-seconds that it would have spared this job; 0 of a shorter timeout, which
                      spares none: how much sooner a job starts by it is up to others */
};
void waste_judge(const struct waste_facts *f, struct waste *ret);

/* A timeout for a job that runs so long, with room for a slow day, in a round number; 0: the one
 * that it has (0: none) is near enough to that, or ran is 0. */
usec_t waste_time_limit(usec_t ran, usec_t limit);

/* GPU-seconds that lay between its steps beyond this part of their time, 0 to 1. */
double waste_between_above(const struct waste_facts *f, double part);

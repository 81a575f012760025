/* SPDX-License-Identifier: Apache-2.0 */
/* replay.h - past jobs of one pool once more, through the scheduler that argusd runs.
 *
 * Pure and deterministic. What a job's run really took ends it, and is hidden from the
 * scheduler: that sees the limit (the user's guess) and, with the learner, what runs that ended
 * before have taught. A job of more GPUs than a node has takes whole nodes; the others lie on
 * one node. At each instant ends come first, then submissions, then the pass.
 *
 * Forecasts are asked as argusd asks them: for all that wait, now and then; each job is told
 * once, the first time it is among the answered. How often is bounded by REPLAY_LOOK_AHEAD. */
#pragma once
#include <stdint.h>

#include "core/past/replay_tally.h"
#include "core/sched/sched.h"

enum {
    REPLAY_LOOK_AHEAD = 1,  /* forecast starts per submission, on average, that are paid for */
    REPLAY_MAX_ROWS = 4000, /* of one forecast */
};

struct replay_job { /* by time of submission */
    usec_t submit, duration, limit;
    int gpus;
};

/* What it costs to give way under flow. Checkpoints that a job writes anyway are part of its
 * duration. */
struct replay_costs {
    usec_t every;         /* from one checkpoint to the next; 0 = no job saves */
    usec_t save, restart; /* GPU time that is lost to the stop, and before the next step */
    double restartable;   /* share of the jobs that may be set back */
};

struct replay {
    const struct replay_job *jobs;
    size_t n;
    int nodes, gpus_per_node;
    enum sched_policy policy;
    usec_t starve_after;
    bool learner, forecasts;
    struct replay_costs costs;
    /* Asked at each instant, with the jobs that were submitted until then; false ends the replay
     * there, and what it has told is of no use. NULL: nobody asks. */
    bool (*go_on)(size_t submitted, void *arg);
    void *arg;
};

/* Everything that happens is told to tally (window and all); the result is a digest of every
 * decision: when, which job, on which nodes. */
uint64_t replay_run(const struct replay *r, struct tally *tally);

/* Limits from true durations: times a factor drawn evenly between low and high, in whole seconds,
 * at least one. The same seed and pool name give the same guesses. */
void replay_guess(struct replay_job *jobs,
                  size_t n,
                  double low,
                  double high,
                  uint64_t seed,
                  const char *pool);

/* Digests of parts into one of the whole, in order. */
uint64_t replay_mix(uint64_t digest, uint64_t more);

/* SPDX-License-Identifier: Apache-2.0 */
/* verdict_runs.h - made runs for the tests of the verdict: what verl would tell of each step of a
 * training that is well, and of one that goes wrong in a known way from a known step on. The same
 * seed makes the same run. */
#pragma once
#include "core/training/training.h"

/* A fault that begins at a step; VERDICT_KINDS: none does. */
struct made_run {
    uint64_t seed;
    enum verdict_kind fault;
    int64_t onset, steps;
    bool is_sft;
};
/* A fault of a training on given answers. */
bool made_run_is_sft(enum verdict_kind fault);
/* A loss that does not move, a reward with nothing to learn and a warm-up without an end are so
 * from the first step on, whatever was wanted. */
int64_t made_run_onset(enum verdict_kind fault, int64_t wanted);
/* The whole run into t, with what its machines have. */
void made_run_feed(const struct made_run *run, struct training *t);

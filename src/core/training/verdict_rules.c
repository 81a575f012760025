/* SPDX-License-Identifier: Apache-2.0 */
/* verdict_rules.c - the rules; see verdict_rules.h. The limits of the gap are verl's own
 * (docs/algo/rollout_corr.md): importance weight 0.5 to 2 in the mean, spread at most 1, effective
 * sample size at least 0.3, KL at most 0.1 either way, chi-squared at most 1. */
#include "core/training/verdict_rules.h"

#include <assert.h>

#include "base/mem.h"

const struct verdict_rule verdict_rules[] = {
    {VERDICT_ENTROPY_COLLAPSE, TRAIN_ENTROPY, VERDICT_UNDER_BASE, .factor = 0.12,
     .flags = VERDICT_UNLESS_BETTER | VERDICT_TURNS, .turn = TRAIN_ENTROPY, .sure = 0.7},
    {VERDICT_ENTROPY_COLLAPSE, TRAIN_ENTROPY, VERDICT_UNDER_USUAL, .factor = 0.4,
     .flags = VERDICT_UNLESS_BETTER | VERDICT_TURNS, .turn = TRAIN_ENTROPY, .sure = 0.6},
    {VERDICT_ENTROPY_RISE, TRAIN_ENTROPY, VERDICT_OVER_BASE, .factor = 2, .limit = 0.2,
     .flags = VERDICT_UNLESS_BETTER | VERDICT_TURNS, .turn = TRAIN_ENTROPY, .sure = 0.7},
    {VERDICT_ENTROPY_RISE, TRAIN_ENTROPY, VERDICT_OVER_USUAL, .factor = 2, .limit = 0.2,
     .flags = VERDICT_UNLESS_BETTER | VERDICT_TURNS, .turn = TRAIN_ENTROPY, .sure = 0.6},
    {VERDICT_KL_SPIKE, TRAIN_PPO_KL, VERDICT_SPIKE, .factor = 12, .limit = 0.02, .of = 1, .in = 2,
     .flags = VERDICT_ABSOLUTE, .sure = 0.6},
    {VERDICT_KL_SPIKE, TRAIN_KL_LOSS, VERDICT_SPIKE, .factor = 12, .limit = 0.05, .of = 1, .in = 2,
     .flags = VERDICT_ABSOLUTE, .sure = 0.6},
    {VERDICT_KL_SPIKE, TRAIN_KL_PENALTY, VERDICT_SPIKE, .factor = 12, .limit = 0.3, .of = 1,
     .in = 2, .flags = VERDICT_ABSOLUTE, .sure = 0.6},
    {VERDICT_KL_HIGH, TRAIN_PPO_KL, VERDICT_ABOVE, .limit = 0.3, .of = 4, .in = 5,
     .flags = VERDICT_ABSOLUTE, .sure = 0.8},
    {VERDICT_GRAD_JUMP, TRAIN_GRAD_NORM, VERDICT_SPIKE, .factor = 12, .limit = 1e-3, .of = 3,
     .in = 4, .sure = 0.7},
    {VERDICT_NO_UPDATE, TRAIN_GRAD_NORM, VERDICT_BELOW, .limit = 1e-9, .of = 5, .in = 5,
     .flags = VERDICT_ABSOLUTE, .sure = 0.9},
    {VERDICT_NO_UPDATE, TRAIN_LEARNING_RATE, VERDICT_BELOW, .limit = 1e-30, .of = 10, .in = 10,
     .flags = VERDICT_ABSOLUTE, .sure = 0.9},
    {VERDICT_LENGTH_LIMIT, TRAIN_CUT, VERDICT_OVER_BASE, .factor = 1.5, .limit = 0.2,
     .flags = VERDICT_SHOW_PERCENT | VERDICT_TURNS, .turn = TRAIN_LENGTH, .sure = 0.8},
    {VERDICT_NO_END, TRAIN_CUT, VERDICT_ABOVE, .limit = 0.995, .of = 10, .in = 10,
     .flags = VERDICT_SHOW_PERCENT, .sure = 0.8},
    {VERDICT_ABORTED, TRAIN_ABORTED, VERDICT_ABOVE, .limit = 0.2, .of = 3, .in = 4,
     .flags = VERDICT_SHOW_PERCENT, .sure = 0.8},
    {VERDICT_CLIPPED, TRAIN_CLIPPED, VERDICT_ABOVE, .limit = 0.5, .of = 4, .in = 5,
     .flags = VERDICT_SHOW_PERCENT, .sure = 0.7},
    {VERDICT_REWARD_FLAT, TRAIN_REWARD, VERDICT_CONSTANT, .in = 10, .flags = VERDICT_AT_ITS_BEST,
     .sure = 0.9},
    {VERDICT_GROUPS_FLAT, TRAIN_ADVANTAGE_MAX, VERDICT_BELOW, .limit = 1e-6, .of = 4, .in = 5,
     .flags = VERDICT_ABSOLUTE, .sure = 0.9},
    {VERDICT_PARTED, TRAIN_VALIDATION, VERDICT_REWARD_ALONE, .in = 4, .factor = 0.25, .sure = 0.5},
    {VERDICT_GAP, TRAIN_IS_MEAN, VERDICT_ABOVE, .limit = 2, .of = 3, .in = 5, .sure = 0.8},
    {VERDICT_GAP, TRAIN_IS_MEAN, VERDICT_BELOW, .limit = 0.5, .of = 3, .in = 5, .sure = 0.8},
    {VERDICT_GAP, TRAIN_IS_STD, VERDICT_ABOVE, .limit = 1, .of = 3, .in = 5, .sure = 0.8},
    {VERDICT_GAP, TRAIN_IS_SIZE, VERDICT_BELOW, .limit = 0.3, .of = 3, .in = 5, .sure = 0.8},
    {VERDICT_GAP, TRAIN_GAP_KL, VERDICT_ABOVE, .limit = 0.1, .of = 3, .in = 5,
     .flags = VERDICT_ABSOLUTE, .sure = 0.8},
    {VERDICT_GAP, TRAIN_GAP_CHI2, VERDICT_ABOVE, .limit = 1, .of = 3, .in = 5, .sure = 0.8},
    {VERDICT_STALE, TRAIN_STALENESS_MOST, VERDICT_ABOVE, .limit = 3, .of = 4, .in = 5, .sure = 0.7},
    {VERDICT_MEMORY, TRAIN_GPU_MEMORY, VERDICT_MEETS_BOUND, .in = 15, .sure = 0.7},
    {VERDICT_MEMORY, TRAIN_HOST_MEMORY, VERDICT_MEETS_BOUND, .in = 15, .sure = 0.7},
    {VERDICT_LOSS_JUMP, TRAIN_LOSS, VERDICT_OVER_USUAL, .factor = 1.8, .limit = 0.1,
     .flags = VERDICT_TURNS, .turn = TRAIN_LOSS, .sure = 0.7},
};
const size_t verdict_rules_n = array_len(verdict_rules);
static_assert(array_len(verdict_rules) <= VERDICT_RULES_MAX, "each rule has a state");

/* SPDX-License-Identifier: Apache-2.0 */
/* training_figure.h - the metrics of verl that are judged here: one table of their names, of the
 * versions that have them, their unit and their meaning.
 *
 * A figure is what a name means, whatever a version calls it: of several names of one figure the
 * first that a record has counts. Names were read in verl 0.4.1 to 0.9.1; those of samples are our
 * own, of the dumps that verl writes since. Pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "core/metric/metric.h"

enum training_figure {
    /* Seconds of a step; see anatomy.h. */
    TRAIN_STEP,
    TRAIN_GEN,
    TRAIN_GEN_BASELINE,
    TRAIN_REWARD_S,
    TRAIN_OLD_LOG_PROB,
    TRAIN_REF,
    TRAIN_VALUES,
    TRAIN_ADVANTAGE,
    TRAIN_UPDATE_ACTOR,
    TRAIN_UPDATE_CRITIC,
    TRAIN_WEIGHTS,
    TRAIN_WEIGHTS_SYNC,
    TRAIN_SAVE,
    TRAIN_VALIDATE,
    TRAIN_SAMPLE_GEN_MEAN,
    TRAIN_SAMPLE_GEN_MAX,
    TRAIN_SLOWEST_GEN,
    TRAIN_SLOWEST_TOOLS,
    TRAIN_SLOWEST_SCORE,
    TRAIN_SLOWEST_PROMPT,
    TRAIN_SLOWEST_RESPONSE,
    TRAIN_TOKENS,
    TRAIN_THROUGHPUT,
    /* What a training tells of itself; see verdict.h. */
    TRAIN_REWARD,
    TRAIN_REWARD_MIN,
    TRAIN_REWARD_MAX,
    TRAIN_ADVANTAGE_MIN,
    TRAIN_ADVANTAGE_MAX,
    TRAIN_ENTROPY,
    TRAIN_PPO_KL,
    TRAIN_KL_LOSS,
    TRAIN_KL_PENALTY,
    TRAIN_GRAD_NORM,
    TRAIN_CLIPPED,
    TRAIN_LEARNING_RATE,
    TRAIN_LENGTH,
    TRAIN_LENGTH_MOST,
    TRAIN_CUT,
    TRAIN_ABORTED,
    TRAIN_IS_MEAN,
    TRAIN_IS_STD,
    TRAIN_IS_SIZE,
    TRAIN_GAP_KL,
    TRAIN_GAP_CHI2,
    TRAIN_PROBS_DIFF,
    TRAIN_PROBS_ALIKE,
    TRAIN_STALENESS,
    TRAIN_STALENESS_MOST,
    TRAIN_GPU_MEMORY,
    TRAIN_HOST_MEMORY,
    TRAIN_LOSS,
    TRAIN_EXPLAINED,
    TRAIN_PROMPTS_CUT,
    TRAIN_PROMPT_LEAST,
    TRAIN_PROMPT_MOST,
    TRAIN_TURNS,
    TRAIN_KL_COEF,
    /* What its samples say: core/sample/sample_figures.h. */
    TRAIN_FLAT_GROUPS,
    TRAIN_SOLVED_GROUPS,
    TRAIN_SAME_ANSWERS,
    TRAIN_ONE_ANSWER,
    TRAIN_REPEATS,
    TRAIN_FRESH_PROMPTS,
    TRAIN_BY_PROMPT,
    TRAIN_BY_ANSWER,
    TRAIN_WIDE_ANSWERS,
    TRAIN_WIDE_PROMPTS,
    TRAIN_BLANK_ANSWERS,
    TRAIN_TEMPLATE_ANSWERS,
    TRAIN_TWIN_PROMPTS,
    TRAIN_VALIDATION,
    TRAINING_FIGURES
};

struct training_name {
    enum training_figure figure;
    const char *name;
    const char *since, *until; /* versions of verl that write it; until NULL: to this day */
    const char *unit;          /* "s" "tokens" "GB" "share" or "", a plain number */
    const char *meaning;
};
extern const struct training_name training_names[];
extern const size_t training_names_n;

/* All figures of one record: NaN where it has none. A validation is the first val-core/ metric by
 * its name. */
struct training_look {
    double v[TRAINING_FIGURES];
    const char *name[TRAINING_FIGURES]; /* under which it was told; NULL: not told. Borrowed from r
                                           where it is a validation's. */
};
void training_look(const struct metric_record *r, struct training_look *ret);
/* Is it the name of a main figure of a validation? Each benchmark has its own. */
bool training_is_validation(const char *name);

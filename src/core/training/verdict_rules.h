/* SPDX-License-Identifier: Apache-2.0 */
/* verdict_rules.h - the rules of the verdict as data: which figure is looked at, in which shape, by
 * which limits. verdict_shape.c says whether one holds. */
#pragma once
#include "core/training/training_figure.h"
#include "core/training/verdict_kind.h"

enum verdict_shape {
    /* `of` of the newest `in` values are beyond limit. */
    VERDICT_ABOVE,
    VERDICT_BELOW,
    /* The median of the newest five is beyond factor times the baseline, and by limit beyond it. */
    VERDICT_OVER_BASE,
    VERDICT_UNDER_BASE,
    /* The same against what was usual before the newest ten. */
    VERDICT_OVER_USUAL,
    VERDICT_UNDER_USUAL,
    /* `of` of the newest `in` lie factor spreads and five times over what is usual, and over limit
     */
    VERDICT_SPIKE,
    /* The newest `in` are the same. */
    VERDICT_CONSTANT,
    /* Neither the figure nor `turn` is over limit in the mean of the newest `in`, while most groups
     * have different scores. */
    VERDICT_NEITHER,
    /* The mean of the newest `in` is the first values' mean within factor times what chance gives,
     * and no line through all that is kept explains more than limit. */
    VERDICT_UNMOVED,
    /* The median of the newest five is below the baseline by limit of what the baseline is above
     * the smallest score, by factor of the range of the scores, and by the run's own spread. */
    VERDICT_SUNK,
    /* The first ten values and the newest `in` are limit of the best score, or more, and limit of
     * the range of the scores, or more: scores may begin far above 0. */
    VERDICT_FULL,
    /* All that is kept, `in` at least, lies on a line that rises from 0 at the first step, and
     * limit of the training is over. */
    VERDICT_WARMS,
    /* The reward rose, and no validation of the newest `in` did. */
    VERDICT_REWARD_ALONE,
    /* A line through the values since they turned, `in` at least, meets its bound before the
     * training ends. */
    VERDICT_MEETS_BOUND,
};

enum verdict_rule_flags {
    VERDICT_ABSOLUTE = 1 << 0,      /* of the value without its sign */
    VERDICT_UNLESS_BETTER = 1 << 1, /* not while the reward rises, or is as good as it can be */
    VERDICT_AT_ITS_BEST = 1 << 2,   /* not of a value that is the best that was seen */
    VERDICT_SHOW_PERCENT = 1 << 3,  /* the value is a share */
    VERDICT_TURNS = 1 << 4,         /* it begins where the turn of `turn` is */
    VERDICT_UNLESS_SOLVED = 1 << 5, /* not while the reward is as good as it can be */
    /* Not while no answer has scored yet, for so many steps as a hard task may need to begin. */
    VERDICT_UNLESS_WAITS = 1 << 6,
    VERDICT_UNLESS_FIRST = 1 << 7,  /* not where no answer had scored before the newest values */
    VERDICT_OWN_SPREAD = 1 << 8,    /* of a level: by four spreads of this run beyond it, too */
    VERDICT_RISEN = 1 << 9,         /* of a limit: the value is factor times the baseline, too */
    VERDICT_WHILE_RISEN = 1 << 10,  /* only where the reward has risen from its first values */
    VERDICT_OR_GRADIENT = 1 << 11,  /* of a spike: one is enough where the gradient has one, too */
    VERDICT_SAYS_LENGTH = 1 << 12,  /* told is the longest answer as the limit, and no baseline */
    VERDICT_UNLESS_TURNS = 1 << 13, /* not of answers that are whole conversations */
    VERDICT_ONE_LIMIT = 1 << 14,    /* of prompts: only where the longest are always equally long */
    /* For a limit: not while a line through the newest `in` rises. */
    VERDICT_UNLESS_CLIMBS = 1 << 15,
    /* Only where the KL is in the loss (some versions of verl write 0 where it is not), and not
     * while the learning rate rises: such small steps may round to nothing. */
    VERDICT_KL_IN_LOSS = 1 << 16,
};

struct verdict_rule {
    enum verdict_kind kind;
    enum training_figure figure;
    enum verdict_shape shape;
    double limit, factor;
    size_t of, in;
    unsigned flags;
    enum training_figure turn;
    double sure; /* how certain it is at first */
};
extern const struct verdict_rule verdict_rules[];
extern const size_t verdict_rules_n;
enum { VERDICT_RULES_MAX = 64 };

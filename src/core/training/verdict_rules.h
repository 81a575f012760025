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
enum { VERDICT_RULES_MAX = 40 };

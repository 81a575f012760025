/* SPDX-License-Identifier: Apache-2.0 */
/* verdict_state.h - what verdict.c keeps of a training, for verdict_shape.c, which judges it, and
 * verdict_page.c, which shows it. */
#pragma once
#include "core/training/verdict_rules.h"
#include "core/training/verdict_series.h"

enum {
    VALIDATIONS_MAX = 16, /* benchmarks of one training; more are not looked at */
    VALIDATION_KEPT = 8,
};

/* The newest values of one benchmark. */
struct verdict_validation {
    char name[METRIC_NAME_MAX + 1];
    double v[VALIDATION_KEPT];
    size_t n; /* that ever came */
};

/* What one rule came to. */
struct verdict_hold {
    bool seen, stands;
    int64_t onset, told, ended;
    int held, quiet; /* records for which it held since it was told, and in a row did not */
    double value, base, limit;
    char metric[METRIC_NAME_MAX + 1];
};

struct verdict {
    struct verdict_series of[TRAINING_FIGURES];
    const char *name[TRAINING_FIGURES]; /* under which it was told last; NULL: never. Of
                                           training_names */
    char validation[METRIC_NAME_MAX + 1];
    struct verdict_validation validations[VALIDATIONS_MAX];
    size_t n_validations;
    double reward_at[SERIES_KEPT]; /* about each kept validation, in its place; NaN: none yet */
    struct verdict_hold holds[VERDICT_RULES_MAX];
    struct verdict_hold not_finite, fell; /* by the watch */
    double best_sample, least_sample;     /* the greatest and smallest score of an answer; NaN */
    struct sample_picks *picks[VERDICT_KINDS]; /* heap; NULL: none yet */
    struct verdict_bounds bounds;
    bool has_gap; /* a figure of the gap was ever other than 0 */
    int64_t steps, step;
};

/* Does the rule hold now? Fills onset, value, base and limit of ret. */
bool verdict_rule_holds(const struct verdict *v,
                        const struct verdict_rule *rule,
                        struct verdict_hold *ret);

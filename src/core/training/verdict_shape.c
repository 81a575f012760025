/* SPDX-License-Identifier: Apache-2.0 */
/* verdict_shape.c - whether a rule of each shape holds; see verdict_rules.h. */
#include <math.h>
#include <string.h>

#include "core/training/verdict_state.h"

enum {
    NEWEST = 5,      /* values whose median is "now" */
    USUAL_BACK = 10, /* what is usual lies before these */
    USUAL = 30,      /* and is the median of so many */
    USUAL_LEAST = 12,
    BETTER = 10,    /* values of the reward that are held against as many before */
    LINE_AFTER = 2, /* of a trend: times the steps that were seen, where no end is known */
    RAMP = 30,      /* values of memory at the start, which fills caches */
    WAITS = 30,     /* values of the reward after which a hard task should have begun */
    /* A long run's reward rises by less than its noise in so few values as above. */
    LONG = 2 * SERIES_KEPT,
};
static const double SOLVED = 0.85;    /* of the best sample's score: there is no more to gain */
static const double ALL_RIGHT = 0.98; /* a validation that cannot rise */
static const double TIMES_USUAL = 5;  /* a spike is at least so many times what is usual */
static const double LINE_FIT = 0.9;   /* the least share that a trend explains */
static const double SLOW_FIT = 0.13;  /* of SERIES_KEPT values: three times the error of a slope */
static const double NO_SCORE = 0.01;  /* of the range of the scores: no answer scores */
static const double OWN_SPREADS = 4;
static const double STRAIGHT = 0.999, FROM_ZERO = 0.05; /* of a schedule that only warms up */
static const double WIDE_PROMPTS = 0.5; /* the shortest prompt of the longest: lengths differ */
static const double TURNS = 2.01;       /* a prompt and its answer are two */
static const double CLIMBS = 0.3;       /* a line explains less of tens of values by chance */

static double signless(const struct verdict_rule *rule, double x)
{
    return rule->flags & VERDICT_ABSOLUTE ? fabs(x) : x;
}

/* The mean of the newest n is near the best score that any answer had. Where all answers always had
 * the same score that says nothing. */
static bool is_solved(const struct verdict *v, size_t n)
{
    double now = series_mean(&v->of[TRAIN_REWARD], 0, n), best = v->best_sample;
    return best > 0 && !(best <= v->least_sample) && now >= SOLVED * best;
}

/* In a long run: a line through all that is kept rises, and its newer half does not fall. */
static bool is_rising_slowly(const struct verdict_series *s)
{
    if (s->n < LONG)
        return false;
    struct series_line all = series_line(s, SERIES_KEPT), half = series_line(s, SERIES_KEPT / 2);
    return all.slope > 0 && all.fit > SLOW_FIT && half.slope > -all.slope;
}

/* The reward rises, or is as good as it can be. */
static bool is_better(const struct verdict *v)
{
    const struct verdict_series *s = &v->of[TRAIN_REWARD];
    size_t n = series_count(s) / 2;
    n = n < BETTER ? n : BETTER;
    if (n < 3)
        return false;
    double now = series_mean(s, 0, n), before = series_mean(s, n, n);
    double error = series_noise(s, 2 * n) * sqrt(2.0 / (double)n);
    return is_solved(v, n) || now - before > fmax(1.5 * error, 0.01 * fabs(before)) ||
           is_rising_slowly(s);
}

/* A reward at which no answer scores; a constant above 0 is another matter. */
static bool is_no_score(const struct verdict *v, double reward)
{
    double floor = fmin(v->least_sample, 0), best = fmax(v->best_sample, 0);
    return reward - floor <= NO_SCORE * (best - floor);
}

/* No answer has scored yet, and there were few steps: the task may be a hard one. */
static bool is_waiting(const struct verdict *v)
{
    const struct verdict_series *s = &v->of[TRAIN_REWARD];
    return s->n && s->n < WAITS && is_no_score(v, series_median(s, 0, WAITS));
}

/* Until the newest few values no answer had scored. */
static bool is_first_score(const struct verdict *v)
{
    const struct verdict_series *s = &v->of[TRAIN_REWARD];
    return series_count(s) > NEWEST && is_no_score(v, series_median(s, NEWEST, USUAL));
}

/* The reward is more than its first values were. */
static bool has_risen(const struct verdict *v)
{
    const struct verdict_series *s = &v->of[TRAIN_REWARD];
    double base = series_baseline(s), now = series_mean(s, 0, NEWEST);
    return now - base > fmax(0.1 * fabs(base), 3 * series_noise(s, USUAL) / sqrt(NEWEST));
}

/* Prompts of many lengths, of which the longest are always equally long: there is a limit. Prompts
 * that all are equally long are cut by none, whatever verl's share of the longest says. */
static bool has_prompt_limit(const struct verdict *v, size_t n)
{
    const struct verdict_series *most = &v->of[TRAIN_PROMPT_MOST];
    size_t same = 0;
    while (same < n && same < series_count(most) &&
           fabs(series_at(most, same) - series_at(most, 0)) < 0.5)
        same++;
    return n && same == n &&
           series_median(&v->of[TRAIN_PROMPT_LEAST], 0, n) <= WIDE_PROMPTS * series_at(most, 0);
}

static bool is_climbing(const struct verdict_series *s, size_t n)
{
    struct series_line line = series_line(s, n);
    return line.slope > 0 && line.fit > CLIMBS;
}

static bool is_kl_in_loss(const struct verdict *v, size_t n)
{
    const struct verdict_series *rate = &v->of[TRAIN_LEARNING_RATE];
    size_t kept = series_count(rate) < n ? series_count(rate) : n;
    bool is_warming = kept && series_at(rate, 0) > series_at(rate, kept - 1);
    return v->of[TRAIN_KL_COEF].n && !is_warming;
}

/* It is beyond its limit for another reason than the one that the rule looks for. */
static bool is_limit_void(const struct verdict *v, const struct verdict_rule *rule)
{
    return (rule->flags & VERDICT_ONE_LIMIT && !has_prompt_limit(v, rule->in)) ||
           (rule->flags & VERDICT_UNLESS_CLIMBS && is_climbing(&v->of[rule->figure], rule->in)) ||
           (rule->flags & VERDICT_KL_IN_LOSS && !is_kl_in_loss(v, rule->in));
}

/* Something that makes a figure beyond its limit a healthy one. */
static bool is_excused(const struct verdict *v, unsigned flags)
{
    return (flags & VERDICT_UNLESS_BETTER && is_better(v)) ||
           (flags & VERDICT_UNLESS_SOLVED && is_solved(v, NEWEST)) ||
           (flags & VERDICT_UNLESS_WAITS && is_waiting(v)) ||
           (flags & VERDICT_UNLESS_FIRST && is_first_score(v)) ||
           (flags & VERDICT_WHILE_RISEN && !has_risen(v)) ||
           (flags & VERDICT_UNLESS_TURNS && series_median(&v->of[TRAIN_TURNS], 0, NEWEST) > TURNS);
}

static int64_t turn_of(const struct verdict *v, const struct verdict_rule *rule)
{
    const struct verdict_series *s = &v->of[rule->turn];
    return series_turn(s->n >= USUAL_BACK ? s : &v->of[rule->figure]);
}

/* ---- limits ---- */

static bool is_beyond(const struct verdict_rule *rule, double x)
{
    double y = signless(rule, x);
    return rule->shape == VERDICT_ABOVE ? y > rule->limit : y < rule->limit;
}

static bool holds_limit(const struct verdict *v,
                        const struct verdict_rule *rule,
                        struct verdict_hold *ret)
{
    const struct verdict_series *s = &v->of[rule->figure];
    size_t beyond = 0, n = series_count(s) < rule->in ? series_count(s) : rule->in;
    for (size_t i = 0; i < n; i++)
        if (is_beyond(rule, series_at(s, i))) {
            beyond++;
            ret->onset = series_step(s, i);
        }
    /* Values that came all at once, as those of samples may, began before the newest few. */
    for (size_t i = n; beyond == n && i < series_count(s) && is_beyond(rule, series_at(s, i)); i++)
        ret->onset = series_step(s, i);
    ret->value = series_median(s, 0, rule->of);
    ret->base = series_baseline(s);
    ret->limit = rule->limit;
    if (rule->flags & VERDICT_RISEN && !(ret->value >= rule->factor * ret->base))
        return false;
    if (is_limit_void(v, rule))
        return false;
    if (rule->flags & VERDICT_SAYS_LENGTH) {
        ret->base = NAN;
        ret->limit = series_median(&v->of[TRAIN_LENGTH_MOST], 0, rule->in);
    }
    return beyond >= rule->of;
}

/* ---- the run's own ---- */

/* What the figure strays by itself, at first or now. */
static double own_spread(const struct verdict_series *s)
{
    return fmax(series_base_spread(s), series_noise(s, USUAL));
}

static bool holds_level(const struct verdict *v,
                        const struct verdict_rule *rule,
                        struct verdict_hold *ret)
{
    const struct verdict_series *s = &v->of[rule->figure];
    bool is_usual = rule->shape == VERDICT_OVER_USUAL || rule->shape == VERDICT_UNDER_USUAL;
    bool is_over = rule->shape == VERDICT_OVER_BASE || rule->shape == VERDICT_OVER_USUAL;
    size_t least = is_usual ? USUAL_BACK + USUAL_LEAST : SERIES_BASE + NEWEST;
    if (series_count(s) < least)
        return false;
    double base = is_usual ? series_median(s, USUAL_BACK, USUAL) : series_baseline(s);
    double now = series_median(s, 0, NEWEST), apart = rule->limit;
    if (rule->flags & VERDICT_OWN_SPREAD)
        apart = fmax(apart, OWN_SPREADS * own_spread(s));
    bool is = is_over ? now >= rule->factor * base && now >= base + apart
                      : base > 0 && now <= rule->factor * base && now <= base - apart;
    if (!is)
        return false;
    ret->value = now;
    ret->base = base;
    ret->onset = turn_of(v, rule);
    return true;
}

static bool holds_sunk(const struct verdict *v,
                       const struct verdict_rule *rule,
                       struct verdict_hold *ret)
{
    const struct verdict_series *s = &v->of[rule->figure];
    if (series_count(s) < SERIES_BASE + NEWEST)
        return false;
    double base = series_baseline(s), now = series_median(s, 0, NEWEST);
    double apart = fmax(rule->limit * (base - v->least_sample), OWN_SPREADS * own_spread(s));
    apart = fmax(apart, rule->factor * (v->best_sample - v->least_sample));
    if (!(v->best_sample > v->least_sample && now < base - apart))
        return false;
    ret->value = now;
    ret->base = base;
    ret->onset = turn_of(v, rule);
    return true;
}

static bool holds_full(const struct verdict *v,
                       const struct verdict_rule *rule,
                       struct verdict_hold *ret)
{
    const struct verdict_series *s = &v->of[rule->figure];
    double range = v->best_sample - v->least_sample;
    double full = fmax(rule->limit * v->best_sample, v->least_sample + rule->limit * range);
    if (series_count(s) < rule->in || !(v->best_sample > 0 && v->least_sample < v->best_sample))
        return false;
    size_t n = 0;
    while (n < rule->in && series_at(s, n) >= full)
        n++;
    if (n < rule->in || series_baseline(s) < full)
        return false;
    ret->value = series_median(s, 0, rule->in);
    ret->limit = v->best_sample;
    ret->onset = s->first;
    return true;
}

/* *ret_usual: what was usual before. */
static double spike_limit(const struct verdict_series *s,
                          const struct verdict_rule *rule,
                          double *ret_usual)
{
    double spread = series_spread(s, rule->in, USUAL);
    *ret_usual = signless(rule, series_median(s, rule->in, USUAL));
    return fmax(*ret_usual + rule->factor * spread, TIMES_USUAL * *ret_usual);
}

/* The gradient has one at this step, too. */
static bool is_spike_of_gradient(const struct verdict *v,
                                 const struct verdict_rule *rule,
                                 int64_t step)
{
    const struct verdict_series *s = &v->of[TRAIN_GRAD_NORM];
    if (series_count(s) < rule->in + USUAL_LEAST)
        return false;
    double usual, limit = spike_limit(s, rule, &usual);
    for (size_t i = 0; i < rule->in; i++)
        if (series_step(s, i) == step)
            return series_at(s, i) > limit;
    return false;
}

static bool holds_spike(const struct verdict *v,
                        const struct verdict_rule *rule,
                        struct verdict_hold *ret)
{
    const struct verdict_series *s = &v->of[rule->figure];
    size_t beyond = 0, of = rule->of;
    if (series_count(s) < rule->in + USUAL_LEAST)
        return false;
    double limit = fmax(spike_limit(s, rule, &ret->base), rule->limit);
    for (size_t i = 0; i < rule->in; i++) {
        double x = signless(rule, series_at(s, i));
        if (x <= limit)
            continue;
        ret->value = beyond++ ? fmax(ret->value, x) : x;
        ret->onset = series_step(s, i);
    }
    if (rule->flags & VERDICT_OR_GRADIENT && beyond && is_spike_of_gradient(v, rule, ret->onset))
        of = 1;
    return beyond >= of;
}

/* Did it have another value than x, which its newest `same` values are? */
static bool has_been_other(const struct verdict_series *s, size_t same, double x)
{
    size_t i = 0;
    while (i < s->n && i < SERIES_BASE && fabs(s->base[i] - x) <= 1e-9 * fabs(x))
        i++;
    return series_count(s) > same || (i < s->n && i < SERIES_BASE);
}

static bool holds_constant(const struct verdict *v,
                           const struct verdict_rule *rule,
                           struct verdict_hold *ret)
{
    const struct verdict_series *s = &v->of[rule->figure];
    size_t n = series_count(s), same = 0;
    if (n < rule->in)
        return false;
    double x = series_at(s, 0);
    while (same < n && fabs(series_at(s, same) - x) <= 1e-9 * fabs(x))
        same++;
    if (same < rule->in)
        return false;
    /* What rose to its best and stays there is solved. */
    if (rule->flags & VERDICT_AT_ITS_BEST && x >= SOLVED * v->best_sample &&
        has_been_other(s, same, x))
        return false;
    ret->value = x;
    ret->onset = series_step(s, same - 1);
    return true;
}

static bool holds_unmoved(const struct verdict *v,
                          const struct verdict_rule *rule,
                          struct verdict_hold *ret)
{
    const struct verdict_series *s = &v->of[rule->figure];
    size_t all = series_count(s);
    if (s->n < 4 * rule->in) /* a slow one has moved by then */
        return false;
    double base = series_baseline(s), now = series_mean(s, 0, rule->in);
    double error = series_noise(s, all) * sqrt(1.0 / SERIES_BASE + 1.0 / (double)rule->in);
    if (!(fabs(now - base) <= rule->factor * error) || series_line(s, all).fit > rule->limit)
        return false;
    ret->value = now;
    ret->base = base;
    ret->onset = s->first;
    return true;
}

/* Schedules that count from 0 or from 1 are alike here. */
static bool holds_warms(const struct verdict *v,
                        const struct verdict_rule *rule,
                        struct verdict_hold *ret)
{
    const struct verdict_series *s = &v->of[rule->figure];
    double step = (double)series_step(s, 0), now = series_at(s, 0);
    if (series_count(s) < rule->in || step < rule->limit * (double)v->bounds.total)
        return false;
    struct series_line line = series_line(s, series_count(s));
    bool is_warming =
        line.slope > 0 && line.fit > STRAIGHT && fabs(now - line.slope * step) < FROM_ZERO * now;
    if (!is_warming || !v->bounds.total)
        return false;
    ret->value = now;
    ret->limit = (double)v->bounds.total;
    ret->onset = s->first;
    return true;
}

/* ---- scores that follow nothing ---- */

/* Where the one of both that had told something turned; the first value, where none ever did. */
static int64_t neither_since(const struct verdict_rule *rule,
                             const struct verdict_series *a,
                             const struct verdict_series *b)
{
    double was_a = series_baseline(a), was_b = series_baseline(b);
    const struct verdict_series *s = was_a >= was_b ? a : b;
    return fmax(was_a, was_b) > rule->limit ? series_turn(s) : series_step(s, series_count(s) - 1);
}

static bool holds_neither(const struct verdict *v,
                          const struct verdict_rule *rule,
                          struct verdict_hold *ret)
{
    const struct verdict_series *s = &v->of[rule->figure], *other = &v->of[rule->turn];
    if (series_count(s) < rule->in || series_count(other) < rule->in)
        return false;
    double now = series_mean(s, 0, rule->in), then = series_mean(other, 0, rule->in);
    double flat = series_median(&v->of[TRAIN_FLAT_GROUPS], 0, rule->in);
    if (!(now < rule->limit && then < rule->limit && flat < 0.5))
        return false;
    ret->value = fmax(fmax(now, then), 0);
    ret->base = fmax(fmax(series_baseline(s), series_baseline(other)), 0);
    ret->limit = (double)rule->in;
    ret->onset = neither_since(rule, s, other);
    return true;
}

/* ---- reward against validation ---- */

/* Rose it in its newest n values, or can it not rise any more? */
static bool validation_rose(const struct verdict_validation *x, size_t n)
{
    double best = -INFINITY;
    if (x->n <= n || n >= VALIDATION_KEPT)
        return false;
    double first = x->v[(x->n - 1 - n) % VALIDATION_KEPT];
    for (size_t i = 0; i < n; i++)
        best = fmax(best, x->v[(x->n - 1 - i) % VALIDATION_KEPT]);
    return best > first + 0.01 * fabs(first) || fmax(first, best) >= ALL_RIGHT;
}

static bool has_validation_risen(const struct verdict *v, size_t n)
{
    size_t i = 0;
    while (i < v->n_validations && !validation_rose(&v->validations[i], n))
        i++;
    return i < v->n_validations;
}

static bool holds_alone(const struct verdict *v,
                        const struct verdict_rule *rule,
                        struct verdict_hold *ret)
{
    const struct verdict_series *val = &v->of[rule->figure], *s = &v->of[TRAIN_REWARD];
    if (series_count(val) < rule->in + 1 || !series_count(s))
        return false;
    int64_t then = series_step(val, rule->in);
    double was = v->reward_at[(val->n - 1 - rule->in) % SERIES_KEPT];
    double now = v->reward_at[(val->n - 1) % SERIES_KEPT];
    double least = fmax(rule->factor * fabs(was), 4 * series_noise(s, USUAL) / sqrt(NEWEST));
    if (!(now - was > least) || has_validation_risen(v, rule->in))
        return false;
    ret->onset = then;
    ret->value = now;
    ret->base = was;
    ret->limit = (double)rule->in;
    return true;
}

/* ---- a trend ---- */

/* How many values came since this step. */
static size_t count_since(const struct verdict_series *s, int64_t step)
{
    size_t n = 0;
    while (n < series_count(s) && series_step(s, n) >= step)
        n++;
    return n;
}

/* Since it turned, or of the newest `all` values where that is too short or not straight. */
static struct series_line line_since(const struct verdict_series *s,
                                     const struct verdict_rule *rule,
                                     size_t all,
                                     int64_t *ret_from)
{
    int64_t turn = series_turn(s);
    size_t since = count_since(s, turn);
    if (since > all) {
        since = all;
        turn = series_step(s, all - 1);
    }
    struct series_line line = series_line(s, since);
    *ret_from = turn;
    if (since >= rule->in && line.fit >= LINE_FIT)
        return line;
    *ret_from = series_step(s, all - 1);
    return series_line(s, all);
}

static bool holds_trend(const struct verdict *v,
                        const struct verdict_rule *rule,
                        struct verdict_hold *ret)
{
    const struct verdict_series *s = &v->of[rule->figure];
    double bound = rule->figure == TRAIN_GPU_MEMORY ? v->bounds.gpu_gb : v->bounds.host_gb;
    size_t all = s->n > RAMP ? s->n - RAMP : 0;
    all = all < series_count(s) ? all : series_count(s);
    if (all < rule->in || bound <= 0)
        return false;
    struct series_line line = line_since(s, rule, all, &ret->onset);
    double now = series_median(s, 0, NEWEST);
    double at = (double)series_step(s, 0) + (bound - now) / line.slope;
    double end = v->bounds.total ? (double)v->bounds.total : (double)(LINE_AFTER * v->step);
    if (!(line.slope > 0) || line.fit < LINE_FIT || at > end || now > bound)
        return false;
    ret->value = now;
    ret->base = line.slope;
    ret->limit = ceil(at);
    return true;
}

static bool shape_holds(const struct verdict *v,
                        const struct verdict_rule *rule,
                        struct verdict_hold *ret)
{
    switch (rule->shape) {
    case VERDICT_ABOVE:
    case VERDICT_BELOW:
        return holds_limit(v, rule, ret);
    case VERDICT_OVER_BASE:
    case VERDICT_UNDER_BASE:
    case VERDICT_OVER_USUAL:
    case VERDICT_UNDER_USUAL:
        return holds_level(v, rule, ret);
    case VERDICT_SPIKE:
        return holds_spike(v, rule, ret);
    case VERDICT_CONSTANT:
        return holds_constant(v, rule, ret);
    case VERDICT_SUNK:
        return holds_sunk(v, rule, ret);
    case VERDICT_FULL:
        return holds_full(v, rule, ret);
    case VERDICT_WARMS:
        return holds_warms(v, rule, ret);
    case VERDICT_UNMOVED:
        return holds_unmoved(v, rule, ret);
    case VERDICT_NEITHER:
        return holds_neither(v, rule, ret);
    case VERDICT_REWARD_ALONE:
        return holds_alone(v, rule, ret);
    case VERDICT_MEETS_BOUND:
        return holds_trend(v, rule, ret);
    }
    return false;
}

bool verdict_rule_holds(const struct verdict *v,
                        const struct verdict_rule *rule,
                        struct verdict_hold *ret)
{
    ret->base = ret->limit = ret->value = NAN;
    return v->of[rule->figure].n && shape_holds(v, rule, ret) && !is_excused(v, rule->flags);
}

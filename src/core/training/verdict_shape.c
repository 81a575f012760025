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
};
static const double SOLVED = 0.85;    /* of the best sample's score: there is no more to gain */
static const double ALL_RIGHT = 0.98; /* a validation that cannot rise */
static const double TIMES_USUAL = 5;  /* a spike is at least so many times what is usual */
static const double LINE_FIT = 0.9;   /* the least share that a trend explains */

static double signless(const struct verdict_rule *rule, double x)
{
    return rule->flags & VERDICT_ABSOLUTE ? fabs(x) : x;
}

/* The mean of the newest n is near the best that any answer had. */
static bool is_solved(const struct verdict *v, size_t n)
{
    double now = series_mean(&v->of[TRAIN_REWARD], 0, n);
    return v->best_sample > 0 && now >= SOLVED * v->best_sample;
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
    return is_solved(v, n) || now - before > fmax(1.5 * error, 0.01 * fabs(before));
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
    return beyond >= rule->of && !(rule->flags & VERDICT_UNLESS_SOLVED && is_solved(v, NEWEST));
}

/* ---- the run's own ---- */

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
    double now = series_median(s, 0, NEWEST);
    bool is = is_over ? now >= rule->factor * base && now >= base + rule->limit
                      : base > 0 && now <= rule->factor * base && now <= base - rule->limit;
    if (!is || (rule->flags & VERDICT_UNLESS_BETTER && is_better(v)))
        return false;
    ret->value = now;
    ret->base = base;
    ret->onset = turn_of(v, rule);
    return true;
}

static bool holds_spike(const struct verdict_series *s,
                        const struct verdict_rule *rule,
                        struct verdict_hold *ret)
{
    size_t beyond = 0;
    if (series_count(s) < rule->in + USUAL_LEAST)
        return false;
    double usual = signless(rule, series_median(s, rule->in, USUAL));
    double spread = series_spread(s, rule->in, USUAL);
    double limit = fmax(usual + rule->factor * spread, fmax(TIMES_USUAL * usual, rule->limit));
    for (size_t i = 0; i < rule->in; i++) {
        double x = signless(rule, series_at(s, i));
        if (x <= limit)
            continue;
        ret->value = beyond++ ? fmax(ret->value, x) : x;
        ret->onset = series_step(s, i);
    }
    ret->base = usual;
    return beyond >= rule->of;
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
    if (rule->flags & VERDICT_AT_ITS_BEST && s->n > same && x >= SOLVED * v->best_sample)
        return false;
    ret->value = x;
    ret->onset = series_step(s, same - 1);
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

static bool holds_alone(const struct verdict *v,
                        const struct verdict_rule *rule,
                        struct verdict_hold *ret)
{
    const struct verdict_series *val = &v->of[rule->figure], *s = &v->of[TRAIN_REWARD];
    if (series_count(val) < rule->in + 1 || !series_count(s))
        return false;
    double first = series_at(val, rule->in), best = -INFINITY;
    for (size_t i = 0; i < rule->in; i++)
        best = fmax(best, series_at(val, i));
    int64_t then = series_step(val, rule->in);
    double was = v->reward_at[(val->n - 1 - rule->in) % SERIES_KEPT];
    double now = v->reward_at[(val->n - 1) % SERIES_KEPT];
    double least = fmax(rule->factor * fabs(was), 4 * series_noise(s, USUAL) / sqrt(NEWEST));
    if (best > first + 0.01 * fabs(first) || fmax(first, best) >= ALL_RIGHT || !(now - was > least))
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

/* Since it turned, or of all values where that is too short or not straight. */
static struct series_line line_since(const struct verdict_series *s,
                                     const struct verdict_rule *rule,
                                     int64_t *ret_from)
{
    int64_t turn = series_turn(s);
    size_t all = series_count(s), since = count_since(s, turn);
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
    if (series_count(s) < 2 * rule->in || bound <= 0)
        return false;
    struct series_line line = line_since(s, rule, &ret->onset);
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

bool verdict_rule_holds(const struct verdict *v,
                        const struct verdict_rule *rule,
                        struct verdict_hold *ret)
{
    const struct verdict_series *s = &v->of[rule->figure];
    ret->base = ret->limit = ret->value = NAN;
    if (!s->n)
        return false;
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
        return holds_spike(s, rule, ret);
    case VERDICT_CONSTANT:
        return holds_constant(v, rule, ret);
    case VERDICT_NEITHER:
        return holds_neither(v, rule, ret);
    case VERDICT_REWARD_ALONE:
        return holds_alone(v, rule, ret);
    case VERDICT_MEETS_BOUND:
        return holds_trend(v, rule, ret);
    }
    return false;
}

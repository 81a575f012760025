/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.c - figures into series, rules asked at each step, what became of each; see verdict.h. */
#include "core/training/verdict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "core/training/verdict_state.h"

enum { QUIET = 10, CERTAIN_AFTER = 20, NEWEST = 5 };
static const double CERTAIN = 0.97;

struct verdict *verdict_new(void)
{
    struct verdict *v = xcalloc(1, sizeof(*v));
    v->best_sample = v->least_sample = NAN;
    return v;
}

struct verdict *verdict_like(const struct verdict *v)
{
    struct verdict *ret = verdict_new();
    ret->bounds = v->bounds;
    return ret;
}

void verdict_free(struct verdict *v)
{
    for (int k = 0; v && k < VERDICT_KINDS; k++)
        free(v->picks[k]);
    free(v);
}

void verdict_set_bounds(struct verdict *v, const struct verdict_bounds *bounds)
{
    v->bounds = *bounds;
}

/* ---- figures ---- */

static bool is_of_gap(enum training_figure f)
{
    return f >= TRAIN_IS_MEAN && f <= TRAIN_PROBS_DIFF;
}

/* The width of advantages counts, which is 0 where no group teaches anything. */
static double figure_value(const struct training_look *l, enum training_figure f)
{
    return f == TRAIN_ADVANTAGE_MAX ? l->v[f] - l->v[TRAIN_ADVANTAGE_MIN] : l->v[f];
}

/* NULL: there is no room for one more. */
static struct verdict_validation *validation_of(struct verdict *v, const char *name)
{
    for (size_t i = 0; i < v->n_validations; i++)
        if (str_eq(v->validations[i].name, name))
            return &v->validations[i];
    if (v->n_validations == VALIDATIONS_MAX)
        return NULL;
    struct verdict_validation *x = &v->validations[v->n_validations++];
    text_copy(x->name, name);
    return x;
}

static void validations_take(struct verdict *v, const struct metric_record *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct verdict_validation *x =
            training_is_validation(r->v[i].name) && isfinite(r->v[i].value)
                ? validation_of(v, r->v[i].name)
                : NULL;
        if (x)
            x->v[x->n++ % VALIDATION_KEPT] = r->v[i].value;
    }
}

static void figures_take(struct verdict *v, int64_t step, const struct training_look *l)
{
    for (int i = 0; i < TRAINING_FIGURES; i++) {
        enum training_figure f = (enum training_figure)i;
        double x = figure_value(l, f);
        if (!isfinite(x))
            continue;
        if (f == TRAIN_VALIDATION)
            v->reward_at[v->of[f].n % SERIES_KEPT] = series_mean(&v->of[TRAIN_REWARD], 0, NEWEST);
        series_add(&v->of[f], step, x);
        if (f != TRAIN_VALIDATION)
            v->name[f] = l->name[f];
        v->has_gap = v->has_gap || (is_of_gap(f) && fabs(x) > 0);
    }
    if (l->name[TRAIN_VALIDATION])
        text_copy(v->validation, l->name[TRAIN_VALIDATION]);
    v->best_sample = fmax(v->best_sample, l->v[TRAIN_REWARD_MAX]);
    v->least_sample = fmin(v->least_sample, l->v[TRAIN_REWARD_MIN]);
}

/* ---- rules ---- */

static const char *metric_of(const struct verdict *v, const struct verdict_rule *rule)
{
    return rule->figure == TRAIN_VALIDATION ? v->validation : str_or(v->name[rule->figure], "");
}

/* It holds as `now` says. */
static void hold_stands(struct verdict_hold *h,
                        const struct verdict_hold *now,
                        const char *metric,
                        int64_t step)
{
    int64_t onset = h->stands ? h->onset : now->onset, told = h->stands ? h->told : step;
    int held = h->stands ? h->held + 1 : 0;
    *h = *now;
    h->seen = h->stands = true;
    h->onset = onset;
    h->told = told;
    h->held = held;
    h->ended = 0;
    h->quiet = 0;
    text_copy(h->metric, metric);
}

static void hold_rests(struct verdict_hold *h, int64_t step)
{
    if (!h->stands || ++h->quiet < QUIET)
        return;
    h->stands = false;
    h->ended = step;
}

/* The first metric that was no number: it is one again, or still is not. */
static void watch_tells_numbers(struct verdict *v,
                                const struct metric_record *r,
                                const struct metric_trouble *t)
{
    struct verdict_hold *h = &v->not_finite;
    size_t at = 0;
    while (at < r->n && !str_eq(r->v[at].name, t->bad_key))
        at++;
    if (h->seen && at == r->n)
        return;
    if (h->seen && isfinite(r->v[at].value)) {
        hold_rests(h, v->step);
        return;
    }
    const struct verdict_hold now = {
        .onset = h->seen ? r->step : t->bad_step, .value = NAN, .base = NAN, .limit = NAN};
    hold_stands(h, &now, t->bad_key, v->step);
}

/* The reward that fell: it is well again once half of what it lost is back, and falls anew where
 * three quarters are gone again. */
static void watch_tells_fall(struct verdict *v, const struct metric_trouble *t)
{
    struct verdict_hold *h = &v->fell;
    double lost = t->best - t->fallen_to, now = series_mean(&v->of[TRAIN_REWARD], 0, NEWEST);
    double back = h->seen ? now - t->fallen_to : 0;
    const struct verdict_hold fell = {.onset = h->seen ? v->step : t->fallen_step,
                                      .value = h->seen ? now : t->fallen_to,
                                      .base = t->best,
                                      .limit = NAN};
    if (back >= lost / 2)
        hold_rests(h, v->step);
    else if (h->stands || back <= lost / 4)
        hold_stands(h, &fell, str_or(v->name[TRAIN_REWARD], ""), v->step);
}

static void watch_tells(struct verdict *v,
                        const struct metric_record *r,
                        const struct metric_trouble *t)
{
    if (t->kinds & METRIC_NOT_FINITE)
        watch_tells_numbers(v, r, t);
    if (t->kinds & METRIC_COLLAPSED && metric_is_training(r))
        watch_tells_fall(v, t);
}

static void rules_ask(struct verdict *v)
{
    for (size_t i = 0; i < verdict_rules_n; i++) {
        const struct verdict_rule *rule = &verdict_rules[i];
        struct verdict_hold now = {0};
        if (verdict_rule_holds(v, rule, &now))
            hold_stands(&v->holds[i], &now, metric_of(v, rule), v->step);
        else
            hold_rests(&v->holds[i], v->step);
    }
}

void verdict_add(struct verdict *v,
                 const struct metric_record *r,
                 const struct training_look *l,
                 const struct metric_trouble *trouble)
{
    if (r->superseded)
        return;
    figures_take(v, r->step, l);
    validations_take(v, r);
    v->step = r->step > v->step ? r->step : v->step;
    if (metric_is_training(r))
        v->steps++;
    watch_tells(v, r, trouble);
    bool is_news = metric_is_training(r) || l->name[TRAIN_VALIDATION];
    if (v->steps >= VERDICT_FROM && is_news) /* what samples say is judged with the next step */
        rules_ask(v);
}

/* ---- what it came to ---- */

/* What stands comes first, then what began first. */
static bool is_before(const struct verdict_hold *a, const struct verdict_hold *b)
{
    return a->stands != b->stands ? a->stands : a->onset < b->onset;
}

/* NULL: never. *ret_sure: of its rule. */
static const struct verdict_hold *hold_of(const struct verdict *v,
                                          enum verdict_kind k,
                                          double *ret_sure)
{
    const struct verdict_hold *best = NULL;
    *ret_sure = CERTAIN;
    if (k == VERDICT_NOT_FINITE || k == VERDICT_REWARD_FELL) {
        best = k == VERDICT_NOT_FINITE ? &v->not_finite : &v->fell;
        return best->seen ? best : NULL;
    }
    for (size_t i = 0; i < verdict_rules_n; i++) {
        const struct verdict_hold *h = &v->holds[i];
        if (verdict_rules[i].kind != k || !h->seen || (best && !is_before(h, best)))
            continue;
        best = h;
        *ret_sure = verdict_rules[i].sure;
    }
    return best;
}

/* It is on given answers: it has no actor, no reward and no samples. */
static bool verdict_is_sft(const struct verdict *v)
{
    return v->of[TRAIN_LOSS].n && !v->of[TRAIN_REWARD].n;
}

bool verdict_item(const struct verdict *v, enum verdict_kind k, struct verdict_item *ret)
{
    double sure;
    const struct verdict_hold *h = hold_of(v, k, &sure);
    if (!h)
        return false;
    double held = fmin((double)h->held / CERTAIN_AFTER, 1);
    *ret = (struct verdict_item){.kind = k,
                                 .stands = h->stands,
                                 .onset = h->onset,
                                 .told = h->told,
                                 .ended = h->ended,
                                 .value = h->value,
                                 .base = h->base,
                                 .limit = h->limit,
                                 .is_sft = verdict_is_sft(v),
                                 .certainty = sure + (CERTAIN - sure) * held};
    text_copy(ret->metric, h->metric);
    return true;
}

const struct sample_picks *verdict_picks(const struct verdict *v, enum verdict_kind k)
{
    return v->picks[k];
}

void verdict_set_picks(struct verdict *v, enum verdict_kind k, const struct sample_picks *picks)
{
    if (!v->picks[k])
        v->picks[k] = xcalloc(1, sizeof(*v->picks[k]));
    *v->picks[k] = *picks;
}

enum sample_pick_by verdict_pick_by(const struct verdict_item *item)
{
    switch (item->kind) {
    case VERDICT_REWARD_FLAT:
    case VERDICT_REWARD_NOISE:
    case VERDICT_REWARD_FULL:
    case VERDICT_FOLLOWS_ANSWER:
    case VERDICT_PARTED:
        return SAMPLE_PICK_BEST;
    default:
        return sample_pick_by_metric(item->metric);
    }
}

uint64_t verdict_seen(const struct verdict *v)
{
    double sure;
    uint64_t seen = 0;
    for (int i = 0; i < VERDICT_KINDS; i++) {
        enum verdict_kind k = (enum verdict_kind)i;
        seen |= hold_of(v, k, &sure) ? verdict_kind_bit(k) : 0;
    }
    return seen;
}

/* SFT has no policy that samples: of it only memory is asked. */
unsigned verdict_blind(const struct verdict *v)
{
    bool is_rl = v->of[TRAIN_REWARD].n > 0;
    const bool measured[VERDICT_BLINDS] = {
        [VERDICT_BLIND_ENTROPY] = v->of[TRAIN_ENTROPY].n,
        [VERDICT_BLIND_KL] =
            v->of[TRAIN_PPO_KL].n || v->of[TRAIN_KL_LOSS].n || v->of[TRAIN_KL_PENALTY].n,
        [VERDICT_BLIND_LENGTH] = v->of[TRAIN_CUT].n,
        [VERDICT_BLIND_GAP] = v->has_gap,
        [VERDICT_BLIND_STALENESS] = v->of[TRAIN_STALENESS_MOST].n,
        [VERDICT_BLIND_VALIDATION] = v->of[TRAIN_VALIDATION].n,
        [VERDICT_BLIND_MEMORY] = (v->of[TRAIN_GPU_MEMORY].n && v->bounds.gpu_gb > 0) ||
                                 (v->of[TRAIN_HOST_MEMORY].n && v->bounds.host_gb > 0),
    };
    unsigned blind = 0;
    for (int i = 0; i < VERDICT_BLINDS && v->steps >= VERDICT_FROM; i++)
        if (!measured[i] && (is_rl || i == VERDICT_BLIND_MEMORY))
            blind |= 1u << i;
    return blind;
}

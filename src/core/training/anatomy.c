/* SPDX-License-Identifier: Apache-2.0 */
/* anatomy.c - a step as its stages; see anatomy.h. */
#include "core/training/anatomy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const double OVERLAP = 1.05;    /* of the step: more than that no clock explains */
static const double LEAST_GAIN = 0.02; /* of a step: less is no lever */
enum { QUARTER = 4, TREND_ROWS = 8 };

struct anatomy {
    struct anatomy_row rows[ANATOMY_ROWS]; /* sums of their steps, until they are shown */
    size_t n;
    int64_t per; /* steps of a full row */
    double seconds, stage[ANATOMY_STAGES], gain[ANATOMY_LEVER_KINDS];
    double idle, ranks;
    int64_t steps, first, last;
    bool overlaps;
    struct anatomy_slowest slowest;
};

const char *anatomy_stage_to_string(enum anatomy_stage s)
{
    static const char *const words[] = {
#define X(e, word) #word,
        ANATOMY_STAGE_TABLE(X)
#undef X
    };
    return words[s];
}

struct anatomy *anatomy_new(void)
{
    struct anatomy *a = xcalloc(1, sizeof(*a));
    a->per = 1;
    a->ranks = NAN;
    a->slowest.seconds = NAN;
    return a;
}

void anatomy_free(struct anatomy *a)
{
    free(a);
}

/* ---- one step ---- */

/* 0 where it is not told. */
static double told(const struct training_look *l, enum training_figure f)
{
    return isfinite(l->v[f]) && l->v[f] > 0 ? l->v[f] : 0;
}

static double slowest_seconds(const struct training_look *l)
{
    return told(l, TRAIN_SLOWEST_GEN) + told(l, TRAIN_SLOWEST_TOOLS) + told(l, TRAIN_SLOWEST_SCORE);
}

/* The stages as verl tells them, and generation without the tools and the score that its slowest
 * sample waited for. */
static void stages_of(const struct training_look *l, double stage[static ANATOMY_STAGES])
{
    double gen = told(l, TRAIN_GEN), tools = fmin(told(l, TRAIN_SLOWEST_TOOLS), gen);
    double score = fmin(told(l, TRAIN_SLOWEST_SCORE), gen - tools);
    const double of[ANATOMY_STAGES] = {
        [ANATOMY_GENERATE] = gen - tools - score + told(l, TRAIN_GEN_BASELINE),
        [ANATOMY_TOOLS] = tools,
        [ANATOMY_REWARD] = score + told(l, TRAIN_REWARD_S),
        [ANATOMY_OLD_LOG_PROB] = told(l, TRAIN_OLD_LOG_PROB),
        [ANATOMY_REFERENCE] = told(l, TRAIN_REF),
        [ANATOMY_VALUES] = told(l, TRAIN_VALUES),
        [ANATOMY_ADVANTAGE] = told(l, TRAIN_ADVANTAGE),
        [ANATOMY_UPDATE] = told(l, TRAIN_UPDATE_ACTOR) + told(l, TRAIN_UPDATE_CRITIC),
        [ANATOMY_WEIGHTS] = told(l, TRAIN_WEIGHTS) + told(l, TRAIN_WEIGHTS_SYNC),
        [ANATOMY_SAVE] = told(l, TRAIN_SAVE),
        [ANATOMY_VALIDATE] = told(l, TRAIN_VALIDATE),
    };
    memcpy(stage, of, sizeof(of));
}

/* The whole step, and in stage[] its rest. *ret_overlaps: stages ran beside each other. */
static double whole_step(double told_s, double stage[static ANATOMY_STAGES], bool *ret_overlaps)
{
    double sum = 0, beside = stage[ANATOMY_SAVE] + stage[ANATOMY_VALIDATE], whole = told_s;
    for (size_t i = 0; i < ANATOMY_REST; i++)
        sum += stage[i];
    if (sum > OVERLAP * told_s && sum - beside <= OVERLAP * told_s)
        whole += beside; /* they are counted beside the step */
    *ret_overlaps = sum > OVERLAP * whole;
    stage[ANATOMY_REST] = sum < whole ? whole - sum : 0;
    return *ret_overlaps ? sum : whole;
}

/* verl: throughput = tokens / (seconds x GPUs). NaN: it does not come out as a whole number. */
static double ranks_of(const struct training_look *l)
{
    double ranks = l->v[TRAIN_TOKENS] / (l->v[TRAIN_STEP] * l->v[TRAIN_THROUGHPUT]);
    double whole = round(ranks);
    return whole >= 1 && fabs(ranks - whole) < 0.01 * whole ? whole : (double)NAN;
}

static void note_slowest(struct anatomy *a, int64_t step, const struct training_look *l)
{
    double s = slowest_seconds(l);
    if (!(s > 0) || s <= a->slowest.seconds)
        return;
    a->slowest = (struct anatomy_slowest){.step = step,
                                          .seconds = s,
                                          .generate = l->v[TRAIN_SLOWEST_GEN],
                                          .tools = l->v[TRAIN_SLOWEST_TOOLS],
                                          .score = l->v[TRAIN_SLOWEST_SCORE],
                                          .prompt_tokens = l->v[TRAIN_SLOWEST_PROMPT],
                                          .response_tokens = l->v[TRAIN_SLOWEST_RESPONSE]};
}

/* What each lever would take off this step. */
static void note_gains(struct anatomy *a,
                       const struct training_look *l,
                       const double stage[static ANATOMY_STAGES])
{
    static const struct {
        enum anatomy_lever lever;
        enum anatomy_stage stage;
    } whole[] = {{ANATOMY_LEVER_REWARD, ANATOMY_REWARD},
                 {ANATOMY_LEVER_OLD_LOG_PROB, ANATOMY_OLD_LOG_PROB},
                 {ANATOMY_LEVER_REFERENCE, ANATOMY_REFERENCE},
                 {ANATOMY_LEVER_WEIGHTS, ANATOMY_WEIGHTS},
                 {ANATOMY_LEVER_SAVE, ANATOMY_SAVE},
                 {ANATOMY_LEVER_VALIDATE, ANATOMY_VALIDATE},
                 {ANATOMY_LEVER_REST, ANATOMY_REST}};
    double longest = told(l, TRAIN_SAMPLE_GEN_MAX), mean = told(l, TRAIN_SAMPLE_GEN_MEAN);
    double tools = slowest_seconds(l) - told(l, TRAIN_SLOWEST_SCORE) - longest;
    for (size_t i = 0; i < array_len(whole); i++)
        a->gain[whole[i].lever] += stage[whole[i].stage];
    if (longest > 0 && tools > 0)
        a->gain[ANATOMY_LEVER_TOOLS] += fmin(tools, stage[ANATOMY_TOOLS]);
    if (mean > 0 && stage[ANATOMY_GENERATE] > mean)
        a->gain[ANATOMY_LEVER_TAIL] += stage[ANATOMY_GENERATE] - mean;
}

/* ---- rows ---- */

static void row_add(struct anatomy_row *to, const struct anatomy_row *from)
{
    to->last = from->last;
    to->steps += from->steps;
    to->seconds += from->seconds;
    for (size_t i = 0; i < ANATOMY_STAGES; i++)
        to->stage[i] += from->stage[i];
}

static void rows_halve(struct anatomy *a)
{
    for (size_t i = 0; i < ANATOMY_ROWS / 2; i++) {
        struct anatomy_row both = a->rows[2 * i];
        row_add(&both, &a->rows[2 * i + 1]);
        a->rows[i] = both;
    }
    a->n = ANATOMY_ROWS / 2;
    a->per *= 2;
}

static void rows_add(struct anatomy *a, const struct anatomy_row *row)
{
    if (a->n && a->rows[a->n - 1].steps < a->per) {
        row_add(&a->rows[a->n - 1], row);
        return;
    }
    if (a->n == ANATOMY_ROWS)
        rows_halve(a);
    a->rows[a->n++] = *row;
}

void anatomy_add(struct anatomy *a, const struct metric_record *r, const struct training_look *l)
{
    struct anatomy_row row = {.first = r->step, .last = r->step, .steps = 1};
    double seconds = l->v[TRAIN_STEP], ranks = ranks_of(l), idle;
    bool overlaps;
    if (r->superseded || !isfinite(seconds) || seconds <= 0)
        return;
    stages_of(l, row.stage);
    row.seconds = whole_step(seconds, row.stage, &overlaps);
    a->overlaps = a->overlaps || overlaps;
    for (size_t i = 0; i < ANATOMY_STAGES; i++)
        a->stage[i] += row.stage[i];
    a->seconds += row.seconds;
    a->first = a->steps ? a->first : r->step;
    a->last = r->step;
    a->steps++;
    a->ranks = isfinite(ranks) ? ranks : a->ranks;
    idle = row.stage[ANATOMY_TOOLS] + row.stage[ANATOMY_REWARD] + row.stage[ANATOMY_SAVE] +
           row.stage[ANATOMY_REST];
    a->idle += idle;
    note_slowest(a, r->step, l);
    note_gains(a, l, row.stage);
    rows_add(a, &row);
}

/* ---- sums ---- */

static void sum_levers(const struct anatomy *a, struct anatomy_sums *ret)
{
    for (int e = 0; e < ANATOMY_LEVER_KINDS; e++) {
        struct anatomy_gain gain = {.lever = (enum anatomy_lever)e,
                                    .seconds = a->gain[e] / (double)a->steps};
        size_t at = ret->n_levers;
        if (a->gain[e] < LEAST_GAIN * a->seconds)
            continue;
        while (at && ret->levers[at - 1].seconds < gain.seconds)
            at--;
        if (at == ANATOMY_LEVERS)
            continue;
        if (ret->n_levers < ANATOMY_LEVERS)
            ret->n_levers++;
        for (size_t i = ret->n_levers - 1; i > at; i--)
            ret->levers[i] = ret->levers[i - 1];
        ret->levers[at] = gain;
    }
}

/* The mean step of these rows. */
static struct anatomy_row rows_mean(const struct anatomy_row *v, size_t n)
{
    struct anatomy_row all = v[0];
    for (size_t i = 1; i < n; i++)
        row_add(&all, &v[i]);
    for (size_t i = 0; i < ANATOMY_STAGES; i++)
        all.stage[i] /= (double)all.steps;
    all.seconds /= (double)all.steps;
    return all;
}

/* The first rows against the last ones. */
static void sum_trend(const struct anatomy *a, struct anatomy_sums *ret)
{
    ret->early_s = ret->late_s = ret->grown_s = NAN;
    if (a->n < TREND_ROWS)
        return;
    size_t n = a->n / QUARTER;
    struct anatomy_row early = rows_mean(a->rows, n), late = rows_mean(&a->rows[a->n - n], n);
    ret->early_s = early.seconds;
    ret->late_s = late.seconds;
    ret->grown_s = 0;
    for (int s = 0; s < ANATOMY_STAGES; s++)
        if (fabs(late.stage[s] - early.stage[s]) > fabs(ret->grown_s)) {
            ret->grown = (enum anatomy_stage)s;
            ret->grown_s = late.stage[s] - early.stage[s];
        }
}

void anatomy_sum(const struct anatomy *a, double gpus, struct anatomy_sums *ret)
{
    *ret = (struct anatomy_sums){.steps = a->steps,
                                 .first = a->first,
                                 .last = a->last,
                                 .seconds = a->seconds,
                                 .overlaps = a->overlaps,
                                 .ranks = a->ranks,
                                 .slowest = a->slowest};
    memcpy(ret->stage, a->stage, sizeof(ret->stage));
    if (!isfinite(ret->ranks) && gpus > 0)
        ret->ranks = gpus;
    ret->bubble_hours = a->overlaps ? (double)NAN : ret->ranks * a->idle / 3600;
    if (a->steps && !a->overlaps)
        sum_levers(a, ret);
    sum_trend(a, ret);
}

const char *anatomy_check(const struct anatomy *a)
{
    int64_t steps = 0;
    for (size_t i = 0; i < a->n; i++) {
        double sum = 0;
        for (size_t s = 0; s < ANATOMY_STAGES; s++)
            sum += a->rows[i].stage[s];
        if (fabs(sum - a->rows[i].seconds) > 0.06 * a->rows[i].seconds + 1e-9)
            return "the stages of a row are not its time";
        if (i && a->rows[i].first < a->rows[i - 1].last)
            return "the rows are not in their order";
        steps += a->rows[i].steps;
    }
    return steps == a->steps ? NULL : "the rows have not all steps";
}

size_t anatomy_rows(const struct anatomy *a, struct anatomy_row ret[static ANATOMY_ROWS])
{
    for (size_t i = 0; i < a->n; i++)
        ret[i] = rows_mean(&a->rows[i], 1);
    return a->n;
}

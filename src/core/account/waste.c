/* SPDX-License-Identifier: Apache-2.0 */
/* waste.c - see waste.h.
 *
 * Fewer GPUs: of n GPUs a part was measured idle; n less that part, rounded up, would have held all
 * that was not. It is said where a quarter or more was idle, of at least ten measured minutes of
 * one GPU: a job that loads a model first is no waste. Saving more often: with saves at the best
 * interval T (goodput.h) a failure costs half of T on average, so failures would have cost
 * failures x T / 2; what was redone, or lost at the end of a job that failed for good, beyond that
 * is the gain.
 *
 * Faster data: where a fifth or more of the time of steps lay between them. Of each ten steps one
 * after another it is known which part (goodput.h); were all as the best tenth of these tens, what
 * lay between beyond that is the gain. A quarter of the tens have to be above that fifth, too: one
 * stall of hours is something else.
 *
 * A shorter time limit: of a job that succeeded within a quarter of its timeout, and an hour before
 * it. The scheduler keeps room for the whole timeout, so that a job waits for a larger gap than it
 * needs; what it ran and half as much again, in a round number, would have done. Said where nothing
 * else is. */
#include "core/account/waste.h"

#include <assert.h>
#include <math.h>

#include "base/mem.h"

#define X(name, word) [WASTE_##name] = #word,
static const char *const advice_words[] = {WASTE_ADVICE_TABLE(X)};
#undef X
static_assert(array_len(advice_words) == WASTE_ADVICES, "each advice has its word");

static const double IDLE_FROM = 0.25, MEASURED_FROM_S = 600;
static const double TENS_FROM = 0.25;
enum { BETWEEN_PERCENT = 20, LIMIT_LOOSE = 4, LIMIT_PERCENT = 150 };
#define LIMIT_ABOVE USEC_HOUR

const char *waste_advice_to_string(enum waste_advice a)
{
    return advice_words[a];
}

static void advise_fewer(const struct waste_facts *f, struct waste *w)
{
    double measured = f->held_s - f->unknown_s;
    if (measured < MEASURED_FROM_S || f->idle_s < IDLE_FROM * measured || f->gpus < 2)
        return;
    double needed = fmax(1, ceil(f->gpus * (1 - f->idle_s / measured)));
    /* What is held by the GPUs that would not be there, as long as it is idle. */
    double gain = fmin(f->idle_s, measured * (f->gpus - needed) / f->gpus);
    if (gain <= w->gain_s)
        return;
    w->advice = WASTE_FEWER_GPUS;
    w->gpus = (int)needed;
    w->gain_s = gain;
}

static void advise_saves(const struct waste_facts *f, struct waste *w)
{
    struct goodput g;
    goodput_judge(f->sums, f->held_s / f->gpus, f->failures, &g);
    if (g.save_freq <= 0 || !g.steps || !f->failures)
        return;
    double interval = (double)g.save_freq * g.good_s / (double)g.steps;
    double gain = w->redone_s + w->failed_s - f->failures * interval / 2 * f->gpus;
    if (gain <= w->gain_s)
        return;
    w->advice = WASTE_SAVE_MORE_OFTEN;
    w->save_freq = g.save_freq;
    w->gain_s = gain;
}

double waste_between_above(const struct waste_facts *f, double part)
{
    double between = 0, steps = 0;
    for (size_t i = 0; f->sums && i < f->sums->n; i++) {
        const struct goodput_attempt *a = &f->sums->v[i];
        if (a->between_s <= 0)
            continue; /* its log does not say what its steps took */
        between += a->between_s;
        steps += a->good_s + a->lost_s;
    }
    if (part >= 1 || between < part * (between + steps))
        return 0;
    return (between - steps * part / (1 - part)) * f->gpus;
}

static void advise_data(const struct waste_facts *f, struct waste *w)
{
    double least = goodput_least_between(f->sums);
    if (isnan(least) || waste_between_above(f, BETWEEN_PERCENT / 100.0) <= 0 ||
        goodput_tens_above(f->sums, BETWEEN_PERCENT) < TENS_FROM)
        return;
    double gain = waste_between_above(f, least);
    if (gain <= w->gain_s)
        return;
    w->advice = WASTE_FASTER_DATA;
    w->least_between = least;
    w->gain_s = gain;
}

/* In tens of minutes up to two hours, else in whole hours. */
usec_t waste_time_limit(usec_t ran, usec_t limit)
{
    if (!ran || ran > UINT64_MAX / LIMIT_PERCENT || (limit && limit < ran * LIMIT_LOOSE))
        return 0;
    usec_t with_room = ran * LIMIT_PERCENT / 100;
    usec_t unit = with_room <= 2 * USEC_HOUR ? 10 * USEC_MIN : USEC_HOUR;
    usec_t best = (with_room + unit - 1) / unit * unit;
    return limit && best >= limit ? 0 : best;
}

static void waste_advise_limit(const struct waste_facts *f, struct waste *w)
{
    usec_t best = f->timeout && f->succeeded ? waste_time_limit(f->ran, f->timeout) : 0;
    if (w->advice != WASTE_NONE || !best || f->timeout - f->ran < LIMIT_ABOVE)
        return;
    w->advice = WASTE_SHORTER_TIME_LIMIT;
    w->timeout = best;
}

void waste_judge(const struct waste_facts *f, struct waste *ret)
{
    *ret = (struct waste){.idle_s = f->idle_s};
    for (size_t i = 0; f->sums && i < f->sums->n; i++) {
        ret->redone_s += f->sums->v[i].lost_s * f->gpus;
        ret->between_s += fmax(0, f->sums->v[i].between_s) * f->gpus;
    }
    if (f->failed && f->sums && f->sums->n)
        ret->failed_s = f->sums->v[f->sums->n - 1].unsaved_s * f->gpus;
    if (f->gpus <= 0 || f->held_s <= 0)
        return;
    advise_fewer(f, ret);
    if (f->sums && f->sums->n) {
        advise_saves(f, ret);
        advise_data(f, ret);
    }
    waste_advise_limit(f, ret);
}

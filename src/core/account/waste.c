/* SPDX-License-Identifier: Apache-2.0 */
/* waste.c - see waste.h.
 *
 * Fewer GPUs: of n GPUs a part was measured idle; n less that part, rounded up, would have held all
 * that was not. It is said where a quarter or more was idle, of at least ten measured minutes of
 * one GPU: a job that loads a model first is no waste. Saving more often: with saves at the best
 * interval T (goodput.h) a failure costs half of T on average, so failures would have cost
 * failures x T / 2; what was redone, or lost at the end of a job that failed for good, beyond that
 * is the gain. */
#include "core/account/waste.h"

#include <assert.h>
#include <math.h>

#include "base/mem.h"

#define X(name, word) [WASTE_##name] = #word,
static const char *const advice_words[] = {WASTE_ADVICE_TABLE(X)};
#undef X
static_assert(array_len(advice_words) == WASTE_ADVICES, "each advice has its word");

static const double IDLE_FROM = 0.25, MEASURED_FROM_S = 600;

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
    if (f->sums && f->sums->n)
        advise_saves(f, ret);
}

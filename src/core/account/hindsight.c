/* SPDX-License-Identifier: Apache-2.0 */
/* hindsight.c - see hindsight.h.
 *
 * Fewer GPUs: what the job did not hold idle has to fit the GPUs that the advice leaves; if it
 * does, what the others held idle is saved. Saving each so many steps: a failure would have cost
 * half of the advised interval at this job's own speed, and the saves that are more (or fewer) than
 * it made are paid at what its own saves took. Faster data: what lay between its steps beyond the
 * advised part of their time. A shorter time limit is not tried: it saves no GPU time, and what
 * starts sooner by it is in nobody's own figures. */
#include "core/account/hindsight.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

static double saved_by_fewer(const struct waste *advice, const struct hindsight_job *job)
{
    const struct waste_facts *f = &job->facts;
    double measured = f->held_s - f->unknown_s;
    if (measured <= 0 || f->gpus <= advice->gpus)
        return 0;
    double busy = f->gpus * (1 - f->idle_s / measured);
    if (busy > advice->gpus + 1e-9)
        return (double)NAN;
    return fmin(f->idle_s, measured * (f->gpus - advice->gpus) / f->gpus);
}

static double saved_by_saves(const struct waste *advice, const struct hindsight_job *job)
{
    const struct waste_facts *f = &job->facts;
    struct goodput g;
    double saves = 0;
    if (!f->sums || !f->sums->n || f->gpus <= 0 || advice->save_freq <= 0)
        return 0;
    goodput_judge(f->sums, f->held_s / f->gpus, f->failures, &g);
    for (size_t i = 0; i < f->sums->n; i++)
        saves += (double)f->sums->v[i].saves;
    uint64_t steps = g.steps + g.lost;
    if (!steps)
        return 0;
    double step_s = (g.good_s + g.lost_s) / (double)steps;
    double loss = f->failures * (double)advice->save_freq * step_s / 2;
    double more = (double)steps / (double)advice->save_freq - saves;
    double save_s = isfinite(g.save_s) ? g.save_s : 0;
    return job->waste.redone_s + job->waste.failed_s - (loss + more * save_s) * f->gpus;
}

double hindsight_of(const struct waste *advice, const struct hindsight_job *job)
{
    switch (advice->advice) {
    case WASTE_FEWER_GPUS:
        return saved_by_fewer(advice, job);
    case WASTE_SAVE_MORE_OFTEN:
        return saved_by_saves(advice, job);
    case WASTE_FASTER_DATA:
        return waste_between_above(&job->facts, advice->least_between);
    case WASTE_SHORTER_TIME_LIMIT:
    case WASTE_NONE:
    case WASTE_ADVICES:
        break;
    }
    return 0;
}

/* By kind; of a kind the earlier week first, and there the newest last. */
static int hindsight_by_kind(const void *a, const void *b)
{
    const struct hindsight_job *x = a, *y = b;
    int c = strcmp(x->kind, y->kind);
    if (c)
        return c;
    if (x->later != y->later)
        return x->later ? 1 : -1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static void try_advice(const struct waste *advice,
                       const struct hindsight_job *jobs,
                       size_t n,
                       struct hindsight *ret)
{
    ret->promised_s += n ? advice->gain_s : 0;
    for (size_t i = 0; i < n; i++) {
        double saved = hindsight_of(advice, &jobs[i]);
        ret->tried++;
        ret->held_s += jobs[i].facts.held_s;
        if (isnan(saved))
            ret->too_small++;
        else
            ret->saved_s += saved;
    }
}

/* A shorter time limit is said only where nothing spares GPU time: here that is no advice. */
static bool hindsight_can_try(const struct waste *w)
{
    return w->advice != WASTE_NONE && w->advice != WASTE_SHORTER_TIME_LIMIT;
}

/* The jobs of one kind. */
static void judge_kind(const struct hindsight_job *jobs, size_t n, struct hindsight *ret)
{
    const struct waste *advice = NULL;
    size_t i = 0;
    for (; i < n && !jobs[i].later; i++)
        advice = hindsight_can_try(&jobs[i].waste) ? &jobs[i].waste : advice;
    if (!advice)
        return;
    ret->advised++;
    try_advice(advice, jobs + i, n - i, ret);
}

void hindsight_judge(struct hindsight_job *jobs, size_t n, struct hindsight *ret)
{
    *ret = (struct hindsight){0};
    xsort(jobs, n, sizeof(*jobs), hindsight_by_kind);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && !strcmp(jobs[end].kind, jobs[i].kind); end++)
            ;
        judge_kind(jobs + i, end - i, ret);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* advice_taken.c - see advice_taken.h.
 *
 * Jobs of one kind stand in the order in which they were queued. For each the newest advice before
 * it is looked for among those before; a kind is at most a page of the store, so that this is no
 * more than looking at each pair of its jobs once. */
#include "core/account/advice_taken.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const double STEPS_MOST = 2, WAY_LEAST = 0.5, SAVES_NEAR = 0.5;

struct advice_steps {
    double counted, all, saves; /* all: those that were run again, too */
};

static struct advice_steps advice_steps_of(const struct waste_facts *f)
{
    struct advice_steps s = {0};
    for (size_t i = 0; f->sums && i < f->sums->n; i++) {
        const struct goodput_attempt *a = &f->sums->v[i];
        s.all += (double)a->steps;
        s.counted += a->steps > a->lost ? (double)(a->steps - a->lost) : 0;
        s.saves += (double)a->saves;
    }
    return s;
}

/* How many times the work of the next job the advised one did; NaN: they cannot be compared. */
static double advice_work_ratio(const struct waste_facts *advised, const struct waste_facts *next)
{
    double a = advice_steps_of(advised).counted, b = advice_steps_of(next).counted;
    if (a <= 0 && b <= 0)
        return advised->succeeded && next->succeeded ? 1 : (double)NAN;
    if (a <= 0 || b <= 0 || a > STEPS_MOST * b || b > STEPS_MOST * a)
        return (double)NAN;
    return a / b;
}

/* The gain by the formula of waste.c, for the number of GPUs that was taken. */
static bool advice_fewer_taken(const struct advice_taken_job *a,
                               const struct advice_taken_job *b,
                               struct advice_taken *ret)
{
    double had = a->facts.gpus, has = b->facts.gpus, advised = a->waste.gpus;
    double measured = a->facts.held_s - a->facts.unknown_s;
    if (has < advised || had - has < WAY_LEAST * (had - advised) || has >= had)
        return false;
    ret->foreseen_s = fmin(a->facts.idle_s, measured * (had - has) / had);
    ret->got_s = a->facts.held_s - b->facts.held_s * advice_work_ratio(&a->facts, &b->facts);
    return true;
}

/* Steps between two saves; infinite where there was none. */
static double advice_save_interval(const struct waste_facts *f)
{
    struct advice_steps s = advice_steps_of(f);
    return s.saves > 0 ? s.all / s.saves : HUGE_VAL;
}

static bool advice_saves_taken(const struct advice_taken_job *a,
                               const struct advice_taken_job *b,
                               struct advice_taken *ret)
{
    const struct waste_facts *f = &a->facts, *g = &b->facts;
    double advised = (double)a->waste.save_freq, apart = advice_save_interval(g);
    double most = advised * (1 + SAVES_NEAR);
    if (advised <= 0 || advice_save_interval(f) <= most || apart > most ||
        apart < advised * (1 - SAVES_NEAR) || g->failures <= 0 || g->gpus <= 0)
        return false;
    double each = (b->waste.redone_s + b->waste.failed_s) / g->failures / g->gpus;
    ret->foreseen_s = a->waste.gain_s;
    ret->got_s = a->waste.redone_s + a->waste.failed_s - each * f->failures * f->gpus;
    return true;
}

static bool advice_was_taken(const struct advice_taken_job *a,
                             const struct advice_taken_job *b,
                             struct advice_taken *ret)
{
    *ret = (struct advice_taken){.advised = a->row, .next = b->row, .ended_at = b->ended_at};
    if (b->facts.held_s <= 0)
        return false;
    bool is_taken = a->waste.advice == WASTE_FEWER_GPUS ? advice_fewer_taken(a, b, ret)
                                                        : advice_saves_taken(a, b, ret);
    return is_taken && ret->foreseen_s > 0 && isfinite(ret->got_s);
}

static bool advice_is_testable(const struct waste *w)
{
    return w->advice == WASTE_FEWER_GPUS || w->advice == WASTE_SAVE_MORE_OFTEN;
}

/* The job of the newest advice that was there when this one was queued; NULL: none was. */
static struct advice_taken_job *advice_newest(struct advice_taken_job *jobs,
                                              size_t n,
                                              usec_t queued_at)
{
    struct advice_taken_job *newest = NULL;
    for (size_t i = 0; i < n; i++) {
        struct advice_taken_job *a = &jobs[i];
        if (a->ended_at && a->ended_at <= queued_at && advice_is_testable(&a->waste) &&
            (!newest || a->ended_at > newest->ended_at))
            newest = a;
    }
    return newest;
}

static int advice_by_kind(const void *a, const void *b)
{
    const struct advice_taken_job *x = a, *y = b;
    int c = strcmp(x->kind, y->kind);
    if (c)
        return c;
    if (x->queued_at != y->queued_at)
        return x->queued_at < y->queued_at ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static int advice_newest_first(const void *a, const void *b)
{
    const struct advice_taken *x = a, *y = b;
    if (x->ended_at != y->ended_at)
        return x->ended_at > y->ended_at ? -1 : 1;
    return x->next < y->next ? -1 : x->next > y->next;
}

static size_t advice_taken_of_kind(struct advice_taken_job *jobs,
                                   size_t n,
                                   struct advice_taken *ret)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        struct advice_taken_job *a =
            jobs[i].ended_at ? advice_newest(jobs, i, jobs[i].queued_at) : NULL;
        if (!a || a->is_tested || !advice_was_taken(a, &jobs[i], &ret[found]))
            continue;
        a->is_tested = true;
        found++;
    }
    return found;
}

size_t advice_taken_find(struct advice_taken_job *jobs, size_t n, struct advice_taken *ret)
{
    size_t found = 0;
    xsort(jobs, n, sizeof(*jobs), advice_by_kind);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && !strcmp(jobs[end].kind, jobs[i].kind); end++)
            ;
        found += advice_taken_of_kind(jobs + i, end - i, ret + found);
    }
    xsort(ret, found, sizeof(*ret), advice_newest_first);
    return found;
}

static int advice_smaller_first(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double advice_taken_error(const struct advice_taken *pairs, size_t n)
{
    if (!n)
        return (double)NAN;
    double *errors = xcalloc(n, sizeof(*errors));
    for (size_t i = 0; i < n; i++)
        errors[i] = fabs(pairs[i].got_s - pairs[i].foreseen_s) / pairs[i].foreseen_s;
    xsort(errors, n, sizeof(*errors), advice_smaller_first);
    double median = (errors[(n - 1) / 2] + errors[n / 2]) / 2;
    free(errors);
    return median;
}

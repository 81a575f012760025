/* SPDX-License-Identifier: Apache-2.0 */
/* past_advise.c - what to set by what runs like it had; see past.h.
 *
 * Sizes are taken from one run all together: a mixture of two may be what neither of them was.
 * What ran out of memory once, or contains what did, is proposed no more, whoever it worked for. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/text.h"
#include "core/past/advise.h"
#include "core/past/past.h"

static const double LARGER = 1.2;     /* by so much at least, one of the sizes: */
static const double FASTER = 0.9;     /* and a step takes at most that part of the time */
static const double OTHER_FREQ = 1.5; /* nearer than that, both are as good */

/* Every size of a is there in b and at least as large. */
static bool is_within(const struct past_line *a, const struct past_line *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (!str_eq(a->sizes[i].key, b->sizes[i].key) || a->sizes[i].value > b->sizes[i].value)
            return false;
    return true;
}

/* The newest that ran out of memory with at most these sizes; NULL. */
static const struct past_run *find_death(const struct past *p, const struct past_line *l)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->v[i].end == PAST_DIED && is_within(&p->v[i].line, l))
            return &p->v[i];
    return NULL;
}

static bool has_worked(const struct past *p, const struct past_line *l)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->v[i].end == PAST_WORKED && is_within(l, &p->v[i].line))
            return true;
    return false;
}

/* What divided the batch of the asked one is divided by a divisor of it too; else the batches have
 * to be the same. */
static bool divides_as_well(const struct past_line *l, const struct past_line *asked)
{
    if (str_eq(l->work, asked->work))
        return true;
    for (size_t i = 0; i < l->n; i++)
        if (strstr(l->sizes[i].key, "micro_batch") &&
            fmod(asked->sizes[i].value, l->sizes[i].value) > 0)
            return false;
    return true;
}

/* How much of the asked sizes it has. */
static double likeness(const struct past_line *l, const struct past_line *asked)
{
    double sum = 0;
    for (size_t i = 0; i < l->n; i++)
        sum += l->sizes[i].value / asked->sizes[i].value;
    return sum;
}

static const struct past_run *find_smaller(const struct past *p, const struct past_line *asked)
{
    const struct past_run *best = NULL;
    for (size_t i = 0; i < p->n; i++) {
        const struct past_run *r = &p->v[i];
        if (r->end == PAST_WORKED && is_within(&r->line, asked) && !find_death(p, &r->line) &&
            divides_as_well(&r->line, asked) &&
            (!best || likeness(&r->line, asked) > likeness(&best->line, asked)))
            best = r;
    }
    return best;
}

/* A number as it stands on a command line. */
static const char *number(double v, char ret[static 32])
{
    text_printf_to(ret, 32, "%.12g", v);
    return ret;
}

static void put_smaller(const struct past_line *asked,
                        const struct past_run *died,
                        const struct past_run *worked,
                        struct jout *j)
{
    char value[32], bad[32], how[64] = "succeeded";
    if (!worked->succeeded)
        text_printf(how, "trained %" PRIu64 " steps", worked->told.steps);
    for (size_t i = 0; i < asked->n; i++) {
        double good = worked->line.sizes[i].value, fatal = died->line.sizes[i].value;
        _cleanup_(freep) char *key = xasprintf("overrides.%s", asked->sizes[i].key);
        if (good == asked->sizes[i].value)
            continue;
        (void)number(good, value);
        if (fatal > good)
            advise_put_one(j, key, value,
                           "with %s job '%s' ran out of GPU memory, with %s job '%s' %s: the same "
                           "model, GPUs and lengths",
                           number(fatal, bad), died->id, value, worked->id, how);
        else
            advise_put_one(j, key, value, "together with the others: job '%s' had it so and %s",
                           worked->id, how);
    }
}

static bool advise_smaller(const struct past *p, const struct past_line *asked, struct jout *j)
{
    const struct past_run *died = find_death(p, asked);
    const struct past_run *worked = died && !has_worked(p, asked) ? find_smaller(p, asked) : NULL;
    if (worked)
        put_smaller(asked, died, worked, j);
    return died;
}

/* ---- larger ---- */

static bool has_speed(const struct past_run *r, const struct past_line *asked)
{
    return r->end == PAST_WORKED && str_eq(r->line.work, asked->work) && isfinite(r->step_s) &&
           r->step_s > 0;
}

static bool is_clearly_larger(const struct past_line *l, const struct past_line *asked)
{
    bool larger = false;
    if (!is_within(asked, l))
        return false;
    for (size_t i = 0; i < l->n; i++)
        larger |= l->sizes[i].value >= LARGER * asked->sizes[i].value;
    return larger;
}

static bool is_equal(const struct past_line *a, const struct past_line *b)
{
    return is_within(a, b) && is_within(b, a);
}

/* Each the fastest of its kind, so that no slow day speaks for the other. */
static void advise_larger(const struct past *p, const struct past_line *asked, struct jout *j)
{
    const struct past_run *same = NULL, *best = NULL;
    char value[32], old[32];
    for (size_t i = 0; i < p->n; i++) {
        const struct past_run *r = &p->v[i];
        if (!has_speed(r, asked))
            continue;
        if (is_equal(&r->line, asked) && (!same || r->step_s < same->step_s))
            same = r;
        if (is_clearly_larger(&r->line, asked) && !find_death(p, &r->line) &&
            (!best || r->step_s < best->step_s))
            best = r;
    }
    if (!same || !best || best->step_s > FASTER * same->step_s)
        return;
    for (size_t i = 0; i < asked->n; i++) {
        double v = best->line.sizes[i].value;
        _cleanup_(freep) char *key = xasprintf("overrides.%s", asked->sizes[i].key);
        if (v == asked->sizes[i].value)
            continue;
        advise_put_one(j, key, number(v, value),
                       "with %s a step of job '%s' took %.3g s, with %s one of job '%s' took %.3g "
                       "s: the same model, GPUs, lengths and batches",
                       value, best->id, best->step_s, number(asked->sizes[i].value, old), same->id,
                       same->step_s);
    }
}

void past_advise_sizes(const struct past *p, const struct past_line *asked, struct jout *j)
{
    if (asked->alike && asked->n && !advise_smaller(p, asked, j))
        advise_larger(p, asked, j);
}

/* ---- saving ---- */

bool past_advise_save(const struct past *p,
                      const struct past_line *asked,
                      const char *project,
                      bool by_override,
                      struct jout *j)
{
    struct goodput_sums sums = {0};
    struct goodput g;
    double held_s = 0;
    int failures = 0;
    for (size_t i = 0; i < p->n && sums.n < GOODPUT_ATTEMPTS_MAX; i++) {
        const struct past_run *r = &p->v[i];
        if (!str_eq(r->project, project) || !r->told.steps || !str_eq(r->line.work, asked->work))
            continue;
        sums.v[sums.n++] = r->told;
        held_s += r->held_s;
        failures += r->failures;
    }
    goodput_judge(&sums, held_s, failures, &g);
    double best = (double)g.save_freq, has = (double)asked->save_freq;
    if (!g.save_freq || asked->save_freq < 1 ||
        (asked->total_steps && g.save_freq > asked->total_steps))
        return false;
    if (best < has * OTHER_FREQ && has < best * OTHER_FREQ)
        return true; /* it is known, and good */
    char value[32], apart[CLOCK_TEXT_MAX];
    (void)span_to_string((usec_t)(g.mtbf_s * (double)USEC_SEC), apart);
    text_printf(value, "%" PRId64, g.save_freq);
    advise_put_one(j, by_override ? "overrides.trainer.save_freq" : "save_freq", value,
                   "in %zu run%s like it a step took %.3g s, a save %.3g s, and failures came %s "
                   "apart: saving every %s steps loses the least time, it saves every %" PRId64,
                   sums.n, sums.n == 1 ? "" : "s",
                   (g.good_s + g.lost_s) / (double)(g.steps + g.lost), g.save_s, apart, value,
                   asked->save_freq);
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_idle.c - how long a job's GPUs have been low, looked at again and again; see gpu_idle.h. */
#include "core/metric/gpu_idle.h"

#include <math.h>

static const usec_t WARN_MOST = 15 * USEC_MIN;

usec_t gpu_idle_warn(usec_t window)
{
    return window < WARN_MOST ? window : WARN_MOST;
}

struct gpu_idle gpu_idle_begin(usec_t learnt)
{
    return (struct gpu_idle){.longest = learnt, .learnt = learnt};
}

/* How long it may be low before it is warned: its phases are not all of one length. */
static usec_t gpu_idle_patience(const struct gpu_idle *w, const struct gpu_idle_rule *rule)
{
    usec_t wanted = w->learnt + w->learnt / 4, most = GPU_IDLE_PATIENCE * rule->window;
    if (wanted <= rule->window)
        return rule->window;
    return wanted < most ? wanted : most;
}

/* It works again. Whoever rests for most of its time would else earn patience for its waste. */
static void gpu_idle_end_spell(struct gpu_idle *w, usec_t now)
{
    usec_t spell = now - w->since, before = w->since > w->worked ? w->since - w->worked : 0;
    w->worked = now;
    if (before < spell)
        return;
    usec_t shorter = spell < w->longest ? spell : w->longest;
    w->longest = spell > w->longest ? spell : w->longest;
    w->learnt = shorter > w->learnt ? shorter : w->learnt;
}

/* GPUs that rest then are no waste. */
static bool gpu_idle_is_excused(const struct gpu_idle_look *look)
{
    return look->has_phases && look->phase != HANG_TRAINING && look->phase != HANG_FIRST;
}

/* Would its end throw a step away that a checkpoint will have? A job that saves nothing loses what
 * it has whenever it ends; one that stands still will not come to a checkpoint. */
static bool gpu_idle_is_unsaved(const struct gpu_idle *w,
                                const struct gpu_idle_rule *rule,
                                const struct gpu_idle_look *look)
{
    usec_t last = w->moved > w->warned ? w->moved : w->warned;
    return look->saved > 0 && look->step > look->saved && look->now - last < rule->window;
}

/* Time that nobody measured is taken out of what was begun. */
static void gpu_idle_pass_over(struct gpu_idle *w, usec_t now)
{
    usec_t gap = w->unknown ? now - w->unknown : 0;
    w->unknown = 0;
    w->since += w->since ? gap : 0;
    w->warned += w->warned ? gap : 0;
    w->moved += w->moved ? gap : 0;
    w->worked += w->worked ? gap : 0;
}

/* They are low. */
static enum gpu_idle_act gpu_idle_see_low(struct gpu_idle *w,
                                          const struct gpu_idle_rule *rule,
                                          const struct gpu_idle_look *look)
{
    if (look->now - w->calm_since < rule->span)
        return GPU_IDLE_NOTHING; /* a part of the mean is of before */
    if (look->step != w->step) {
        w->step = look->step;
        w->moved = look->now;
    }
    if (!w->since)
        w->since = look->now - rule->span;
    if (look->now - w->since < gpu_idle_patience(w, rule))
        return GPU_IDLE_NOTHING;
    if (!w->warned) {
        w->warned = look->now;
        return GPU_IDLE_WARN;
    }
    bool is_due = rule->stops && look->now - w->warned >= rule->warn;
    return is_due && !gpu_idle_is_unsaved(w, rule, look) ? GPU_IDLE_STOP : GPU_IDLE_NOTHING;
}

enum gpu_idle_act gpu_idle_see(struct gpu_idle *w,
                               const struct gpu_idle_rule *rule,
                               const struct gpu_idle_look *look)
{
    bool is_known = !isnan(look->use);
    if (rule->least <= 0)
        return GPU_IDLE_NOTHING;
    if (gpu_idle_is_excused(look)) {
        *w = (struct gpu_idle){.worked = w->worked, .longest = w->longest, .learnt = w->learnt};
        return GPU_IDLE_NOTHING;
    }
    if (!w->calm_since)
        w->calm_since = look->now;
    if (!is_known && !look->is_justified) {
        w->unknown = w->unknown ? w->unknown : look->now;
        return GPU_IDLE_NOTHING;
    }
    gpu_idle_pass_over(w, look->now);
    if (look->is_justified || look->use >= rule->least) {
        if (w->since && !look->is_justified)
            gpu_idle_end_spell(w, look->now);
        w->since = w->warned = 0;
        return GPU_IDLE_BUSY;
    }
    return gpu_idle_see_low(w, rule, look);
}

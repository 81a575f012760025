/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_idle.h - when a job whose GPUs hardly work is called idle, and when they are taken back.
 *
 * Its use has to be low over the whole window. It is then warned; where its spec says `action:
 * stop` it is ended `warn` later, if it is still idle, and right after a checkpoint where it makes
 * some, so that no step is lost; one that has made no step since it was warned, over a whole
 * window, makes no checkpoint either and is not waited for. Time in which a training loads,
 * validates or saves does not count, nor does the time for which its owner has said why (`argus
 * justify`). Time that nobody measured counts for nothing.
 *
 * What no log names is learnt: a spell of low use that ended with use again was a phase of that job
 * (its validation, say), and once two were as long, so long and a quarter more is waited for
 * instead of the window, up to GPU_IDLE_PATIENCE windows. A job that rests for longer than it works
 * teaches nothing. All times are of one steady clock. Pure. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "core/metric/hang.h"

/* What the spec of one job asks for. */
struct gpu_idle_rule {
    double least;        /* 0 to 1: works less than this; 0: it is never idle */
    usec_t window, span; /* low for so long; the time over which its use is a mean: not longer */
    usec_t warn;         /* between the warning and the end */
    bool stops;
};
/* How long it is warned where its spec does not say: 15 minutes, and not longer than the window. */
usec_t gpu_idle_warn(usec_t window);

struct gpu_idle_look {
    usec_t now;
    double use;        /* the mean over the span; NaN: not known */
    bool is_justified; /* its owner has said why */
    enum hang_phase phase;
    bool has_phases;     /* its log names them */
    int64_t step, saved; /* its newest, and that of its newest whole checkpoint; 0: none */
};

enum { GPU_IDLE_PATIENCE = 4 }; /* windows that are waited for at most */

/* The watch over one attempt; zeroed to begin anew, or with what earlier ones have learnt. */
struct gpu_idle {
    usec_t calm_since; /* it neither loads, validates nor saves; 0: it does, or nothing was seen */
    usec_t since;      /* low; 0: it is not */
    usec_t warned;     /* 0: not */
    usec_t moved;      /* when its step was another one, looked at while it is low */
    int64_t step;      /* that one */
    usec_t unknown;    /* its use is not known since then; 0: it is */
    usec_t worked;     /* the end of its last spell of low use; 0: there was none */
    usec_t longest;    /* of its spells, those that count */
    usec_t learnt;     /* two of them at least were as long; 0: not so yet */
};
/* A watch that knows what the one before has learnt. */
struct gpu_idle gpu_idle_begin(usec_t learnt);

enum gpu_idle_act {
    GPU_IDLE_NOTHING,
    GPU_IDLE_BUSY, /* it is not idle, if it was called so */
    GPU_IDLE_WARN, /* now, once */
    GPU_IDLE_STOP, /* and again, until it ends */
};
enum gpu_idle_act gpu_idle_see(struct gpu_idle *w,
                               const struct gpu_idle_rule *rule,
                               const struct gpu_idle_look *look);

/* SPDX-License-Identifier: Apache-2.0 */
/* advise.h - what would serve a job better than its spec says, each with the key to set.
 *
 * Only what is known is said: how long runs like it took (learn.h), what fitted into their GPUs
 * (past.h), what its pool can hold, what a checkpoint takes. Nothing here is wrong with the spec;
 * that is preflight's. Pure. */
#pragma once
#include "core/past/past.h"
#include "core/sched/sched.h"
#include "core/spec/spec.h"
#include "core/verl/demand.h"

struct advise_in {
    const struct spec *spec;
    const struct demand *demand;
    bool fits_pool;            /* the whole gang, in the empty pool */
    int largest;               /* nodes of its shape that fit there; 0 = none, or not known */
    usec_t p50, p90;           /* of runs like it; 0 = nothing is known */
    uint64_t checkpoint_bytes; /* of one; 0 = not known */
    uint64_t free_bytes;       /* where they go; 0 = not known */
    const struct past *past;   /* runs like it, and its own command line: both or none */
    const struct past_line *line;
    const struct sched_hint *hint; /* what the scheduler found that starts it now; NULL: nothing */
};

/* One object {"key","value","text"} into the array that is open: `--set key=value` takes it. */
void advise_put_one(struct jout *j, const char *key, const char *value, const char *fmt, ...)
    printf_like(4, 5);
extern const struct field_table advise_table; /* that object */
/* All that is known. */
void advise_put(const struct advise_in *in, struct jout *j);
/* What starts it now, as sched.h says it. advise_put() says it too, unless its key has a value
 * already, of another kind of knowledge. */
void advise_put_hint(const struct sched_hint *h, struct jout *j);

/* SPDX-License-Identifier: Apache-2.0 */
/* sched_fit.h - shapes of demand, and nodes for a gang. The scheduler's own. */
#pragma once
#include "core/sched/sched_state.h"

/* Adds one user of the shape of this pool, these needs and this demand. NULL texts are "". */
uint32_t shape_take(struct sched *s, const char *pool, const char *needs, const struct demand *d);
void shape_give(struct sched *s, uint32_t shape);
/* A shape that is in no table, for a question. Its pool is held until shape_release(). */
void shape_init(struct sched *s,
                struct shape *ret,
                const char *pool,
                const char *needs,
                const struct demand *d);
void shape_release(struct sched *s, struct shape *shape);

/* Would it fit if nothing were leased? What others hold is held. */
bool shape_fits(const struct sched *s, struct shape *shape);
/* And if they gave it back? */
bool shape_fits_ever(const struct sched *s, struct shape *shape);
/* How many nodes a gang of this shape can have when nothing is leased. */
int shape_largest(const struct sched *s, const struct shape *shape, bool others_too);

struct fit {
    const struct shape *shape;
    const char *avoid; /* NULL = none */
    usec_t ends;       /* what is kept from before that is left alone; 0 = nothing is kept */
    bool fill_kept;    /* first where something is kept for later: it would stand idle */
};
/* The gang's hosts, the driver's first. ret may be NULL. */
bool fit_find(const struct sched *s, const struct fit *f, struct numbers *ret);
/* True if fit_find() succeeds with default options; remembered for the shape until room comes
 * free. */
bool fit_exists_now(const struct sched *s, struct shape *shape);

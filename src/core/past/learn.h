/* SPDX-License-Identifier: Apache-2.0 */
/* learn.h - how long jobs like this one ran: quantiles learnt from those that ended.
 *
 * Pure, deterministic, bounded: the newest LEARN_RUNS runs of each kind count, and of the
 * kinds the LEARN_KINDS used last (about 1 KiB each). Kinds go from the narrow to the wide:
 * (user, project, workload, name, gang), (user, workload, gang), (project, workload, gang),
 * (pool, workload, gang), the gang's size alone; the narrowest with LEARN_ENOUGH runs
 * answers. Digits in names do not count: grpo-7 is of the kind of grpo-8.
 *
 * A limit that people set with care says much about the run: where the share of the limit
 * that was really used is steadier within the kind than the spans themselves, the answer is
 * that share of this job's limit. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"

enum { LEARN_RUNS = 64, LEARN_KINDS = 4096, LEARN_ENOUGH = 5 };

struct learn;

struct learn_kind {
    const char *user, *project, *workload, *pool, *name; /* NULL = "" */
    double gpus;
    usec_t limit; /* its timeout; 0 = none */
};

struct learn *learn_new(const unsigned char seed[static 16]);
void learn_free(struct learn *l); /* NULL is fine */

/* A run ended after `ran` (of running, not of waiting). */
void learn_add(struct learn *l, const struct learn_kind *k, usec_t ran);

/* False: nothing is known. p50 <= p90 <= limit (where there is one), all at least 1. */
bool learn_expect(const struct learn *l,
                  const struct learn_kind *k,
                  usec_t *ret_p50,
                  usec_t *ret_p90);

/* NULL, or the first broken invariant. */
const char *learn_check(const struct learn *l);

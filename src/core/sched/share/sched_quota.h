/* SPDX-License-Identifier: Apache-2.0 */
/* sched_quota.h - what projects and users hold and have used. The scheduler's own. */
#pragma once
#include "core/sched/sched_state.h"

/* Adds one user of this account, which is made if there is none. */
uint32_t account_take(struct sched *s, enum sched_account kind, const char *name);
void account_give(struct sched *s, uint32_t account);
/* 0 if there is none. */
uint32_t account_find(const struct sched *s, enum sched_account kind, const char *name);

/* The amounts of a lease, in 1/UNIT; memory in GiB. */
struct amounts {
    int64_t gpus, cpus, memory;
};
/* A lease of so much begins (sign 1) or ends (-1). */
void account_charge(struct sched *s,
                    uint32_t account,
                    const struct amounts *taken,
                    int sign,
                    usec_t now);
double account_month(const struct account *a, usec_t now);
double account_decayed(const struct account *a, usec_t now);
/* Where its next job stands in fair share: what it used and holds, by its share. */
double account_standing(struct account *a, usec_t now);
/* GPU-seconds by which one job more ahead moves the next of the same project back. */
double account_step(const struct account *a, int64_t gpus);
int account_ceiling(const struct sched *s, uint32_t project, uint32_t user, int priority);

/* NULL, or the code of the quota that keeps this shape from starting now, and of which account. */
const char *quota_blocks(const struct sched *s,
                         uint32_t project,
                         uint32_t user,
                         const struct shape *shape,
                         usec_t now,
                         uint32_t *ret_account);
/* In 1/UNIT; 0 = nothing. */
int64_t account_guaranteed(const struct account *a);
const char *quota_check(const struct sched *s);

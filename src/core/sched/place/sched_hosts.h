/* SPDX-License-Identifier: Apache-2.0 */
/* sched_hosts.h - nodes by free slots, and the pools that consist of them. The scheduler's own. */
#pragma once
#include "core/sched/sched_state.h"

/* 0 if there is none. */
uint32_t host_find(const struct sched *s, const char *name, size_t len);
/* Found, or made (not in the node table, so not usable). */
uint32_t host_take(struct sched *s, const char *name, size_t len);
/* Something of its slots or CPUs changed; came_free: there may be more than before. */
void host_touch(struct sched *s, uint32_t host, bool came_free);
/* Marks the host usable, as the node table would. */
void host_set_usable(struct sched *s, uint32_t host);
/* A row is of no more use once it is in no table and has no lease. */
void host_drop_unused(struct sched *s, uint32_t host);

/* Adds one user of this label set with these needs. */
uint32_t pool_take(struct sched *s, const char *text, const char *needs);
/* A node of the pool: its labels are all there, and no need is known not to be met. With `only` its
 * labels are these: a pool that names none is not its. */
bool pool_suits(const struct pool *p, const char *labels, const char *only, const char *versions);
void pool_hold(struct sched *s, uint32_t pool);
void pool_give(struct sched *s, uint32_t pool);
/* True if the pools are equal or share a node that may be used. */
bool pools_meet(const struct sched *s, uint32_t a, uint32_t b);

/* Call for each host of the kind with at least `free` free slots, fewest first; true stops. */
typedef bool (*hosts_f)(void *arg, uint32_t host);
/* Hosts of the pool with least..most free slots, fewest first, then by number of kind and place.
 * network: NULL = all. Returns true if f stopped it. */
bool hosts_each(const struct sched *s,
                uint32_t pool,
                const char *network,
                int least,
                hosts_f f,
                void *arg);

void kinds_copy(struct sched *dst, const struct sched *src);
void kinds_release(struct sched *s);
void hosts_release(struct sched *s);
const char *hosts_check(const struct sched *s);

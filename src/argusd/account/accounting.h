/* SPDX-License-Identifier: Apache-2.0 */
/* accounting.h - where the time of every slot went: the slotbook of this argusd, over restarts.
 *
 * Told of every change in the turn in which it happens; what it says is in the open batch with it.
 * Reading is in memory, but for the sums of the past, which are the store's (store_list_usage). */
#pragma once
#include <uv.h>

#include "argusd/figures/figures.h"
#include "core/account/slotbook.h"
#include "core/sched/sched.h"
#include "store/store.h"

struct accounting;

/* Steps of rows in the store, in s. */
enum { ACCOUNTING_QUARTER = 900, ACCOUNTING_DAY = 86400 };
/* Dealings of projects stand under minus these steps: the first DEALING_SUMS sums of a row are
 * those of its project with another, and its workload is both names with this between them. */
enum { ACCOUNTING_PAIR = '\n' };
/* Quarters are kept for so long. */
#define ACCOUNTING_KEPT (90 * USEC_DAY)
/* A leased GPU whose mean use is below this is held idle. */
#define ACCOUNTING_IDLE_BELOW 0.05

struct accounting_parts { /* all borrowed */
    uv_loop_t *loop;
    struct store *store;
    struct sched *sched;
    const char *cluster;
};

struct accounting *accounting_new(const struct accounting_parts *parts);
/* A row of the store at start, by name. */
#define ACCOUNTING_ENTRY "slotbook"
void accounting_restore(struct accounting *a, const struct store_entry *entry);
/* All leases and nodes of the start were told: what else the book has is over. */
void accounting_start(struct accounting *a, const struct figures *figures);
void accounting_durable(struct accounting *a, uint64_t batch);
void accounting_close(struct accounting *a); /* the sums are stored once more */
void accounting_free(struct accounting *a);  /* NULL is fine */

/* ---- the moments ---- */

struct accounting_job {
    const char *id, *project, *user, *workload;
};
/* The scheduler has given it a lease. */
void accounting_begin(struct accounting *a, const struct accounting_job *job);
/* The same at the start of argusd: the book mostly has it. */
void accounting_again(struct accounting *a, const struct accounting_job *job);
/* Its steps now are those that an earlier attempt had run, or they are new. */
void accounting_set_redoes(struct accounting *a, const char *id, bool redoes);
/* It is over: what it held, from its begin on, is added. */
void accounting_end(struct accounting *a, const char *id, struct slotbook_held *held);
/* The table that the scheduler is given; foreign: GPUs of others, of each node. */
void accounting_set_nodes(struct accounting *a,
                          const struct sched_node *nodes,
                          const double *foreign,
                          size_t n);

/* ---- what it tells ---- */

/* What the job's lease held until now is added; nothing happens if it has none. */
void accounting_add_held(struct accounting *a, const char *id, struct slotbook_held *held);
/* As slotbook_pool(). */
void accounting_pool(const struct accounting *a, const char *label, int64_t ret[SLOTBOOK_SUMS]);

/* Brings the sums up to now to the disk, then calls cb with the label (ms) up to which they go, at
 * once or later; while the store fails: at once, with what there is. */
typedef void (*accounting_settled_f)(int64_t until_ms, void *arg);
void accounting_settle(struct accounting *a, accounting_settled_f cb, void *arg);
/* cb is not called any more for this arg. */
void accounting_forget(struct accounting *a, const void *arg);

/* SPDX-License-Identifier: Apache-2.0 */
/* slotbook.h - where the time of every slot went: a book that balances to the millisecond.
 *
 * Amounts are in 1/SLOTBOOK_GPU of a GPU, times in milliseconds of the book's own clock, which its
 * owner lets run evenly and never back; sums are amount × time. Sums are cut at each SLOTBOOK_EVERY
 * of the label, which is wall time: the book's time plus an offset. For every label of nodes
 *     used + held_idle + blocked + free + draining + broken + foreign = capacity
 * holds exactly, at every moment and over every span. So it does with `redone` as a part of its own
 * and used - redone in place of used: what is run again is used, never idle. Beside it stand the
 * dealings of projects, as dealing.h divides them. Pure and deterministic: the same events give the
 * same sums. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "core/account/dealing.h"

struct slotbook;

enum { SLOTBOOK_GPU = 10000 };
#define SLOTBOOK_EVERY ((int64_t)900 * 1000) /* ms of an interval */

/* The words leave the process (JSON, SQL). The first is the sum of the seven behind it. */
#define SLOTBOOK_SUM_TABLE(X)                                                                      \
    X(CAPACITY, capacity)                                                                          \
    X(USED, used)                                                                                  \
    X(HELD_IDLE, held_idle)                                                                        \
    X(BLOCKED, blocked)                                                                            \
    X(FREE, free)                                                                                  \
    X(DRAINING, draining)                                                                          \
    X(BROKEN, broken)                                                                              \
    X(FOREIGN, foreign)                                                                            \
    X(UNKNOWN, unknown) /* of used: nobody measured it */                                          \
    X(BUSY, busy)       /* measured work: leased amount × mean use */                             \
    X(REDONE, redone)   /* of used: while steps ran that an earlier attempt had run */
#define X(name, word) SLOTBOOK_##name,
enum slotbook_sum { SLOTBOOK_SUM_TABLE(X) SLOTBOOK_SUMS };
#undef X

enum slotbook_state { SLOTBOOK_OPEN, SLOTBOOK_IN_DRAIN, SLOTBOOK_DOWN, SLOTBOOK_STATES };

/* What a lease holds of one node. idle + unknown <= amount; busy <= amount. */
struct slotbook_part {
    const char *node;
    int64_t amount, idle, unknown, busy;
};

/* The sums that a lease has, from its begin on. */
struct slotbook_held {
    int64_t held, idle, unknown, busy, redone;
};
void slotbook_held_add(struct slotbook_held *to, const struct slotbook_held *more);

/* The words are stored. */
#define SLOTBOOK_EVENT_TABLE(X)                                                                    \
    X(NODE, node)           /* a node is so now: name, labels, gpus, foreign, clearing, state */   \
    X(GONE, gone)           /* it is in no table any more; what is leased there stays leased */    \
    X(BEGIN, begin)         /* a lease: name is the job, project, user, workload, parts, so_far */ \
    X(END, end)             /* it is over */                                                       \
    X(KEEP, keep)           /* so much of a node is kept for a gang: name, amount */               \
    X(USE, use)             /* measured use of a lease's part: name, part */                       \
    X(REDO, redo)           /* a lease runs steps again if amount, else new ones: name, amount */  \
    X(TAKE, take)           /* the sums were taken: they are somebody else's now */                \
    X(CLOCK, clock)         /* from now on the label is the book's time plus offset */             \
    X(GUARANTEE, guarantee) /* a project is guaranteed so much: project, amount */                 \
    X(WAIT, wait) /* jobs of a project wait for so much: project, labels of the pool, amount */
#define X(name, word) SLOTBOOK_EV_##name,
enum slotbook_kind { SLOTBOOK_EVENT_TABLE(X) SLOTBOOK_EV_END_OF_TABLE };
#undef X

/* Texts are borrowed for the call; NULL = "". */
struct slotbook_event {
    enum slotbook_kind kind;
    int64_t at; /* one that lies before the newest one counts as now */
    const char *name, *labels, *project, *user, *workload;
    int64_t gpus, foreign, clearing; /* clearing: given back, and not seen empty */
    enum slotbook_state state;
    int64_t amount, offset;
    struct slotbook_part *parts; /* USE: one */
    size_t n_parts;
    struct slotbook_held so_far;
};

/* offset: the label minus `now`. */
struct slotbook *slotbook_new(const unsigned char seed[static 16], int64_t now, int64_t offset);
void slotbook_free(struct slotbook *b); /* NULL is fine */

/* True if it changed the book: then it is worth keeping. Of a lease or node that is not there
 * nothing happens; a lease that is there is replaced. TAKE drops the sums. */
bool slotbook_apply(struct slotbook *b, const struct slotbook_event *e);

int64_t slotbook_now(const struct slotbook *b);
int64_t slotbook_label(const struct slotbook *b);

/* One interval's sums of one key; the job's texts are "" in the rows of the nodes themselves. */
struct slotbook_row {
    int64_t at; /* label of its begin */
    const char *labels, *project, *user, *workload;
    const int64_t *sums; /* SLOTBOOK_SUMS */
};
typedef void (*slotbook_row_f)(const struct slotbook_row *row, void *arg);
/* All that came since the last time, up to now. */
void slotbook_take(struct slotbook *b, int64_t now, slotbook_row_f f, void *arg);

/* One interval's sums of one project with another, as dealing.h has them. */
struct slotbook_dealing {
    int64_t at; /* label of its begin */
    const char *project, *other;
    const int64_t *sums; /* DEALING_SUMS */
};
typedef void (*slotbook_dealing_f)(const struct slotbook_dealing *row, void *arg);
/* As slotbook_take(), of the dealings: taken with it, before the event says so. */
void slotbook_take_dealings(struct slotbook *b, int64_t now, slotbook_dealing_f f, void *arg);

/* What the lease of this job held until now; false: there is none. */
bool slotbook_job(const struct slotbook *b,
                  const char *job,
                  int64_t now,
                  struct slotbook_held *ret);
/* What leases hold of a pool now: a label, "" = all nodes. The eight amounts of the balance, and
 * the three behind them. */
void slotbook_pool(const struct slotbook *b, const char *label, int64_t ret[SLOTBOOK_SUMS]);
/* Names of the leases; *pos = 0 first, NULL: the end. Borrowed. */
const char *slotbook_job_next(const struct slotbook *b, size_t *pos);
const char *slotbook_node_next(const struct slotbook *b, size_t *pos);
/* What is kept free on this node for a gang, 0 if the book has no such node. */
int64_t slotbook_kept(const struct slotbook *b, const char *node);

/* What a project is guaranteed, or what its jobs wait for in a pool; amount > 0. */
struct slotbook_claim {
    char *pool, *project; /* pool: labels that a node must all have; "" of a guarantee */
    int64_t amount;
};
/* What the book was told by events of this kind, GUARANTEE or WAIT. *pos = 0 first; NULL: the end.
 * Borrowed. */
const struct slotbook_claim *slotbook_claim_next(const struct slotbook *b,
                                                 enum slotbook_kind kind,
                                                 size_t *pos);
/* More than this of one pool and project does not wait at a moment: an interval of it is a small
 * part of 64 bits. What many of them add up to over years may not fit, and is real numbers then. */
#define SLOTBOOK_WAIT_MAX ((int64_t)100000 * SLOTBOOK_GPU)

/* ---- as text ---- */

enum { SLOTBOOK_TEXT_MAX = 64 << 20 };

/* One JSON object. */
void slotbook_event_to_json(const struct slotbook_event *e, struct buf *out);
/* The events, as a JSON array, that make another book what this one is; but for the sums, which
 * have to be taken first. */
void slotbook_save(const struct slotbook *b, struct buf *out);
/* Applies such an array; false: it is none. */
bool slotbook_load(struct slotbook *b, const char *text, size_t len);

/* NULL, or the first broken invariant. */
const char *slotbook_check(const struct slotbook *b);

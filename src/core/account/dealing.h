/* SPDX-License-Identifier: Apache-2.0 */
/* dealing.h - what projects have of each other at a moment: GPUs lent, and waits given.
 *
 * Arithmetic on amounts in 1/10000 of a GPU. The slotbook keeps the state that it is asked about,
 * and sums what comes out over time.
 *
 * GPUs lent. A guarantee is of the whole cluster, as in the scheduler, and so is what is lent. A
 * project borrows what it holds beyond its guarantee, and leaves what it does not hold of it.
 * GPUs that nobody is guaranteed are borrowed first, and nobody lends them; the rest is
 *     lent = borrowed - (held + free - guaranteed, at least 0), at least 0
 * and exactly what of all that is left unused is not free, so that its owner could not have it at
 * once. Borrowers have parts of it in proportion to what they borrow, and lenders lend parts of
 * each of these in proportion to what they leave.
 *
 * Waits given. The GPUs that jobs of a project wait for in a pool are divided among the projects
 * that hold GPUs of the pool, in proportion to what each holds there. Its own part is taken and
 * not given. Where nobody holds anything nobody gives it.
 *
 * Parts are whole units that add up exactly to what is divided; each is off by less than a unit.
 * A project is told of the DEALING_NAMED largest projects by name, of itself, and of the others
 * together: what it has in all is exact however many there are. So with pools: the DEALING_POOLS
 * that are waited for most are divided by themselves, the others as one that has all nodes.
 *
 * The slotbook divides after a change, at the next whole second of its time; until then what was
 * divided before goes on. */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { DEALING_NAMED = 32, DEALING_POOLS = 64 };
#define DEALING_NOBODY ""
#define DEALING_OTHERS "*"

/* What one project has of another one, from the first one's side. */
#define DEALING_SUM_TABLE(X)                                                                       \
    X(LENT, lent)             /* what the other one had of its guarantee */                        \
    X(BORROWED, borrowed)     /* what it had of the other one's, or what is nobody's */            \
    X(WAIT_GIVEN, wait_given) /* the other one's wait while it held GPUs */                        \
    X(WAIT_TAKEN, wait_taken) /* its own wait while the other one, or itself, held GPUs */
#define X(name, word) DEALING_##name,
enum dealing_sum { DEALING_SUM_TABLE(X) DEALING_SUMS };
#undef X

/* The name of a pool: its labels in order, each once, however somebody wrote them. Yours. */
char *dealing_pool(const char *labels);

/* A project at that moment. waits: for GPUs, in all pools; it decides who is named, and no more. */
struct dealing_party {
    const char *name;
    int64_t held, guaranteed, waits;
};

/* Largest first, then by name: the order that the calls below need. */
void dealing_sort(struct dealing_party *v, size_t n);

/* other: a name, DEALING_NOBODY or DEALING_OTHERS. amount > 0. One pair and sum may come more than
 * once, and then is the sum of these. */
typedef void (*dealing_f)(const char *project,
                          const char *other,
                          enum dealing_sum sum,
                          int64_t amount,
                          void *arg);

/* LENT and BORROWED. free: GPUs that jobs could have now, kept ones among them. */
void dealing_lend(const struct dealing_party *v,
                  size_t n,
                  int64_t free_amount,
                  dealing_f f,
                  void *arg);

/* WAIT_GIVEN and WAIT_TAKEN of one pool: v[i] waits for waits[i] there, and holds held[i]. */
void dealing_wait(const struct dealing_party *v,
                  size_t n,
                  const int64_t *waits,
                  const int64_t *held,
                  dealing_f f,
                  void *arg);

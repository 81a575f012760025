/* SPDX-License-Identifier: Apache-2.0 */
/* slotbook_state.h - what the files of the slotbook share; nobody else includes it.
 *
 * A cell sums for one key: the labels of nodes, and of what is leased also project, user and
 * workload. It has rates, which are amounts, and grows by rate × time when it is asked or changed:
 * an event costs what it changes, not what there is. */
#pragma once
#include "base/map.h"
#include "core/account/slotbook.h"

struct slotbook_cell {
    char *key, *labels, *project, *user, *workload;
    int64_t rate[SLOTBOOK_SUMS], sum[SLOTBOOK_SUMS];
    int64_t since;
    size_t refs; /* nodes, parts and closed intervals */
};

struct slotbook_host {
    char *name, *labels;
    int64_t gpus, foreign, clearing, kept, leased;
    enum slotbook_state state;
    bool listed;
    int64_t rate[SLOTBOOK_SUMS]; /* what it adds to its cell */
    struct slotbook_cell *cell;
    struct slotbook_stay *first;
};

/* A part of a lease, on its host. */
struct slotbook_stay {
    struct slotbook_lease *lease;
    struct slotbook_host *host;
    struct slotbook_cell *cell;
    struct slotbook_stay *next; /* of the host */
    int64_t amount, idle, unknown, busy;
};

struct slotbook_lease {
    char *job, *project, *user, *workload;
    struct slotbook_stay *parts;
    size_t n_parts;
    bool redoes; /* its steps are those of an earlier attempt */
    struct slotbook_held rate, sum;
    int64_t since;
};

/* An interval that is over, of one cell. */
struct slotbook_closed {
    struct slotbook_cell *cell;
    int64_t at;
    int64_t sum[SLOTBOOK_SUMS];
};

/* One project with another one. */
struct slotbook_pair {
    char *project, *other;
    int64_t rate[DEALING_SUMS], sum[DEALING_SUMS];
    size_t refs; /* closed intervals */
};

struct slotbook_closed_pair {
    struct slotbook_pair *pair;
    int64_t at;
    int64_t sum[DEALING_SUMS];
};

/* Sums go up to `since`. Rates are made anew when time is about to go on from `due`, so that all
 * that happened until then is looked at once; until then those of before hold. `due` depends on the
 * times of events alone, so that a book that is replayed agrees. */
struct slotbook_deals {
    unsigned char seed[16];
    struct map *guarantees, *waits, *pairs;
    struct slotbook_closed_pair *closed;
    size_t n_closed, cap_closed;
    int64_t since, due; /* due: DEALS_NOT_DUE, or not before the book's `now` */
};
#define DEALS_NOT_DUE INT64_MAX

struct slotbook {
    int64_t now, offset;
    struct map *hosts, *leases, *cells;
    struct slotbook_closed *closed;
    size_t n_closed, cap_closed;
    struct slotbook_deals deals;
};

/* ---- slotbook.c ---- */

/* Time goes on until then, and intervals that end are closed. */
void slotbook_advance(struct slotbook *b, int64_t now);
/* The begin of the interval of this label. */
int64_t slotbook_interval(int64_t label);

/* ---- slotbook_deals.c ---- */

void deals_init(struct slotbook_deals *d, const unsigned char seed[static 16]);
void deals_release(struct slotbook_deals *d);
/* GUARANTEE and WAIT; false: it is so already. */
bool deals_apply(struct slotbook *b, const struct slotbook_event *e);
/* The next whole second of the book's time, now if it is one. */
int64_t deals_next_second(const struct slotbook *b);
/* Something changed: rates are due then, or before if they are due already. */
void deals_change(struct slotbook *b, int64_t due);
/* They are due at the book's `now`, and time is about to go on. */
void deals_settle(struct slotbook *b);
/* The interval that began at this label ends at the book's time `end`. */
void deals_close(struct slotbook *b, int64_t end, int64_t label);
/* Nothing has come about, and nothing does. */
bool deals_are_empty(const struct slotbook *b);
const char *deals_check(const struct slotbook *b);

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
    struct slotbook_held rate, sum;
    int64_t since;
};

/* An interval that is over, of one cell. */
struct slotbook_closed {
    struct slotbook_cell *cell;
    int64_t at;
    int64_t sum[SLOTBOOK_SUMS];
};

struct slotbook {
    int64_t now, offset;
    struct map *hosts, *leases, *cells;
    struct slotbook_closed *closed;
    size_t n_closed, cap_closed;
};

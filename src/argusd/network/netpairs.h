/* SPDX-License-Identifier: Apache-2.0 */
/* netpairs.h - what is known of the network between each two machines: the last figure, and the
 * baseline that the next one is held against. Rows of the store, live in memory. */
#pragma once
#include "base/clock.h"
#include "base/field.h"
#include "core/job/netcheck.h"
#include "store/store.h"

enum { NETPAIRS_MAX = 50000 };

/* Read-only to everybody but netpairs.c. */
struct netpair {
    char *a, *b;
    double mbps, usec;
    double baseline; /* Mbit/s; 0 = none */
    usec_t at, baseline_at;
    char *job, *baseline_job; /* of the check */
};

struct netpairs;

struct netpairs *netpairs_new(struct store *store);
void netpairs_free(struct netpairs *np); /* NULL is fine */
#define NETPAIRS_ENTRY "netpair"
void netpairs_restore(struct netpairs *np, const struct store_entry *row);

/* In no order; NULL at the end. */
const struct netpair *netpairs_next(const struct netpairs *np, size_t *pos);
/* A netcheck_baseline_f; arg is the struct netpairs. */
double netpairs_baseline(const struct netcheck_pair *p, void *arg);

/* The median of the baselines of this machine's pairs; 0 = none has one. */
double netpairs_usual(const struct netpairs *np, const char *node);
/* Another one, for a check at a join: where a pair has no baseline yet, what the one of its two
 * machines usually reaches that reaches less. */
double netpairs_join_baseline(const struct netcheck_pair *p, void *arg);

enum netpairs_flags {
    NETPAIRS_FIRST = 1 << 0, /* what was measured is the baseline where there is none */
    NETPAIRS_ANEW = 1 << 1,  /* and where there is one */
};
/* What a check has measured. A pair that is one too many is left out, false then. */
bool netpairs_take(struct netpairs *np,
                   const struct netcheck_pair *p,
                   const char *job,
                   unsigned flags,
                   usec_t now);

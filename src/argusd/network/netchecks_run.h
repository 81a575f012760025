/* SPDX-License-Identifier: Apache-2.0 */
/* netchecks_run.h - what netchecks.c and netchecks_settle.c share. */
#pragma once
#include "argusd/network/netchecks.h"

struct netchecks {
    struct netchecks_parts p;
    struct netpairs *pairs;
    struct netcheck **v; /* n of them, the newest first */
    size_t n;
    uv_timer_t timer;
    bool has_timer, closed;
    usec_t join_after; /* monotonic: a check at a join was refused, and is not asked for before */
};

/* netjoins.c: begin what is due, and tell machines that wait what came of this check. */
void netjoins_turn(struct netchecks *nc);
void netjoins_tell(struct netchecks *nc, const struct netcheck *k);
/* Ray has it, and it is no head: the registry may still keep jobs off. */
bool netchecks_takes_jobs(const struct cluster_node *k);
/* This machine is of a check that runs. */
bool netchecks_has_node(const struct netchecks *nc, const char *node);

void netchecks_save(struct netchecks *nc, const struct netcheck *k);
/* The check is over: fewer machines are in its pool, and an old one may go. */
void netchecks_over(struct netchecks *nc, struct netcheck *k);
/* <root>/jobs/<id>/netcheck.json below the shared root; heap. */
char *netchecks_result(const char *job);
/* Look at all that run. */
void netchecks_turn(struct netchecks *nc);

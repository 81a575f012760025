/* SPDX-License-Identifier: Apache-2.0 */
/* netchecks.h - checks of the network between machines: asked for, run as a job, judged.
 *
 * See README.md. A check has the id of its job. Rows of the store: what runs goes on after a
 * restart, and of those that are over the newest NETCHECKS_KEPT stay. */
#pragma once
#include <uv.h>

#include "argusd/ground/cluster.h"
#include "argusd/ground/events.h"
#include "argusd/imports/importer.h"
#include "argusd/machines/nodes.h"
#include "argusd/network/netpairs.h"
#include "http/http.h"

enum {
    NETCHECKS_KEPT = 20,
    NETCHECKS_RUNNING_MAX = 8,
    NETCHECKS_TROUBLES_MAX = 16, /* of one check that are named */
};

enum netcheck_state { NETCHECK_RUNNING, NETCHECK_PASSED, NETCHECK_FAILED };
extern const char *const netcheck_state_words[]; /* "running" "passed" "failed", NULL */

struct netcheck_said { /* a message */
    char *code, *text;
};

/* Read-only to everybody but netchecks*.c. */
struct netcheck {
    char *job, *user;
    struct strv nodes;
    enum netcheck_state state;
    bool anew; /* it sets the baseline anew */
    bool join; /* nobody asked for it: a machine of its nodes has joined */
    usec_t asked_at, ended_at;
    char *backend;              /* NULL: it is not known yet */
    struct field_list sizes;    /* struct netcheck_size */
    struct field_list troubles; /* struct netcheck_said */
    int64_t n_troubles;         /* with those that are not named */
    bool busy;                  /* its end is looked up or read */
};

struct netchecks;

struct netchecks_parts { /* all borrowed */
    uv_loop_t *loop;
    const struct settings *settings;
    struct store *store;
    struct events *events;
    struct cluster *cluster;
    struct jobs *jobs;
    struct nodes *nodes;
    const struct importer *importer;
};

struct netchecks *netchecks_new(const struct netchecks_parts *parts);
#define NETCHECKS_ENTRY "netcheck"
void netchecks_restore(struct netchecks *nc, const struct store_entry *row);
void netchecks_start(struct netchecks *nc);
void netchecks_close(struct netchecks *nc); /* NULL is fine */
void netchecks_free(struct netchecks *nc);  /* once the loop has run dry */

/* What is asked for. Neither nodes nor pool: all machines that take jobs. */
struct netchecks_order {
    struct strv nodes;
    const char *pool;   /* NULL = none */
    const char *python; /* that runs it on the machines; NULL = python3 */
    bool anew, join;
};
/* The check runs; *ret is borrowed. ERR_NOT_FOUND, ERR_BAD_REQUEST (fewer than two or too many),
 * ERR_CONFLICT (a machine is away), ERR_BUSY, or what a submit says. */
must_check int netchecks_begin(struct netchecks *nc,
                               const struct http_principal *p,
                               const struct netchecks_order *o,
                               const struct netcheck **ret,
                               const char **ret_field,
                               struct err *err);

/* The newest first; NULL at the end. */
const struct netcheck *netchecks_next(const struct netchecks *nc, size_t *pos);
const struct netpairs *netchecks_pairs(const struct netchecks *nc);
/* The pools that this machine is in for the checks that run there, comma-separated. Heap; NULL:
 * none. nc may be NULL. */
char *netchecks_pools(const struct netchecks *nc, const char *node);

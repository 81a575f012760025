/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_cache.h - a model on the own disks of all nodes of a lease, before a job starts there.
 *
 * One command line names the model for all nodes: so it is read from their caches only if each of
 * them has it in the same place, and else from the shared root, as ever. ssh/modelcache.h has what
 * happens on one of them. */
#pragma once
#include "argusd/machines/nodes.h"

/* Borrowed for the call. */
struct nodes_cache_answer {
    const char *path; /* where it is on each node; NULL: not on all of them */
    const char *how;  /* of each node, for people: "h2 hit 0.1 s, h3 miss 6.3 s" */
};
typedef void (*nodes_cache_f)(const struct nodes_cache_answer *a, void *arg);

/* Borrowed for the call. */
struct nodes_cache_want {
    const char *job;
    const struct gang *gang;
    const char *path, *hash; /* of the model on the shared root; in hex, as the registry has it */
};

struct nodes_cache;
/* NULL: nothing is asked, since not all of these nodes have the same cache; *ret_how is then why,
 * yours, or NULL where none of them has one. Otherwise one callback, from the loop and never from
 * inside of this call; then the handle is gone. */
struct nodes_cache *nodes_cache_ask(const struct nodes *ns,
                                    const struct nodes_cache_want *want,
                                    nodes_cache_f cb,
                                    void *arg,
                                    char **ret_how);
void nodes_cache_free(struct nodes_cache *c); /* the callback never comes; NULL is fine */

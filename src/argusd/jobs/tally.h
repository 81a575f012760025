/* SPDX-License-Identifier: Apache-2.0 */
/* tally.h - what each of Ray's jobs holds on which node, added up from Ray's lists.
 *
 * GPUs are held by placement groups (by their bundles, used or not) and by actors outside of
 * any group. What has no place yet is counted as waiting. No I/O. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "ray/reply.h"

struct tally_place {
    char *node; /* our name */
    double gpus;
    int actors, bundles; /* actors with and without GPUs; bundles with GPUs */
    char what[120];      /* the first of those that hold GPUs: "actor Worker (pid 7)" */
    char guest[80];      /* the first actor of any kind, for a node where none may be */
};

struct tally_owner {
    char *job_id; /* Ray's hexadecimal id of the driver; "" = not told */
    struct tally_place *places;
    size_t n;
    double waiting_gpus;
};

struct tally {
    struct tally_owner *v;
    size_t n;
};

/* The node's name by Ray's id of it; NULL = not known. Borrowed. */
typedef const char *(*tally_name_f)(const char *node_id, void *arg);

void tally_add(struct tally *t,
               const struct ray_actors *actors,
               const struct ray_groups *groups,
               tally_name_f name,
               void *arg);
void tally_release(struct tally *t);
/* All that `from` has, to `to`. */
void tally_merge(struct tally_owner *to, const struct tally_owner *from);
void tally_owner_release(struct tally_owner *o);

/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_slots.h - the GPUs of a machine one by one, for its row in the list: who holds each, and
 * what it does now.
 *
 * What is held outside of leases (by others, or kept after a failure) is known by number alone: it
 * is told of the last GPUs that nobody leases. */
#pragma once
#include <stdbool.h>

#include "base/field.h"

struct nodes;

/* What one job holds of a machine. */
struct node_lease_page {
    const char *job; /* NULL: one that these eyes do not see */
    uint64_t gpus;   /* bit n: GPU n, wholly or a share of it */
    double amount;
};

struct nodes_slots_of {
    const char *node;
    double total, foreign, held; /* GPUs; held: those of others, too */
    bool usable, draining, is_head;
    const struct node_lease_page *leases;
    size_t n;
};
/* The slots of a node as rows of nodes_slot_table; nodes_slots_release() them. */
void nodes_slots_list(const struct nodes *ns,
                      const struct nodes_slots_of *of,
                      struct field_list *ret);
void nodes_slots_release(struct field_list *slots);

/* SPDX-License-Identifier: Apache-2.0 */
/* inventory.h - is an address that Ray tells of a node one that somebody else vouches for? Pure.
 *
 * Whoever has Ray's token can start a raylet that says it is at the address of any machine, or is
 * the head. So Ray's word alone sends argusd nowhere: the address is the one that the registry has
 * for the node of that name, the one that argus.yaml has for the head, or in a network that
 * argus.yaml lists for nodes which nobody registered. */
#pragma once
#include <stdbool.h>

#include "base/strv.h"

enum { INVENTORY_HOST_MAX = 256 };

struct inventory {                /* all borrowed */
    const struct strv *networks;  /* ray.networks of argus.yaml */
    const char *head_host;        /* of argus.yaml; NULL: not given */
    const char *ray_address;      /* URL of Ray's dashboard, on the head */
    const struct strv *addresses; /* of this machine */
};

/* Is Ray's dashboard on this machine, as its URL says it? */
bool inventory_is_here(const char *ray_address);
/* registered: the address that the registry has for the node, "" while it knows none; NULL: nobody
 * registered it. */
bool inventory_has(const struct inventory *iv,
                   const char *registered,
                   bool is_head,
                   const char *address);

/* SPDX-License-Identifier: Apache-2.0 */
/* netpairs_view.h - pairs of machines as pages. */
#pragma once
#include "argusd/network/netpairs.h"
#include "base/json.h"

/* A pair, and the same seen from one of the two: the other one is `node` there. */
extern const struct field_table netpair_page_table, netpair_peer_table;

void netpair_put(const struct netpair *p, struct jout *j, const char *key);
/* What a machine reaches with the others: a JSON list, heap. */
char *netpairs_peers(const struct netpairs *np, const char *node);

/* SPDX-License-Identifier: Apache-2.0 */
/* alert_cause.h - what may be the cause of what: the one table of it. A subject suspects those
 * subjects; whose alert joins whose incident follows from that (alert_table.h). Pure. */
#pragma once
#include <stdbool.h>

#include "base/strv.h"
#include "core/alert/alert_rule.h"

/* Where a subject is. All borrowed. */
struct alert_where {
    const char *cluster;
    const struct strv *nodes; /* that a job was leased; NULL: none */
    const char *node;         /* of a GPU; NULL */
    bool misses_root;         /* a node's trouble is the root, as it sees it */
};
#define ALERT_ROOT_NAME "shared" /* the one root there is */

/* Adds "node/w1", "root/shared" …, the nearest first. */
void alert_suspects(enum alert_of of, const struct alert_where *where, struct strv *ret);

/* SPDX-License-Identifier: Apache-2.0 */
/* node_slow.h - in which jobs of the last days a rank was slow on a node. A job may have its own
 * reasons; a machine on which several have been slow is slow. Pure. */
#pragma once
#include <stdbool.h>

#include "base/clock.h"

enum {
    NODE_SLOW_JOBS = 8, /* the newest are kept */
    NODE_SLOW_MAX = NODE_SLOW_JOBS * 40,
};
#define NODE_SLOW_DAYS (7 * USEC_DAY) /* older ones count no more */
#define NODE_SLOW_LEAST                                                                            \
    2 /* jobs: then it is the node, as rule node_slow has it, and is used last */

/* The book, as it is stored in the node's row: "<hash of the job>@<seconds>" by blanks, the newest
 * last. What cannot be read of it is left out. */

/* False: the job was in it within the last hour, and it is as it was. */
bool node_slow_note(char book[static NODE_SLOW_MAX], const char *job, usec_t now);
/* So many jobs. */
int node_slow_count(const char *book, usec_t now);

/* SPDX-License-Identifier: Apache-2.0 */
/* node_slow.h - in which jobs of the last days a rank was slow on a node, and whose they were. A
 * job may have its own reasons, and a job writes itself what its ranks tell: so jobs of one user,
 * however many, do not make a node slow for the others. Pure. */
#pragma once
#include <stdbool.h>

#include "base/clock.h"

enum {
    NODE_SLOW_JOBS = 8, /* that are kept */
    NODE_SLOW_MAX = NODE_SLOW_JOBS * 56,
};
#define NODE_SLOW_DAYS (7 * USEC_DAY) /* older ones count no more */
#define NODE_SLOW_LEAST 2             /* users: from then on the node is used last */

/* The book, as it is stored in the node's row: "<hash of the job>@<seconds>@<hash of its user>" by
 * blanks, the newest last. What cannot be read of it is left out. Where the user is missing, as an
 * older Argus wrote it, the job is of one unknown user. */

/* Where there are too many the oldest goes, of who has most: nobody's jobs take those of others
 * away. False: the job was in it within the last hour, and it is as it was. */
bool node_slow_note(char book[static NODE_SLOW_MAX], const char *job, const char *user, usec_t now);
/* So many jobs, of so many users. */
int node_slow_count(const char *book, usec_t now, int *ret_users);
/* Whether the node is used last: the jobs are of NODE_SLOW_LEAST users. */
bool node_slow_is(const char *book, usec_t now);

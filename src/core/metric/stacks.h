/* SPDX-License-Identifier: Apache-2.0 */
/* stacks.h - where the processes of a job stand, from the answers of its nodes, and which of
 * them stands elsewhere than the others.
 *
 * Two samples are taken some seconds apart: a process whose stacks differ moves. Ranks are
 * grouped by the place of their Python stack: the collective that they are in, else the
 * innermost frame outside of the standard library; line numbers do not count. Odd is a stopped
 * process, then the smallest group that is not in a collective while the others are, then the
 * only process at work, then the smallest group. Where several processes qualify, none is named.
 * Pure; answers are outside bytes and are read with ceilings. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"

enum {
    STACKS_PROCESSES_MAX = 4096, /* of one sample */
    STACKS_NAME_MAX = 64,        /* bytes of a rank, an actor, a node as it is told */
    STACKS_PLACE_MAX = 120,
    STACKS_TEXT_MAX = 800,
};

struct stacks; /* one sample */

struct stacks *stacks_new(void);
void stacks_free(struct stacks *s); /* NULL is fine */
/* The answer of one node: an array as shepherd/scout/stacks.h says it. How many processes were
 * taken; what has another form is left out. */
size_t stacks_add(struct stacks *s, const char *node, const json_t *answer);

struct stacks_verdict {
    size_t processes; /* that answered in both samples */
    size_t moved;     /* of these, processes that moved */
    size_t unclear;   /* others that compute, or spin: their stacks could not be read */
    bool has_odd;
    bool is_stopped; /* the odd one was stopped by a signal or a tracer: it will not go on */
    char rank[STACKS_NAME_MAX], actor[STACKS_NAME_MAX], node[STACKS_NAME_MAX]; /* of the odd one */
    int64_t pid;
    char place[STACKS_PLACE_MAX]; /* "all_reduce (torch/distributed/distributed_c10d.py)", "" */
    char text[STACKS_TEXT_MAX];   /* arguments of the message "stacks"; "" when nothing is known */
};
void stacks_judge(const struct stacks *first,
                  const struct stacks *second,
                  struct stacks_verdict *ret);

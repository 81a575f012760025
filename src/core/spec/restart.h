/* SPDX-License-Identifier: Apache-2.0 */
/* restart.h - when a job goes back to the queue by itself, and how often it did.
 *
 * A spec's `restart` says how often (max, 0 if it says nothing), after which classes of
 * failure (on), after which pause (backoff), and whether nodes that failed the job are
 * avoided (avoid_failed_nodes). The next attempt goes on from the job's own checkpoints.
 *
 * A job may be preempted (its slots taken back for a quota, its node drained) when its
 * spec wants restarts and it has something to go on from: restart.max > 0, and for
 * training neither `resume: never` nor `checkpoint: none`. A preemption is no failure and
 * is not counted against max. Pure. */
#pragma once
#include <stdbool.h>

#include "base/buf.h"
#include "base/clock.h"
#include "core/spec/finding_class.h"
#include "core/spec/spec.h"

/* What `restart.on` names: classes, and exit codes as "exit:75". Zeroed: nothing. */
struct restart_on {
    uint64_t classes;  /* bit c: enum finding_class c */
    uint64_t codes[4]; /* bit n: exit code n */
    char *foreign;     /* words of a newer Argus, comma-separated: never acted on, and kept for the
                          store; NULL = none */
};

struct restart {
    int max;
    struct restart_on on;
    usec_t backoff;
    bool avoid, preemptible;

    int failures, preemptions; /* that were followed by another attempt */
    int given_up;              /* attempts in a row that never ran */
    usec_t pause;              /* of the backoff that it waits for now */
    char *bad_nodes;           /* comma-separated, the newest first; NULL = none */
};

void restart_from_spec(const struct spec *spec, struct restart *ret);
void restart_release(struct restart *r);

/* One word of restart.on; false: it is neither a class that may be named there nor an exit code. */
bool restart_on_add(struct restart_on *on, const char *word);
bool restart_on_has(const struct restart_on *on, enum finding_class c);
/* "node_lost,infra,exit:75", as it is stored, and back: there every word is taken, see foreign. */
void restart_on_to_text(const struct restart_on *on, struct buf *out);
void restart_on_from_text(const char *text, struct restart_on *ret);

/* After a failure of this class (FINDING_NONE = not known) another attempt is due. `infra` stands
 * for the classes that it covers, and for the loss of Ray's head whatever the class is. */
bool restart_is_due(const struct restart *r, enum finding_class class, bool head_lost);
/* The same by the exit code with which the command ended, whatever the class: `exit:75`. */
bool restart_is_due_by_code(const struct restart *r, int code);
/* The code of such a word, 1 to 255; 0: it is none. */
int restart_code_of(const char *word);
/* Another attempt follows this failure, not on this node (NULL, "" = not known). */
void restart_note_failure(struct restart *r, const char *node);

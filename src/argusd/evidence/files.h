/* SPDX-License-Identifier: Apache-2.0 */
/* files.h - one round of reading the shepherds' files, in the worker pool.
 *
 * A round that hangs (a dead NFS server) hurts nobody but the next round: who
 * waits for it sees that no news came, which is what it means to be blind. */
#pragma once
#include <uv.h>

#include "base/clock.h"
#include "fsroot/attempt/witness.h"

struct files_look {
    char *id; /* of the job */
    int k;
    struct fsroot_beat beat;
    struct fsroot_exit exit;
    struct timespec proof_mtime; /* in: of proof/ when it was last read; out: now */
    bool proof_is_settled;       /* in and out: nothing changed between two looks */
    char *imports;               /* out: proof_summary(), NULL where nothing is new; take it */
    bool want_step;              /* in: has its log told of a step of training? */
    bool trains;                 /* out: it has */
};

/* looks (n of them, ids too) are taken. done gets them back filled, on the loop, borrowed. */
typedef void (*files_f)(struct files_look *looks, size_t n, void *arg);
void files_start(uv_loop_t *loop,
                 const char *root,
                 struct files_look *taken,
                 size_t n,
                 files_f done,
                 void *arg);

/* SPDX-License-Identifier: Apache-2.0 */
/* sight.h - what the watcher has seen of a job's newest attempt from outside.
 *
 * It is forgotten at a restart, on purpose: a silence is measured only while we listen. Times are
 * monotonic. All of room watch reads it. */
#pragma once
#include "argusd/jobs/jobs.h"
#include "core/job/witness.h"

struct sight {
    int k; /* the attempt that it is about */
    enum witness_ray ray;
    usec_t ray_since;
    bool saw_exit; /* Ray's own process beside the shepherd saw it end: that node lived then */
    enum witness_files files;
    usec_t files_since;
    uint64_t beat_seq;
    uint64_t log_bytes; /* of its output, by the last beat */
    usec_t beat_at;     /* when the beat last changed under our eyes, or could be read again */
    bool is_unwatched;  /* Ray has no supervisor of it, asked since that change */
    usec_t was_blind;   /* how long the root was away since; 0: not, or the beat has changed */
    struct timespec proof_mtime; /* of proof/ when it was last read, see files.h */
    bool proof_is_settled;
    bool all_proven;     /* every node of the gang has a proof */
    bool silence_told;   /* one has none and it trains */
    const char *silence; /* rule of what was found while nobody saw it, see silence.h; a literal */
};

/* All zero before anything was seen of the newest attempt. Borrowed until sight_change(). */
const struct sight *sight_of(const struct live *l);
/* The same, to be changed; nothing that was seen of an older attempt is left in it. */
struct sight *sight_change(struct live *l);

/* SPDX-License-Identifier: Apache-2.0 */
/* witness.h - what may be believed of a job that runs somewhere else.
 *
 * Two witnesses: Ray's job record, and the shepherd's files on the shared root.
 * A job is over when the exit file says so, or when both agree that nothing is
 * there; otherwise, and whenever one of them cannot be heard for long, it is
 * UNKNOWN and nothing is done to it. One that was told to stop is held for over, too,
 * when for WITNESS_FORLORN Ray cannot be asked and its shepherd is silent on a root that
 * can be read: should it still be there, it reads the stop when it sees the root again.
 * A beat proves nothing while the root is away, nor at once when it is back: the shepherd's machine
 * may find the root again later than ours, by as much as the root was away. Its silence is counted
 * from when we can read again, and has to last as long as the blindness did.
 * Ray says that a job runs from before its runner starts anything: it has started when its shepherd
 * was seen at work, and until then the deadline of its start holds. It also says so for ever where
 * it missed the death of its own supervisor: that one is asked for once the beat has stopped. A
 * head that is gone (not merely silent) took its record of the job along: that is told at once, and
 * a beat that has stopped is the second word. Pure. */
#pragma once
#include <stdbool.h>

#include "base/clock.h"

enum witness_ray {
    WITNESS_RAY_BLIND, /* no usable answer */
    WITNESS_RAY_PENDING,
    WITNESS_RAY_RUNNING,
    WITNESS_RAY_OVER,   /* a terminal record */
    WITNESS_RAY_ABSENT, /* Ray says that there is no such job */
    WITNESS_RAY_GONE,   /* its head was looked for on its machine, and is not there any more */
};

enum witness_files {
    WITNESS_FILES_BLIND, /* the shared root cannot be read */
    WITNESS_FILES_NONE,  /* readable, and no shepherd ever wrote there */
    WITNESS_FILES_BEAT,  /* a beat, no exit */
    WITNESS_FILES_EXIT,  /* the exit file is there */
};

struct witness {
    enum witness_ray ray;
    usec_t ray_for; /* how long Ray has been saying that */
    enum witness_files files;
    usec_t files_for;  /* how long the files have been like that */
    usec_t beat_age;   /* since we last saw the beat change, or could read it again */
    usec_t was_blind;  /* how long the root was away before; 0 once the beat changed again */
    bool was_running;  /* a witness saw it run before */
    bool was_accepted; /* Ray had it once */
    bool is_stopping;  /* it was told to, by Ray and by its file */
    bool is_unwatched; /* Ray was asked while this beat stood still: no supervisor of it is alive */
};

enum witness_verdict {
    WITNESS_WAIT,    /* nothing new */
    WITNESS_STARTED, /* it runs: its shepherd was seen at work */
    WITNESS_EXITED,  /* read the exit file */
    WITNESS_LOST,    /* it is gone without an exit file, both say so */
    WITNESS_NEVER,   /* Ray does not have it and it never ran: the id may be sent again */
    WITNESS_UNKNOWN, /* nobody can tell */
};

/* A beat is written every 5 s; six missed ones are silence. */
#define WITNESS_BEAT_STALE (30 * USEC_SEC)
/* A machine tries a root that was away for long at least once in so long. */
#define WITNESS_ROOT_RETRY (5 * USEC_MIN)
/* File attributes may be cached by NFS for about this long. */
#define WITNESS_SETTLE (10 * USEC_SEC)
/* Blindness and contradictions longer than this are told. */
#define WITNESS_PATIENCE (45 * USEC_SEC)

/* Silence of both witnesses that lasts so long ends what was told to stop. */
#define WITNESS_FORLORN (15 * USEC_MIN)

enum witness_verdict witness_judge(const struct witness *w);

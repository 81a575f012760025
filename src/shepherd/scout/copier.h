/* SPDX-License-Identifier: Apache-2.0 */
/* copier.h - brings the logs of a job's workers on this node onto the shared root as they grow.
 *
 * Ray writes worker-<worker id>-<job id>-<pid>.{out,err} into its session's directory on the
 * node's own disk. Each turn copies what is new of ours, through the veil, to files of the same
 * names: those of processes that the hook has marked, and of all others of a job id that one of
 * these has, but for the id of Ray's own supervisors, which all jobs share. What cannot be written
 * is tried again at the next turn: the source stays where it is, so a shared root that is away
 * loses nothing.
 *
 * A log that grows past COPIER_FIRST goes on in segments `<name>.<offset>`, the newest
 * COPIER_KEPT of which stay; who writes faster than is copied loses the middle. The offset is that
 * of its first byte in all that was written, so a segment that begins where the one before ends
 * lost nothing. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/strv.h"
#include "shepherd/host/veil.h"

enum {
    COPIER_FIRST = 16 << 20, /* of one log, its beginning */
    COPIER_NEXT = 8 << 20,   /* of each segment after it */
    COPIER_KEPT = 2,
    COPIER_SMALL = 64 << 10,   /* in the place of all three once a node's room is used up */
    COPIER_FILES_MAX = 4096,   /* of one attempt on one node; the rest is counted */
    COPIER_TURN_MAX = 32 << 20 /* bytes that one turn copies */
};
#define COPIER_ROOM ((uint64_t)1 << 30) /* of one attempt on one node */

struct copier_file {
    char *name;      /* Ray's */
    char worker[64]; /* Ray's id of the worker */
    char job[16];
    pid_t pid;
    char *actor;        /* its class, once the log says so; NULL */
    char *rank;         /* NULL: not known */
    bool has_said_rank; /* what its process has said, or it has none */

    uint64_t read;              /* bytes of the source that are done */
    uint64_t at;                /* bytes of the copy, as if nothing had been dropped */
    uint64_t begin;             /* of the segment that is written to */
    uint64_t left[COPIER_KEPT]; /* segments behind it that are still there; 0: none */
    uint64_t stored;            /* bytes of this log on the shared root */
    uint64_t removed; /* bytes removed from the shared root again, together with their segments */
    bool is_cut;      /* what is behind `begin` is gone, and its segment has yet to say so */
    bool is_begun;
    bool is_foreign; /* a supervisor of Ray: never copied */
};

struct copier {
    char *from, *to;   /* directories; `to` is made when first needed */
    struct veil *veil; /* borrowed; NULL: nothing is secret */
    struct peek *peek; /* the same process's memory; NULL: ranks are not looked up */
    struct strv marks; /* "<job id>-<pid>" of the hook's processes */
    struct strv jobs;  /* Ray's ids of the job, in hex, once they are certain */
    struct copier_file *v;
    size_t n, cap;
    size_t left_out; /* files beyond COPIER_FILES_MAX */
    uint64_t stored;
    uint64_t first, next, room; /* the ceilings above */
    uint64_t seen;              /* of the directory, when it was last listed */
    bool is_named;              /* what is known of the workers is written */
    char trouble[256];          /* why the last write failed; "" */
};

void copier_init(struct copier *c,
                 const char *from,
                 const char *to,
                 struct veil *veil,
                 struct peek *peek);
void copier_release(struct copier *c);
/* "<job id in hex>-<pid>": a Ray process of the job. A malformed or known mark has no effect. */
void copier_mark(struct copier *c, const char *mark);

/* Removes the later segments of logs that an earlier copier of this node left: these logs are
 * copied again from the beginning. */
void copier_start_over(struct copier *c);

/* Copies what is new, COPIER_TURN_MAX bytes at most. True: there is more. last: nothing will
 * follow, so what the veil keeps back is decided too. */
bool copier_turn(struct copier *c, bool last);

/* "worker-<id>-<job>-<pid>.out" or .err into f (name, worker, job, pid); false: another file. */
bool copier_parse(const char *name, struct copier_file *f);

/* SPDX-License-Identifier: Apache-2.0 */
/* bookround.h - the books of running jobs are read in the worker pool: a reader for each job, a few
 * at once, the one that has waited longest next. Who keeps which books says what is read. */
#pragma once
#include <uv.h>

#include "argusd/ground/cluster.h"
#include "argusd/jobs/jobs.h"

struct bookround;

/* The first member of whoever's reader. With its worker while `busy`, and with nobody else. */
struct bookreader {
    struct bookreader *next;
    struct bookround *round;
    char *id;     /* of its job */
    int k;        /* the attempt that is read, or was last */
    usec_t after; /* mono: it is due */
    bool busy;
};

struct bookround_parts { /* borrowed, but for the words of the kind */
    uv_loop_t *loop;
    const struct cluster *cluster;
    const struct jobs *jobs;
    void *arg; /* bookreader_arg() */

    size_t size; /* of a reader; what follows its first member is zeroed */
    int most;    /* jobs at once: a slow root must not take all workers */
    usec_t every;
    bool (*wants)(const struct live *l);                       /* of a job that is in Ray */
    void (*begin)(struct bookreader *r, const struct live *l); /* before a pass; may be NULL */
    void (*read)(struct bookreader *r);                        /* on a worker thread */
    /* On the loop, after each pass. l: NULL when this attempt is no longer the job's. */
    void (*done)(struct bookreader *r, struct live *l);
    void (*release)(struct bookreader *r); /* what is in it, not itself */
};

struct bookround *bookround_new(const struct bookround_parts *parts);
void bookround_start(struct bookround *b);
void bookround_close(struct bookround *b); /* nothing is begun any more; NULL is fine */
void bookround_free(struct bookround *b);  /* once the loop has run dry; NULL is fine */
void *bookreader_arg(const struct bookreader *r);

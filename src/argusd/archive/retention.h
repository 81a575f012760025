/* SPDX-License-Identifier: Apache-2.0 */
/* retention.h - jobs that ended longer ago than their project's `retention` are archived by
 * themselves.
 *
 * The store's jobs are walked page by page, each project that has a retention after the other; a
 * round that found no more is followed by a pause. Nothing is kept: what was done is in the table
 * of archives. A job that has checkpoints stays where it is, unless its project says
 * `retention_checkpoints`; so does what somebody needs, one that was brought back for as long
 * again, and one whose packing failed until argusd starts anew. */
#pragma once
#include <uv.h>

#include "argusd/archive/archives.h"
#include "argusd/people/people.h"

struct retention;

struct retention_parts { /* all borrowed */
    uv_loop_t *loop;
    struct store *store;
    struct events *events;
    const struct cluster *cluster;
    const struct people *people;
    struct archives *archives;
    bool (*has_checkpoints)(const char *job, void *arg);
    void *arg;
};

struct retention *retention_new(const struct retention_parts *parts);
void retention_start(struct retention *rt);
void retention_close(struct retention *rt); /* NULL is fine */
void retention_free(struct retention *rt);  /* once the loop has run dry */

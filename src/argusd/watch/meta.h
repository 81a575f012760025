/* SPDX-License-Identifier: Apache-2.0 */
/* meta.h - keeps meta.json of each job's directory equal to the job, in the worker
 * pool, one write per job at a time, the newest last.
 *
 * The last one, of the end, is owed by a row of the store from the end's own batch until it is
 * written: also after a crash, and when the shared root was away. */
#pragma once
#include <uv.h>

#include "argusd/ground/cluster.h"
#include "argusd/ground/settings.h"
#include "argusd/jobs/jobs.h"
#include "argusd/people/secrets.h"

struct metas;

struct metas_parts { /* all borrowed */
    uv_loop_t *loop;
    const struct settings *settings;
    struct store *store;
    struct cluster *cluster;
    struct jobs *jobs;
    struct secrets *secrets;
    /* The job as its page shows it. l: NULL when it is not in memory any more. */
    void (*view)(struct jout *j,
                 const struct settings *s,
                 const struct job *job,
                 const struct record_extra *extra,
                 struct live *l);
};
/* Something of a job that is over is still to be written. */
bool metas_is_owed(const struct metas *ms, const char *job);
struct metas *metas_new(const struct metas_parts *parts);
void metas_start(struct metas *ms);
void metas_close(struct metas *ms); /* nothing is begun any more; NULL is fine */
void metas_free(struct metas *ms);  /* after the loop has run dry; NULL is fine */

/* A row of the store at start, of this kind; one that cannot be read is left out. */
#define METAS_ENTRY "meta_owed"
void metas_restore(struct metas *ms, const struct store_entry *row);
/* This job ends with the open batch: the row of what is owed goes with it. */
void metas_owe(struct store *store, const struct job *job);

/* What is told of a job that is over was completed: its last file is owed again. Within the turn of
 * the loop that completes its row. */
void metas_amend(struct metas *ms, const struct job *job);

/* The job changed: write it, or once more after the write that is under way. */
void metas_write(struct metas *ms, struct live *l);

/* SPDX-License-Identifier: Apache-2.0 */
/* drytrial.h - the trial of a spec that is only asked about (--dry-run).
 *
 * The same question as a job's trial, with the same cache of passed ones; but nothing is queued,
 * what it writes lies in argus/trials/<id>/ and goes when it ends, and it is not waited for
 * longer than DRYTRIAL_WAIT. Of Ray's record the watcher takes care once it is over. */
#pragma once
#include "argusd/ground/idset.h"
#include "argusd/launch/trialplan.h"

enum { DRYTRIALS_AT_ONCE = 8 };
#define DRYTRIAL_WAIT (50 * USEC_SEC)

struct drytrials;
struct drytrial;

struct drytrials_parts { /* all borrowed */
    uv_loop_t *loop;
    struct cluster *cluster;
    const struct nodes *nodes;
    struct secrets *secrets;
    struct ray_client *ray;
    struct idset *used;   /* ids of jobs and dry runs */
    const char *instance; /* our mark on Ray's records */
};
struct drytrials *drytrials_new(const struct drytrials_parts *parts);
/* Before the loop runs dry; no callback comes from then on. NULL is fine, here and below. */
void drytrials_close(struct drytrials *ds);
void drytrials_free(struct drytrials *ds); /* once it has */

/* result NULL: it has not run, and why says so. Borrowed for the call. */
typedef void (*drytrial_f)(const struct trial_result *result, const struct reason *why, void *arg);

/* Begins the trial of this job, in its pool, where its code finds what it needs (core/job/needs.h;
 * NULL: nothing), with the inputs and snapshots of its plan. cb comes later, once, unless it is
 * forgotten. NULL: one of this user or DRYTRIALS_AT_ONCE run already, or argusd stops: then
 * *ret_why is the code of a message without arguments that says so. */
struct drytrial *drytrial_begin(struct drytrials *ds,
                                const struct job *job,
                                const struct launchplan *plan,
                                const char *needs,
                                drytrial_f cb,
                                void *arg,
                                const char **ret_why);
void drytrial_forget(struct drytrial *d);
/* One of an argusd that is over: the id is of a dry run, and of none that is under way. */
bool drytrials_is_stray(const struct drytrials *ds, const char *id);
/* The id in Ray of one that is under way. */
bool drytrials_know(const struct drytrials *ds, const char *ray_id);

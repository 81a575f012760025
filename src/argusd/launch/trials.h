/* SPDX-License-Identifier: Apache-2.0 */
/* trials.h - runs the trials of jobs that wait: one short Ray submission each, on a worker of the
 * job's pool, with one CPU and no GPU; core/job/job.h says what follows from its end.
 *
 * The id follows from the job's row, which is on disk before anything is sent; Ray refuses a
 * second one of the same id, and the result is a file that bears the hash of the question.
 * So a restart asks Ray and the file, and goes on. */
#pragma once
#include <uv.h>

#include "argusd/ground/cluster.h"
#include "argusd/ground/settings.h"
#include "argusd/jobs/jobs.h"
#include "argusd/machines/nodes.h"
#include "argusd/people/secrets.h"
#include "core/finding/finding.h"
#include "ray/ray.h"

struct trials;

struct trials_parts { /* all borrowed */
    uv_loop_t *loop;
    const struct settings *settings;
    struct cluster *cluster;
    struct nodes *nodes;
    struct secrets *secrets;
    struct ray_client *ray;
    const char *instance;
    /* l fails by its trial: whoever is told ends it, once, and its trial is not asked again. found
     * is borrowed for the call, message and text are why, as in struct job_event. left: the trial
     * came to an end in the job's directory; else argusd refused to ask it, and the directory may
     * be another's. */
    void (*failed)(struct live *l,
                   const struct finding *found,
                   const char *message,
                   const char *text,
                   bool left,
                   void *arg);
    void *arg;
};

struct trials *trials_new(const struct trials_parts *parts);
/* Nothing is sent any more; answers are still taken. NULL is fine. */
void trials_close(struct trials *t);
void trials_free(struct trials *t); /* once the loop has run dry */

/* l owes JOB_ACT_TRY, and its row is on disk: it begins if there is a place for it. */
void trials_act(struct trials *t, struct live *l);
/* Each second: those under way go on, and others begin in the places that are free. */
void trials_tick(struct trials *t, const struct jobs *jobs);
/* l was over before its trial: whatever of it runs is told to end. */
void trials_drop(struct trials *t, struct live *l);
/* How far its trial is, a message; "" code: it has not begun. */
void trials_tell(struct trials *t, const struct live *l, struct reason *ret);

/* ---- also for a trial without a job ---- */

/* Arguments of "trial_no_worker". */
#define TRIALS_NO_WORKER(needs) ((needs) ? "{\"needs\":1}" : "{}")
/* The node of the pool with the most CPUs free among those that are not known to lack what the code
 * needs (core/job/needs.h; NULL: nothing). NULL: there is none. */
const struct cluster_node *trials_choose_node(const struct cluster *cluster,
                                              const struct nodes *machines,
                                              const char *pool,
                                              const char *needs);

struct trialplan;
struct trials_submit {
    const struct trialplan *plan; /* made; its user is told to Ray */
    const struct cluster_node *node;
    const char *ray_id, *job, *instance;
};
/* ERR_USAGE: it cannot be sent like this, and cb never comes. */
must_check int trials_post(struct ray_client *ray,
                           const struct trials_submit *s,
                           ray_submit_f cb,
                           void *arg,
                           struct err *err);

/* SPDX-License-Identifier: Apache-2.0 */
/* watcher.h - looks at the jobs that Ray has, and lets core judge what it sees.
 *
 * Every second: Ray's job list, and the shepherds' files. From both comes what a
 * job is (started, over, lost, unknown), where its driver runs, whether its time is
 * up. It also stops what is to be stopped and clears Ray of records that are over. */
#pragma once
#include <uv.h>

#include "argusd/ground/cluster.h"
#include "argusd/ground/settings.h"
#include "argusd/jobs/jobs.h"
#include "argusd/watch/sender.h"
#include "ray/ray.h"

struct metrics;
struct findings;
struct trials;
struct watcher;

struct watcher_parts { /* all borrowed */
    uv_loop_t *loop;
    const struct settings *settings;
    struct cluster *cluster;
    struct ray_client *ray;
    struct jobs *jobs;
    struct sender *sender;
    struct trials *trials;
    struct metrics *metrics;
    struct findings *findings;
    const char *instance;
    /* Was this job id ever ours? For records in Ray whose job is over. */
    bool (*knows_id)(const char *id, void *arg);
    /* When Ray's head was found gone from its machine, see nodes_head_gone(). */
    usec_t (*head_gone)(void *arg);
    void (*saw_jobs)(const struct ray_jobs *jobs, void *arg); /* each list */
    void *arg;
};

struct watcher *watcher_new(const struct watcher_parts *parts);
void watcher_start(struct watcher *w);
/* Nothing is called any more; freed when the loop has let go of it. */
void watcher_free(struct watcher *w);

/* l owes JOB_ACT_STOP. */
void watcher_stop(struct watcher *w, struct live *l);
/* Tell attempts that Ray had and that were given up to end, should they still start. */
void watcher_strays(struct watcher *w, struct live *l);
/* Look at the files again, soon. */
void watcher_look(struct watcher *w);
/* Ray has forgotten its jobs: what it said of them is void. */
void watcher_forget(struct watcher *w);

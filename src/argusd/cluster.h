/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.h - what is known of the Ray cluster and the shared root right now.
 *
 * Polls version and nodes, checks the root, hands the node table to the scheduler
 * and says why nothing may start. It decides nothing about jobs. */
#pragma once
#include <stdbool.h>
#include <uv.h>

#include "argusd/events.h"
#include "argusd/settings.h"
#include "base/clock.h"
#include "core/sched.h"
#include "fsroot/fsroot.h"
#include "ray/ray.h"

struct cluster;
struct idset;

struct cluster_node {
    char *name, *node_id, *ip, *pool, *message;
    double gpus, cpus;
    bool is_alive, is_head;
    bool takes_drivers;    /* has what entrypoint_resources ask for */
    bool has_own_resource; /* argus_node_<name>: a driver can be sent there by it */
    usec_t since;          /* wall: of is_alive's last change under our eyes */
};

struct cluster_ops {
    /* Nodes, reachability or the root's health changed: admission may go on or must stop. */
    void (*changed)(void *arg);
    /* Ray came back with another session: it has forgotten everything. */
    void (*new_session)(void *arg);
    void *arg;
};

struct cluster *cluster_new(uv_loop_t *loop,
                            const struct settings *settings,
                            struct ray_client *ray,
                            struct sched *sched,
                            struct events *events,
                            const struct cluster_ops *ops);
void cluster_start(struct cluster *c);
/* Stop asking; nothing is called any more. Freed when the loop has let go of it. */
void cluster_free(struct cluster *c);

bool cluster_is_up(const struct cluster *c); /* Ray answered lately */
bool cluster_root_is_ok(const struct cluster *c);
/* It was checked and cannot be used; false while the first check runs. */
bool cluster_root_is_bad(const struct cluster *c);
/* A check of it has not come back: whoever reads there now would hang too. */
bool cluster_root_hangs(const struct cluster *c);
/* Why nothing may start: a code and a sentence; "" when all is well. */
void cluster_why_not(const struct cluster *c, const char **ret_code, const char **ret_text);
/* Texts are "" until Ray answered once. Borrowed. */
const char *cluster_ray_version(const struct cluster *c);
const char *cluster_session(const struct cluster *c);
const char *cluster_head_ip(const struct cluster *c);
uint64_t cluster_root_free_bytes(const struct cluster *c);

/* Submission ids of Ray's jobs that are not ours, as of the last list; ids are taken. */
void cluster_take_foreign(struct cluster *c, struct idset *ids);
bool cluster_has_foreign(const struct cluster *c, const char *ray_id);

const struct cluster_node *cluster_nodes(const struct cluster *c, size_t *ret_n);
/* By Ray's node id / our name; NULL if there is none. */
const struct cluster_node *cluster_find_id(const struct cluster *c, const char *node_id);
const struct cluster_node *cluster_find_name(const struct cluster *c, const char *name);
/* True if a node that is not the head has this address. */
bool cluster_is_worker_ip(const struct cluster *c, const char *ip);

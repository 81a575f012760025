/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.h - what is known of the Ray cluster and the shared root right now.
 *
 * Polls version, nodes and their use, checks the root, and says why nothing may start. It decides
 * nothing about jobs, and what the scheduler may use is nodes.h's to say. */
#pragma once
#include <stdbool.h>
#include <uv.h>

#include "argusd/ground/events.h"
#include "argusd/ground/settings.h"
#include "base/clock.h"
#include "ray/ray.h"

struct cluster;
struct foreign;

/* By which label Ray can tell the node from others, the better the higher. */
enum cluster_label {
    CLUSTER_LABEL_NONE, /* Ray has no labels */
    CLUSTER_LABEL_ID,   /* ray.io/node-id: another one after each start */
    CLUSTER_LABEL_NAME, /* argus.node */
};

struct cluster_node {
    char *name, *node_id, *pool, *message;
    char *ip; /* "": it told none that argusd may call */
    double gpus, cpus;
    bool is_alive, is_head;
    bool takes_drivers;    /* has what entrypoint_resources ask for */
    bool has_own_resource; /* argus_node_<name>: a driver can be sent there by it */
    enum cluster_label label;
    double gpus_used, cpus_used; /* as Ray counts them, a few seconds old; 0 while not known */
    int shares;                  /* it has argus_share_0 … to this one: see core/job/share.h */
    usec_t since;                /* wall: of is_alive's last change under our eyes */
};

struct cluster_ops {
    /* A node of the registry: its changes are told there. */
    bool (*is_registered)(const char *name, void *arg);
    /* The address that the registry has for it, "" while it knows none; NULL: nobody registered
     * it. Borrowed until the loop goes on. */
    const char *(*registered_address)(const char *name, void *arg);
    /* Nodes, reachability or the root's health changed: admission may go on or must stop. */
    void (*changed)(void *arg);
    /* Ray came back with another session: it has forgotten everything. */
    void (*new_session)(void *arg);
    void *arg;
};

struct cluster *cluster_new(uv_loop_t *loop,
                            const struct settings *settings,
                            struct ray_client *ray,
                            const char *instance,
                            struct events *events,
                            const struct cluster_ops *ops);
void cluster_start(struct cluster *c);
/* Stop asking; nothing is called any more. Freed when the loop has let go of it. */
void cluster_free(struct cluster *c);

/* Ask Ray now and not at the next turn of the clock. */
void cluster_poke(struct cluster *c);
/* Grows with each answer about the nodes: what was seen before is old. */
uint64_t cluster_generation(const struct cluster *c);
/* A file below the shared root that only this root has, for this argusd. Borrowed. */
const char *cluster_root_mark(const struct cluster *c);

bool cluster_is_up(const struct cluster *c); /* Ray answered lately */
/* Since when it has answered without a break under our eyes (wall); 0: it does not. */
usec_t cluster_up_since(const struct cluster *c);
bool cluster_root_is_ok(const struct cluster *c);
bool cluster_root_is_known(const struct cluster *c); /* it was checked at least once */
/* It was checked and cannot be used; false while the first check runs. */
bool cluster_root_is_bad(const struct cluster *c);
/* A check of it has not come back: whoever reads there now would hang too. */
bool cluster_root_hangs(const struct cluster *c);
/* May a request use it now? ERR_NOT_YET before the first look at it, ERR_UNAVAILABLE while it
 * cannot be used or hangs. */
must_check int cluster_check_root(const struct cluster *c, struct err *err);
/* ERR_UNAVAILABLE if it hangs. */
must_check int cluster_check_root_answers(const struct cluster *c, struct err *err);
/* Why not, as a message (base/message.h); "" when all is well. Borrowed. */
void cluster_root_why(const struct cluster *c, const char **ret_code, const char **ret_text);
/* Why nothing may start, as a message; "" when all is well. Borrowed. */
void cluster_why_not(const struct cluster *c, const char **ret_code, const char **ret_text);
/* The same of Ray alone, whatever the shared root does. */
void cluster_ray_why(const struct cluster *c, const char **ret_code, const char **ret_text);
/* Texts are "" until Ray answered once. Borrowed. */
const char *cluster_ray_version(const struct cluster *c);
const char *cluster_session(const struct cluster *c);
const char *cluster_head_ip(const struct cluster *c);
/* The same where argusd may call it and send raylets to it; "" where Ray alone says so. */
const char *cluster_head_address(const struct cluster *c);
/* The other paths by which this machine reaches the shared root, see rootnames.h. Borrowed until
 * the loop goes on. */
const struct strv *cluster_root_names(const struct cluster *c);
uint64_t cluster_root_free_bytes(const struct cluster *c);
/* See rootwatch_write_took(). */
usec_t cluster_root_write_took(const struct cluster *c);

/* The jobs of Ray that are not ours, and what they hold: foreign.h. Borrowed. */
struct foreign *cluster_foreign(const struct cluster *c);
/* Ray's counts of use show how it was at this moment, or later (monotonic): its monitor writes them
 * every few seconds, so a look brings what was written before it. 0: not known, as long as no look
 * brought another report than the look before it. */
usec_t cluster_use_of(const struct cluster *c);

const struct cluster_node *cluster_nodes(const struct cluster *c, size_t *ret_n);
/* May argusd call a server of the node itself, for its figures, a service or a notebook, or send
 * Prometheus there? Not where Ray alone says that the node has this address: see inventory.h. */
bool cluster_may_ask(const struct cluster *c, const struct cluster_node *n);
/* The node of this name that argusd may call, whoever else has taken the name, and rather one that
 * is alive. NULL: there is none, and ERR_UNAVAILABLE says why. */
const struct cluster_node *cluster_find_callable(const struct cluster *c,
                                                 const char *name,
                                                 struct err *err);
/* By Ray's node id / our name; NULL if there is none. */
const struct cluster_node *cluster_find_id(const struct cluster *c, const char *node_id);
const struct cluster_node *cluster_find_name(const struct cluster *c, const char *name);
/* True if a node that is not the head has this address. */
bool cluster_is_worker_ip(const struct cluster *c, const char *ip);

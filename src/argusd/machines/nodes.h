/* SPDX-License-Identifier: Apache-2.0 */
/* nodes.h - the registry of machines, and what is done so that each is as its operator wants it.
 *
 * Owns the rows (store entries of kind "node"; the managed head's is of kind "head"), their
 * changes and events, and the acts that follow once a change is on disk: probe, start, look,
 * stop. Merges the rows with Ray's list and gives the scheduler its table. Machines in Ray's list
 * that nobody registered are "attached": used as they are, never touched.
 *
 * A node is lost when Ray says so, when its own sshd says that the raylet is gone, or when
 * neither ssh nor the raylet's port answers any more. Ssh alone being away changes nothing. */
#pragma once
#include <uv.h>

#include "argusd/figures/figures.h"
#include "argusd/ground/cluster.h"
#include "argusd/ground/events.h"
#include "argusd/ground/settings.h"
#include "argusd/jobs/jobs.h"
#include "core/job/node.h"
#include "core/sched/sched.h"
#include "store/store.h"

struct adopted;
struct expo;
struct nodes;
struct noderun; /* a registered node at run time: nodes_run.h */

/* All borrowed. */
struct nodes_parts {
    uv_loop_t *loop;
    const struct settings *settings;
    struct store *store;
    struct events *events;
    struct sched *sched;
    struct accounting *accounting;
    struct jobs *jobs;
    struct cluster *cluster;
    const struct adopted *adopted; /* who has taken a job of others for his own */
    struct figures *figures;       /* told where an exporter listens */
    const char *instance;          /* our mark on machines */
    const char *boot_id;           /* of this machine's start, for spans */
    void (*changed)(void *arg);    /* the scheduler's table is another one: admit */
    /* Further pools of a machine, heap; or NULL. While its network keeps jobs off it is in these
     * alone, and takes no job that names none. */
    char *(*also_in)(const char *node, void *arg);
    void *arg;
};

/* -ENOENT…: the directory of control sockets cannot be made. */
must_check int nodes_new(const struct nodes_parts *parts, struct nodes **ret, struct err *err);
/* A row of the store, before nodes_start(). One that cannot be read is an error in the log. */
#define NODES_ENTRY "node"
#define NODES_ENTRY_HEAD "head"
void nodes_restore(struct nodes *ns, const struct store_entry *entry);
void nodes_start(struct nodes *ns);
/* Nothing is begun or told any more; handles close as the loop turns. NULL is fine. */
void nodes_close(struct nodes *ns);
void nodes_free(struct nodes *ns); /* after the loop; NULL is fine */

/* This batch is on disk: what was decided may be done. */
void nodes_durable(struct nodes *ns, uint64_t batch);
/* Ray's list, its use or its reachability changed: look, and give the scheduler its table. */
void nodes_take(struct nodes *ns);
/* A lease on these nodes, with so many CPUs on each, has ended in this moment:
 * they come back once a look has found the job's processes gone. */
void nodes_lease_ended(struct nodes *ns, const char *job, const struct gang *gang, double cpus);

/* When a look at the managed head's machine last found neither raylet nor GCS server of ours there
 * (monotonic); 0: never, or the head is not ours. */
usec_t nodes_head_gone(const struct nodes *ns);

/* False: its probe saw that it does not meet these needs (core/job/needs.h). */
bool nodes_meets(const struct nodes *ns, const char *name, const char *needs);
bool nodes_is_registered(const struct nodes *ns, const char *name);
/* Where a registered node is by its NodeSpec (of the head: by argus.yaml), or by what its machine
 * said over ssh where that names no address; "" while it is not known. Never what Ray tells. NULL:
 * nobody registered it. Borrowed until the loop goes on. */
const char *nodes_address(const struct nodes *ns, const char *name);
/* A row of Ray's list that is history: its machine was removed, or it had ended before we came. */
bool nodes_is_former(const struct nodes *ns, const struct cluster_node *k);

/* ---- what the API asks for; actor is a user's name ---- */

/* Specs are taken (empty after) when all are new or the same as what is there; *ret: for each its
 * node, to be freed, borrowed inside; *ret_new: how many were not there. ERR_CONFLICT: a name or a
 * machine is taken by another spec; ERR_REFUSED. */
must_check int nodes_add(struct nodes *ns,
                         struct nodespec *specs,
                         size_t n,
                         const char *actor,
                         struct noderun ***ret,
                         size_t *ret_new,
                         struct err *err);
/* The head, if it is managed, and all of the registry. NULL at the end. */
const struct node_row *nodes_next(const struct nodes *ns, size_t *pos);
struct noderun *nodes_find(const struct nodes *ns, const char *name); /* NULL: not registered */
/* A rank of this job, which is that user's, is slow there: core/job/node_slow.h. Of a machine that
 * nobody registered nothing is kept. */
void nodes_note_slow(struct nodes *ns, const char *name, const char *job, const char *user);

/* A drained or removed node waits for jobs that Argus did not submit, too, and says for whom
 * (core/job/vacancy.h has the rules, also of a Ray that does not answer); unless stop_foreign: then
 * they go with its raylet, at the deadline if there is one. */
struct nodes_drain {
    usec_t within; /* 0 = no deadline */
    enum node_then then;
    bool stop_foreign;
};
/* May it be drained? ERR_CONFLICT: not in this state. */
must_check int nodes_check_drain(const struct noderun *nr, struct err *err);
/* nodes_check_drain() is part of it. */
must_check int nodes_drain(struct noderun *nr,
                           const struct nodes_drain *how,
                           const char *actor,
                           struct err *err);
must_check int nodes_undrain(struct noderun *nr, const char *actor, struct err *err);
enum nodes_remove_flags {
    NODES_REMOVE_FORCED = 1 << 0,       /* its jobs end with it, and its machine need not answer */
    NODES_REMOVE_STOP_FOREIGN = 1 << 1, /* jobs of others, too; what a drain said is over */
};
/* ERR_CONFLICT names the jobs that run on it, unless forced: then only those of others are waited
 * for. */
must_check int nodes_remove(struct noderun *nr, unsigned flags, const char *actor, struct err *err);

/* A job of somebody else that uses a machine: by its entrypoint, actors or placement groups, as Ray
 * told last. Texts are borrowed until the loop goes on. */
struct nodes_holder {
    const char *ray_id;          /* NULL: what Ray counts as used, by nobody that argusd knows */
    const char *project, *owner; /* of who adopted it; NULL: nobody has */
    double gpus, cpus;
};
/* nr NULL: on all machines, those that nobody registered too. free() it. */
struct nodes_holder *nodes_holders(const struct nodes *ns, const struct noderun *nr, size_t *ret_n);
/* How many they are. ret: their ids in Ray, comma-separated, at most a few; "" = none, or none that
 * argusd knows. */
size_t nodes_holders_names(const struct nodes *ns,
                           const struct noderun *nr,
                           char *ret,
                           size_t size);

/* Look at the machine now. The callback comes once, unless taken back or the node is removed:
 * node_findings() has what was found. With accept_key whatever host key it shows is pinned. */
struct nodes_check;
typedef void (*nodes_check_f)(struct noderun *nr, void *arg);
struct nodes_check *nodes_check(struct noderun *nr,
                                bool accept_key,
                                const char *actor,
                                nodes_check_f cb,
                                void *arg);
void nodes_check_free(struct nodes_check *k); /* NULL is fine; not after the callback */

/* How the check of its network goes, which the room network runs: NODE_EV_NET_…. */
void nodes_net_told(struct noderun *nr, const struct node_event *e);

/* A remedy acts there now, or what came of it is not on disk yet. The start of a raylet is none. */
bool nodes_is_mending(const struct noderun *nr);

/* Call cb once at the node's next change, or when it is removed. */
struct nodes_waiter;
struct nodes_waiter *nodes_wait(struct noderun *nr, void (*cb)(void *arg), void *arg);
void nodes_unwait(struct nodes_waiter *w); /* NULL is fine; not after the call */

/* The head and all nodes that nodes_down() sent away are wanted again / exactly what we started is
 * stopped, workers first. then: what becomes of jobs that run there; with NODE_THEN_WAIT they are
 * in the way, and so are jobs of others unless stop_foreign. ERR_CONFLICT: nothing here is ours, or
 * these jobs. */
must_check int nodes_up(struct nodes *ns, const char *actor, struct err *err);
/* Jobs of others alone: are they in the way? */
must_check int nodes_check_down(const struct nodes *ns, bool stop_foreign, struct err *err);
must_check int nodes_down(struct nodes *ns,
                          enum node_then then,
                          bool stop_foreign,
                          const char *actor,
                          struct err *err);
/* Ids of the jobs that run on our nodes, comma-separated, at most a few; "" = none. */
void nodes_jobs_on(const struct nodes *ns, const char *name, char *ret, size_t size);

/* ---- the same for eyes: JSON into an open list or under key ---- */

/* Whose eyes: a job that they may not see is counted and not named. Borrowed. */
struct nodes_eyes {
    bool (*sees)(const char *job, void *arg);
    void *arg;
    const struct message_listener *listener; /* of reasons */
    bool with_slots;                         /* GPUs one by one: their use changes by itself */
    const char *peers; /* JSON, on the page of one node: see network/netpairs_view.h; NULL = not
                          asked for */
};
void nodes_put(const struct noderun *nr,
               const struct nodes_eyes *eyes,
               struct jout *j,
               const char *key);
/* Registered ones in their order, then those that are only attached. */
void nodes_put_all(const struct nodes *ns,
                   const struct nodes_eyes *eyes,
                   struct jout *j,
                   const char *key);
/* The name and state of each node that nodes_put_all() shows, in its order; false at the end, and
 * *pos begins at 0. Borrowed. */
struct nodes_name {
    const char *name, *state;
};
bool nodes_next_name(const struct nodes *ns, size_t *pos, struct nodes_name *ret);
/* Who is to reach which of its ports, and from which addresses. argusd, prometheus: addresses or
 * networks parted by commas, of who cannot be known from here; NULL = what is known.
 * ERR_BAD_REQUEST. */
must_check int nodes_put_firewall(const struct noderun *nr,
                                  const char *argusd,
                                  const char *prometheus,
                                  struct jout *j,
                                  struct err *err);
/* The whole cluster (pool null), then a row per label. */
void nodes_put_pools(const struct nodes *ns, struct jout *j, const char *key);
extern const struct field_table nodes_pool_table; /* a row */
/* The page of a node and its parts, and of its firewall. */
extern const struct field_table nodes_node_table, nodes_lease_table, nodes_reason_table,
    nodes_slot_table, nodes_drain_table, nodes_rule_table, nodes_firewall_table;
/* The node of Ray's list with this name that nobody registered; false: there is none. */
bool nodes_put_attached(const struct nodes *ns,
                        const char *name,
                        const struct nodes_eyes *eyes,
                        struct jout *j,
                        const char *key);
/* GPUs of this machine that Ray counts as used and that are not ours. */
double nodes_foreign(const struct nodes *ns, const struct cluster_node *k);
/* A port of Ray on this node that answers a machine that has no business there, argusd's or that of
 * another node, while Ray asks for no token. UNKNOWN: nobody who is kept out has tried (yet), or a
 * node was let in and cannot try again now. *ret is borrowed until the loop goes on. */
struct nodes_port {
    const char *key;  /* of core/job/ports.h; static */
    const char *from; /* who alone is let in; static */
    int port;
    const char *peer; /* the node that it answers; NULL: argusd's machine */
};
enum nodes_ports_known { NODES_PORTS_UNKNOWN, NODES_PORTS_CLOSED, NODES_PORTS_OPEN };
enum nodes_ports_known nodes_open_port(const struct nodes *ns,
                                       const char *name,
                                       struct nodes_port *ret);
/* State and health of each registered node, for Prometheus. */
void nodes_put_metrics(const struct nodes *ns, struct expo *e);
/* How many are registered, and how many of them are online. */
void nodes_count(const struct nodes *ns, size_t *ret_registered, size_t *ret_online);
const struct node_row *nodes_row(const struct noderun *nr);
double nodes_gpus(const struct noderun *nr); /* that it has */
/* The labels of a node of the registry, comma-separated; NULL: it is not registered. Yours. */
char *nodes_labels(const struct nodes *ns, const char *name);

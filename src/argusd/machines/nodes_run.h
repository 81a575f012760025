/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_run.h - inside of the nodes service: a node at run time, and the parts of the service.
 *
 * nodes.c changes rows; nodes_ask.c does what operators ask; nodes_join.c brings machines in,
 * nodes_leave.c out, when jobs of others are gone, too (nodes_foreign.c); nodes_look.c watches
 * them, nodes_exporter.c their exporters, nodes_remedy.c puts right what it may, nodes_ports.c and
 * nodes_peers.c try their ports; nodes_table.c merges with Ray's list; nodes_view.c, nodes_pools.c
 * and nodes_firewall.c render. Only nodes_change() changes a row's state. */
#pragma once
#include "argusd/machines/nodes.h"
#include "base/map.h"
#include "core/job/vacancy.h"
#include "ssh/probe.h"
#include "ssh/raylet.h"
#include "ssh/remedycall.h"

enum node_op { OP_NONE, OP_PROBE, OP_FENCE, OP_TOKEN, OP_START, OP_STOP };

/* Slots of an ended lease that are not known to be clean. */
struct nodes_hold {
    char *job;
    double gpus;
    usec_t since; /* monotonic */
};

struct nodes_check {
    struct nodes_check *next;
    struct noderun *nr;
    nodes_check_f cb;
    void *arg;
};

enum { NODES_SUSPECTS_MAX = 16 };

struct nodes_waiter {
    struct nodes_waiter *next;
    struct noderun *nr;
    void (*cb)(void *arg);
    void *arg;
};

/* Times are monotonic. Nothing of this is stored but the row. */
struct noderun {
    struct nodes *nodes;
    struct node_row *row;
    bool was_ours; /* Ray has had a raylet of this name that we started */
    bool gone;     /* removed: freed when the pass is over */

    /* acting: nodes_join.c */
    enum node_op op;
    struct probe *probe;
    struct raylet_call *call;
    struct ssh_call *ssh;
    uv_getaddrinfo_t *resolving;
    uint64_t act_batch; /* on disk before the next act */
    usec_t act_after, step_since;
    bool adopted;     /* by the last start */
    bool former_self; /* Ray still lists the raylet that ran there before this one */
    char lost_id[72]; /* Ray's id of the node that we know to be gone, whatever Ray says */
    char token_path[256];

    /* watching: nodes_look.c */
    struct raylet_call *look;
    usec_t look_after, look_began;
    int looks_failed;
    usec_t gone_at;      /* when a look last found nothing of Ray there */
    struct knock *reach; /* a connection attempt to the raylet's port */
    usec_t reach_after;
    int reach_failed;         /* in a row */
    bool reach_ever;          /* it worked once since the node is in */
    int slow;                 /* looks in a row that found the root slow */
    usec_t cards_at;          /* of its machine's clock: the driver's newest sample that was told */
    struct rdma_counts *rdma; /* what the newest look has read; NULL: no ports */
    struct nodes_hold *holds;
    size_t n_holds;
    size_t strays;
    bool strays_ours; /* some of them bear a job's mark */
    char stray_text[400];

    /* the exporter of its GPU figures: nodes_exporter.c */
    struct {
        struct raylet_call *call;
        usec_t after;
        int tries; /* in a row without success */
        char code[NODE_CODE_MAX],
            text[NODE_TEXT_MAX]; /* how it is: a message; "" = not known yet */
    } exporter;

    /* ports that should not answer us: nodes_ports.c */
    struct {
        struct knock *now;                /* the port that is tried; NULL: none */
        struct nodes_port v[PORTS_COUNT]; /* still to try in this round */
        size_t n;
        usec_t after;
        enum nodes_ports_known known; /* by the last round */
        struct nodes_port open;
    } ports;

    /* ports that should not answer other nodes: nodes_peers.c */
    struct {
        struct ssh_call *call;            /* the node `peer` tries now; NULL: none does */
        struct nodes_port v[PORTS_COUNT]; /* what it tries */
        size_t n;
        char peer[NODESPEC_NAME_MAX + 1];
        char let_in[NODESPEC_NAME_MAX + 1]; /* by the port `open`, when it tried last; "" = none */
        size_t place;                       /* in the registry, of who tries next */
        int failed;                         /* in a row: nothing was learned */
        usec_t after;
        enum nodes_ports_known known;
        struct nodes_port open;
    } peers;

    /* what is put right by itself: nodes_remedy.c */
    struct {
        struct raylet_job suspects[NODES_SUSPECTS_MAX]; /* of the newest look: without a lease */
        size_t n;
        struct store_read *read; /* whether the last of them is over */
        usec_t after;            /* of the next such question */
        bool disk_full;          /* by the newest look or probe */
        bool may_rejoin;         /* the start of its raylet is in the book */
        unsigned spent;          /* 1 << remedy: told that its limit is reached */
        bool is_decided;         /* in the book and told; done once that is on disk: */
        enum remedy what;
        struct raylet_job stray; /* of REMEDY_STRAY */
        uint64_t batch;          /* the newest act, or its end, is on disk with this one */
        struct remedycall *call;
    } heal;

    /* checking on demand */
    struct probe *check_probe;
    struct nodes_check *checks;
    struct probe_finding findings[PROBE_FINDINGS_MAX];
    size_t n_findings;
    usec_t found_at; /* wall */

    /* Ray's view: nodes_table.c */
    char ray_id[72];
    bool ray_alive, takes_drivers;
    double gpus, cpus; /* totals: Ray's while it has it, else declared */
    double foreign_gpus, foreign_cpus;
    usec_t missing_since; /* from a list that had it */
    usec_t idle_since;    /* it is to go, and no lease of ours is on it; 0: not so, as far as was
                             looked */
    struct nodes_waiter *waiters;
};

enum { NODES_TRYING_MAX = 8 };

struct nodes {
    struct nodes_parts p;
    struct map *by_name;
    struct map *former; /* Ray's ids of nodes that are history: nodes_bury() */
    struct map *ended;  /* node -> leases there that ended lately */
    struct noderun **v; /* in the order of registration; the head, if managed, first */
    size_t n;
    struct noderun *trying[NODES_TRYING_MAX]; /* whose ports another node tries now; NULL: free */
    int64_t next_seq;
    uv_timer_t timer;
    char control_dir[SSH_DIR_MAX];
    char *known_hosts;
    char *token; /* Ray's, NULL without authentication */
    bool started, closing, walking, again;
    bool table_changed;
    uint64_t generation; /* of cluster's list, as last taken */
};

/* nodes.c */
bool nodes_change(struct noderun *nr, const struct node_event *e, const char *actor);
void nodes_fail(struct noderun *nr, const char *code, const char *text);
void nodes_save(struct noderun *nr); /* facts changed outside of a transition */
void nodes_tell(struct noderun *nr, const char *kind, const char *code, const char *text);
void nodes_note(struct noderun *nr, const struct events_note *what); /* adds the object */
char *nodes_summary(const struct node_row *n); /* wish and state as JSON: yours to free() */
struct noderun *nodes_insert(struct nodes *ns, struct node_row *taken);
void nodes_target(const struct noderun *nr, struct ssh_target *ret); /* borrowed from nr */
/* Go through all nodes and do what is due. */
void nodes_pass(struct nodes *ns);
/* Begin a pass from the loop, soon. */
void nodes_kick(struct nodes *ns);
void nodes_forget(struct noderun *nr);
struct moment nodes_moment(const struct nodes *ns);

/* nodes_leave.c */
void nodes_begin_fence(struct noderun *nr);
void nodes_begin_stop(struct noderun *nr);
void nodes_watch_drain(struct noderun *nr);
/* The word for how an act on a machine failed. */
void nodes_fail_end(struct noderun *nr, const struct raylet_end *end);

/* nodes_join.c */
void nodes_act(struct noderun *nr, usec_t now);
void nodes_act_cancel(struct noderun *nr);
bool nodes_check_begin(struct noderun *nr);
double nodes_declared_cpus(const struct noderun *nr);
double nodes_declared_gpus(const struct noderun *nr);

/* nodes_look.c */
void nodes_look(struct noderun *nr, usec_t now);
void nodes_look_cancel(struct noderun *nr);
void nodes_hold(struct noderun *nr, const char *job, double gpus);
double nodes_held(const struct noderun *nr);
void nodes_holds_free(struct noderun *nr);
bool nodes_is_leased(const struct noderun *nr, const char *job); /* the job has a lease there */

/* nodes_exporter.c */
void nodes_exporter(struct noderun *nr, usec_t now);
void nodes_exporter_cancel(struct noderun *nr);

/* nodes_remedy.c */
/* What a look has seen. */
void nodes_remedy_take(struct noderun *nr, const struct raylet_look *r);
void nodes_remedy_take_probe(struct noderun *nr); /* its findings */
void nodes_remedy(struct noderun *nr, usec_t now);
/* May a node that is lost be probed and started? False: its raylet died, and its remedy is off or
 * spent, which the row says, or is being written into the book. */
bool nodes_remedy_lets_join(struct noderun *nr);
bool nodes_remedy_keeps_out(const struct noderun *nr);
void nodes_remedy_cancel(struct noderun *nr);

/* nodes_ports.c */
void nodes_ports(struct noderun *nr, usec_t now);
void nodes_ports_cancel(struct noderun *nr);

/* nodes_peers.c */
void nodes_peers(struct nodes *ns, usec_t now); /* of all nodes, once a pass */
void nodes_peers_cancel(struct noderun *nr);

/* nodes_firewall.c: the ports of this node from which the address of argusd's machine would be kept
 * out, of those that have one number. None where its address or the node's is not known. */
size_t nodes_strange_ports(const struct noderun *nr, struct nodes_port ret[static PORTS_COUNT]);
/* The ports of Ray on nr from which the node `peer` would be kept out. None where one of the
 * addresses is not known, or both are on one machine. */
size_t nodes_peer_ports(const struct noderun *nr,
                        const struct noderun *peer,
                        struct nodes_port ret[static PORTS_COUNT]);

/* nodes_table.c */
void nodes_ended_free(struct nodes *ns);
/* It is removed: what Ray's list still has of it is history, neither shown nor used. */
void nodes_bury(const struct noderun *nr);
void nodes_give_table(struct nodes *ns);
bool nodes_is_busy(const struct noderun *nr); /* a lease of ours is on it */
/* What Ray counts as used there beyond our leases, and beyond those that ended a moment ago unless
 * the count is new: of after their end. */
void nodes_foreign_use(const struct nodes *ns,
                       const struct cluster_node *k,
                       bool is_new,
                       double *ret_gpus,
                       double *ret_cpus);
bool nodes_was_leased(const struct nodes *ns, const char *node); /* a moment ago */

/* nodes_foreign.c */
/* Has Ray asked who holds what, where somebody besides us may hold something. */
void nodes_foreign_ask(const struct nodes *ns);
/* May the raylet of a node that is to go be stopped? Also keeps since when no lease of ours is
 * there. */
enum vacancy nodes_vacancy(struct noderun *nr);
/* Who is waited for, as its reason; nothing where that is us. */
void nodes_tell_vacancy(struct noderun *nr, enum vacancy v);
/* nodes_view.c */
/* A node of Ray that a list leaves out: the living one, or its row in the registry, stands for it.
 */
bool nodes_view_is_hidden(const struct nodes *ns, const struct cluster_node *k);

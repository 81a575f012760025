/* SPDX-License-Identifier: Apache-2.0 */
/* node.h - a machine of ours: its states, and the one function that changes them.
 *
 * State changes in node_apply() only, a pure function of (row, event) that reads one table; what
 * then has to be done is node_act(), which looks at the row alone. So a restart is: load, and
 * act. The row is the operator's wish beside what we know of the machine: `want` and `state`;
 * `step` says how far the way between them has come. Pure: no I/O, no clock, no log. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/field.h"
#include "core/job/node_slow.h"
#include "core/job/remedy.h"
#include "core/job/stopwatch.h"
#include "core/spec/nodespec.h"

/* X(enumerator, word). The words leave the process. */
#define NODE_STATE_TABLE(X)                                                                        \
    X(NODE_PENDING, "pending")   /* on its way in */                                               \
    X(NODE_ONLINE, "online")     /* in Ray's list, takes jobs unless it is unhealthy */            \
    X(NODE_DRAINING, "draining") /* takes no new job; its raylet goes when nothing runs */         \
    X(NODE_OFFLINE, "offline")   /* not there; comes back by itself unless it was drained */
#define NODE_WANT_TABLE(X)                                                                         \
    X(NODE_WANT_UP, "up") X(NODE_WANT_DRAINED, "drained") X(NODE_WANT_REMOVED, "removed")
#define NODE_STEP_TABLE(X)                                                                         \
    X(NODE_STEP_PROBE, "probe") /* nothing is known of it now */                                   \
    X(NODE_STEP_FENCE, "fence") /* what is left of a lost session goes first */                    \
    X(NODE_STEP_START, "start") /* fit; its raylet is to be started, or adopted */                 \
    X(NODE_STEP_JOIN, "join")   /* started; Ray's list has not shown it */                         \
    X(NODE_STEP_IN, "in")       /* in Ray's list */                                                \
    X(NODE_STEP_LEAVE, "leave") /* its raylet is to be stopped */                                  \
    X(NODE_STEP_OUT, "out")     /* nothing of ours runs there */
#define NODE_THEN_TABLE(X)                                                                         \
    X(NODE_THEN_WAIT, "wait")       /* the jobs run to their end, however long */                  \
    X(NODE_THEN_STOP, "stop")       /* at the deadline they are stopped */                         \
    X(NODE_THEN_RESTART, "restart") /* at the deadline they go back to the queue, for other nodes  \
                                     */
/* The check of its network, for a NodeSpec with check_net. */
#define NODE_NET_TABLE(X)                                                                          \
    X(NODE_NET_FREE, "free") /* nothing is in the way: measured and well, or not asked for */      \
    X(NODE_NET_DUE, "due")   /* it has joined, and takes no job before it was measured */          \
    X(NODE_NET_BAD, "bad")   /* measured, and not well: it takes no job until it is */
#define X(e, word) e,
enum node_state { NODE_STATE_TABLE(X) NODE_STATE_END };
enum node_want { NODE_WANT_TABLE(X) NODE_WANT_END };
enum node_step { NODE_STEP_TABLE(X) NODE_STEP_END };
enum node_then { NODE_THEN_TABLE(X) NODE_THEN_END };
enum node_net { NODE_NET_TABLE(X) NODE_NET_END };
#undef X

const char *node_state_to_string(enum node_state s);
const char *node_want_to_string(enum node_want w);
const char *node_then_to_string(enum node_then t);
/* …_END if there is no such word. */
enum node_then node_then_from_string(const char *word);

enum { NODE_CODE_MAX = 40, NODE_TEXT_MAX = 400, NODE_SICK_MAX = 480, NODE_ADDER_MAX = 64 };

/* A message (base/message.h). fix is of a store of before, whose texts are sentences: now the
 * catalogue has it. */
struct node_reason {
    char code[NODE_CODE_MAX]; /* "" = none */
    char text[NODE_TEXT_MAX], fix[NODE_TEXT_MAX];
};

/* What the last probe and start saw of the machine: one list for the struct, the store, the API and
 * its description. X(name, bytes, words): texts, "" when not seen. */
#define NODE_FACT_TEXTS(X)                                                                         \
    X(hostname, 128, "name by which the machine calls itself")                                     \
    X(python, 32, "version of Ray's Python")                                                       \
    X(ray, 32, "version")                                                                          \
    X(ray_bin, 256, "path of the program that was found")                                          \
    X(torch, 32, "version")                                                                        \
    X(cuda, 32, "version that torch was built with")                                               \
    X(driver, 32, "version of the NVIDIA driver")                                                  \
    X(image, 128, "what the platform says of itself")                                              \
    X(vllm, 32, "version")                                                                         \
    X(sglang, 32, "version")                                                                       \
    X(numpy, 32, "version")                                                                        \
    X(verl, 32, "version")                                                                         \
    X(transformers, 32, "version")                                                                 \
    X(gpu_type, 64, "name by which nvidia-smi calls it")                                           \
    X(interface, 24, "network interface that holds the address Ray uses")                          \
    X(bond_of, 64, "interfaces beneath it, where it is a bond")                                    \
    X(link_layer, 16, "kind of its fastest links that jobs may use: infiniband, roce or ethernet") \
    X(hca, 256, "RDMA ports of those links, device:port")                                          \
    X(roce, 8, "version of RoCE: v1 or v2")                                                        \
    X(gid_index, 8, "GID index of RoCE, where it is the same on all these ports")
/* X(name, type, field type, words). */
#define NODE_FACT_NUMBERS(X)                                                                       \
    X(gpus, int64_t, FIELD_INT, "GPUs that nvidia-smi lists")                                      \
    X(cpus, double, FIELD_REAL, "CPUs that processes may use")                                     \
    X(memory_bytes, uint64_t, FIELD_COUNT, "memory that processes may use")                        \
    X(disk_free_bytes, uint64_t, FIELD_COUNT, "free bytes on the disk where Ray works")            \
    X(shm_free_bytes, uint64_t, FIELD_COUNT, "free bytes in /dev/shm")                             \
    X(mtu, int64_t, FIELD_INT, "MTU of that interface")                                            \
    X(interface_mbps, int64_t, FIELD_INT, "speed of that interface in Mbit/s; 0: it does not say") \
    X(rdma_gbps, int64_t, FIELD_INT, "rate of each RDMA port in Gbit/s")
struct node_facts {
#define X(name, bytes, words) char name[bytes];
    NODE_FACT_TEXTS(X)
#undef X
#define X(name, type, field, words) type name;
    NODE_FACT_NUMBERS(X)
#undef X
    int64_t skew; /* its clock minus ours, microseconds */
    usec_t
        root_write; /* what one small synced write on the shared root took there; 0 = not known */
    usec_t at;      /* wall; 0 = never probed */
};
extern const struct field_table node_facts_table;

/* `struct node` is a node of a parsed text (base/doc/doc.h). */
struct node_row {
    struct nodespec spec;
    int64_t seq;  /* order of registration */
    bool is_head; /* of argus.yaml, not of the registry */
    enum node_want want;
    enum node_state state;
    enum node_step step;
    usec_t added_at, since; /* wall; of the state */
    struct node_reason reason;
    char sick[NODE_SICK_MAX];      /* text of the message "unhealthy"; "" = well */
    char sick_code[NODE_CODE_MAX]; /* of what stands in it; "" also of a row of before */
    usec_t sick_since;
    enum node_net net;
    char net_code[NODE_CODE_MAX], net_text[NODE_TEXT_MAX]; /* why it is due or bad: a message */
    char added_by[NODE_ADDER_MAX]; /* the user in whose name its network is checked; "" = of before
                                    */
    bool ssh_away;                 /* ssh does not get through, though Ray has the node */
    bool may_run;                  /* a raylet of ours was started there and not seen to be gone */
    int tries;                     /* on the way in or out, without success */
    int place;                     /* among the raylets of its host: decides its ports */
    char session[128];             /* Ray's, under which its raylet was started; "" = none */
    char host_key[80];             /* fingerprint pinned at first contact */
    char address[64];              /* under which Ray knows it */
    usec_t drain_within;           /* span; 0 = as long as the jobs like */
    struct stopwatch drain_watch;  /* since the drain was asked for */
    enum node_then then;
    bool drain_due;    /* the deadline has passed and was acted on */
    bool downed;       /* drained with the whole cluster, and back with it */
    bool forced;       /* removal does not wait for an answer of the machine */
    bool stop_foreign; /* jobs of others that run there are stopped with it */
    struct node_facts facts;
    char slow[NODE_SLOW_MAX];       /* jobs of which a rank was slow there: node_slow.h */
    char remedies[REMEDY_BOOK_MAX]; /* the acts of the last hour: remedy.h */
};

struct node_row *node_row_new(void);
void node_row_free(struct node_row *n); /* NULL is fine */

#define NODE_EVENT_TABLE(X)                                                                        \
    X(PROBED)  /* the machine is fit */                                                            \
    X(FAILED)  /* the step did not work: code, text, fix */                                        \
    X(FENCED)  /* nothing of the lost session runs any more */                                     \
    X(BLOCKED) /* fit, or on its way out, and waits for somebody else: code, text */               \
    X(STARTED) /* ray start has returned; session */                                               \
    X(SILENT)  /* it runs, and Ray does not show it: code, text, fix; nothing is ended for that */ \
    X(SEEN)    /* it is alive in Ray's list */                                                     \
    X(LOST)    /* it is gone: Ray says so, or we see it ourselves; code, text */                   \
    X(SESSION) /* Ray has lost its memory: what runs on the node belongs to nobody */              \
    X(DRAIN)   /* within, then, stop_foreign */                                                    \
    X(DUE)     /* the deadline of the drain is there */                                            \
    X(EMPTY)   /* nothing that is waited for runs on it: text */                                   \
    X(STOPPED) /* its raylet is gone, we ended it */                                               \
    X(UNDRAIN)                                                                                     \
    X(REMOVE) /* forced, stop_foreign */                                                           \
    X(SICK)   /* a look found trouble: text */                                                     \
    X(WELL)                                                                                        \
    X(AWAY)      /* ssh does not get through: text */                                              \
    X(BACK)      /* it does again */                                                               \
    X(NET_WAITS) /* the check of its network is not over: code, text */                            \
    X(NET_WELL)  /* it is measured and well, or there is nobody to measure with */                 \
    X(NET_BAD)   /* it is not: code, text */
#define X(word) NODE_EV_##word,
enum node_event_kind { NODE_EVENT_TABLE(X) NODE_EV_END };
#undef X

struct node_event {
    enum node_event_kind kind;
    const char *code, *text, *fix; /* NULL = the kind's own */
    const char *session;           /* STARTED */
    usec_t within;                 /* DRAIN: span; 0 = none */
    enum node_then then;           /* DRAIN */
    bool downed;                   /* DRAIN */
    bool forced;                   /* REMOVE */
    bool stop_foreign;             /* DRAIN, REMOVE */
};

/* Change the row. True if anything that others see or that must survive changed: store it. */
bool node_apply(struct node_row *n, const struct node_event *e, const struct moment *now);

/* What the world owes this node now, from the row alone. */
enum node_act {
    NODE_ACT_NONE,
    NODE_ACT_PROBE,
    NODE_ACT_FENCE,  /* stop what an old session left */
    NODE_ACT_START,  /* or adopt what runs */
    NODE_ACT_WATCH,  /* look at it from time to time, and at Ray's list */
    NODE_ACT_STOP,   /* exactly our raylet */
    NODE_ACT_FORGET, /* the row, and its host key */
};
enum node_act node_act(const struct node_row *n);

/* How long to wait before the act is tried again: grows with row.tries, 0 at first. */
usec_t node_backoff(const struct node_row *n);
/* The longest that the step may take before it is FAILED (a head's: SILENT), 0 = as long as it
 * likes. */
usec_t node_patience(const struct node_row *n);

/* The deadline of its drain has passed and was not told yet: DUE. */
bool node_is_due(const struct node_row *n, const struct moment *now);
/* Jobs of others that run there are not waited for any more: somebody said so, and the deadline of
 * the drain, if it has one, has passed. */
bool node_stops_foreign(const struct node_row *n, const struct moment *now);

/* "" if it takes new jobs, else the word why not: "pending" "draining" "offline" "unhealthy". */
const char *node_why_not(const struct node_row *n);
/* By a look at it, or by the check of its network. */
bool node_is_unhealthy(const struct node_row *n);
/* The shared root is not as it should be there: away, read-only, another one, hanging or slow. */
bool node_misses_root(const struct node_row *n);
/* Its network alone keeps jobs off: the one job that measures it may run there. */
bool node_waits_for_net(const struct node_row *n);

/* NULL, or the first broken invariant: for tests, and for what the store gives back. */
const char *node_check(const struct node_row *n);

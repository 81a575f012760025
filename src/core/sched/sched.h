/* SPDX-License-Identifier: Apache-2.0 */
/* sched.h - which job starts next, and where: nodes, the ledger of leases, the queue, quotas.
 *
 * Pure and deterministic: the same calls in the same order give the same decisions
 * bit for bit. A gang starts only when all of its slots, CPUs and memory are free at once,
 * each node's share whole on one node; the ledger, not Ray, says what is free.
 *
 * Order: jobs that a guarantee covers, then jobs that have waited for limits.starve_after or longer
 * (the longest first), then priority, then fair share between projects, then submission. With one
 * project, equal priorities and no quota this is the order of submission. Fair share takes the
 * project with the least GPU time for its share: the time that it used, halved every 7 days, and
 * one hour for each GPU it holds; jobs ahead of a job of the same project count as if they ran.
 *
 * Two jobs compete if a node could serve both, or if both compete with a third that waits.
 * - SCHED_POLICY_FIFO: the first job that fits its pool but not the moment blocks the jobs behind
 *   it that compete.
 * - SCHED_POLICY_EASY: by priority and submission, with the textbook's backfill (a peer to measure
 *   against).
 * - SCHED_POLICY_FAIR: the order above, with backfill: the first job that does not fit gets a
 *   promise: nodes, and the time at which the limits of the running jobs set them free. A job
 *   behind it may start, in order, if it ends before that or leaves the promised nodes alone. Runs
 *   are mostly shorter than their limits, and a few long ones are most of the work: a job that
 *   could start but waited in line lets those jobs of its project and priority pass whose limits
 *   end within a tenth of the span that it is expected to run, counted from when it could have
 *   started; not beyond its promise, which has that tenth in it, and not when it has waited for ten
 *   times that span; a job that takes whole nodes lets only such jobs pass. Without learnt
 *   expectations no job yields. A job larger than its whole pool gets no promise, blocks no other
 *   job and keeps its place.
 *
 - SCHED_POLICY_FLOW: priority, then least attained service in a few levels (GPU time had, or known
 *   to be needed), then submission; with backfill, and with promises for several jobs in line. A
 *   restartable job that is known to save gives way, right after a checkpoint, to a job that goes
 *   before it, once it ran for flow.quantum since its start: so it is set back at most once in
 *   each quantum that it ran. What waits for flow.back_within goes first, as under starve_after,
 *   and all of the former give way to it.
 * - SCHED_POLICY_SHORTEST: the bound to measure against: the least GPU time left goes first, limits
 *   are the truth, and giving way costs nothing.
 * The bound: a job that fits its pool without the slots that others hold there starts within
 *     starve_after + (k + 1) x L
 * of being queued, where L is the longest limit among competitors and k how many competitors
 * stood before it when it had waited for starve_after; as long as jobs keep their limits, nodes
 * and quotas stay, no job is held, live_jobs is not reached, and no guarantee is claimed.
 *
 * The cost of a pass grows with the changes since the last one, not with the queue. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/mem.h"
#include "core/job/gang.h"
#include "core/job/needs.h"
#include "core/verl/demand.h"

struct sched;

/* The words of argus.yaml and argus simulate. Not SCHED_FIFO: <sched.h> of the system has that. */
#define SCHED_POLICY_TABLE(X)                                                                      \
    X(FIFO, fifo) X(EASY, easy) X(FAIR, fair) X(FLOW, flow) X(SHORTEST, shortest)
#define X(name, word) SCHED_POLICY_##name,
enum sched_policy { SCHED_POLICY_TABLE(X) SCHED_POLICY_END };
#undef X
const char *sched_policy_to_string(enum sched_policy p);
enum sched_policy sched_policy_from_string(const char *word); /* SCHED_POLICY_END: no such word */

struct sched_limits {
    int live_jobs; /* at most so many leases at once; 0 = no limit */
    enum sched_policy policy;
    usec_t starve_after;  /* 0 = one day */
    usec_t default_limit; /* taken for a job without a timeout when it is foreseen; 0 = it never
                             ends by itself */
    usec_t reclaim_grace; /* told to preempted borrowers before they are stopped */
    struct {
        usec_t quantum;     /* a job runs so long before it gives way; 0 = 80 minutes */
        usec_t back_within; /* stands for starve_after under flow; 0 = 7 days */
    } flow;
};

struct sched *sched_new(const unsigned char seed[static 16], const struct sched_limits *limits);
/* An independent copy that decides as s would: to look ahead with. `job` pointers are the same. */
struct sched *sched_copy(const struct sched *s);
void sched_free(struct sched *s); /* NULL is fine */

/* ---- nodes ---- */

/* A machine as last seen. Texts are copied, NULL = none. */
struct sched_node {
    const char *name;
    const char *pool;            /* labels, comma-separated */
    const char *network;         /* switch or IB island; gangs prefer one */
    const char *versions;        /* as needs_versions() (core/job/needs.h) tells them */
    double gpus, cpus;           /* totals; of more than 64 GPUs 64 are used */
    double memory;               /* GiB; 0 = not known: any job's goes there */
    double gpus_held, cpus_held; /* held by others: not ours to give, and for an unknown time */
    bool usable;                 /* takes drivers and gangs */
    const char *only;    /* pools, comma-separated, whose jobs alone it takes; NULL = of any job */
    const char *why_not; /* "draining" "unhealthy" "offline" "pending"; NULL = never takes jobs */
    bool shareable;      /* fractions may share its GPUs */
    bool slow;           /* not used while others of its network do: it holds others up */
};

/* Replace the node table. Leases on nodes that are gone or smaller stay until they are ended:
 * nothing is taken from a running job here. Costs the nodes that changed. */
void sched_set_nodes(struct sched *s, const struct sched_node *nodes, size_t n);

/* ---- sharing ---- */

/* Absent limits are negative. gpus_guaranteed may be exceeded (borrowed) up to gpus_ceiling
 * while the GPUs are not needed for other guarantees; GPUs that others need for their own
 * guarantee are reclaimed from restartable borrowers, last started first, after
 * limits.reclaim_grace. */
struct sched_quota {
    double gpus_guaranteed; /* 0 = none */
    double gpus_ceiling, cpus, gpu_hours_per_month;
    double memory; /* GiB, of what jobs state */
    int running, queued;
    double share; /* weight in fair share; 1 = normal */
    int priority_ceiling;
};
enum sched_account { SCHED_PROJECT, SCHED_USER };

/* NULL removes it. An account without a quota has no limits and share 1. */
void sched_set_quota(struct sched *s,
                     enum sched_account kind,
                     const char *name,
                     const struct sched_quota *q);
/* The usage before this start of argusd: in the current month, and the decayed measure of fair
 * share. */
void sched_restore_usage(struct sched *s,
                         enum sched_account kind,
                         const char *name,
                         double gpu_seconds_month,
                         double gpu_seconds_decayed,
                         usec_t at);

struct sched_usage {
    double gpus, gpus_borrowed, cpus, memory;
    int running, queued;
    double gpu_seconds_month, gpu_seconds_decayed;
};
void sched_usage(const struct sched *s,
                 enum sched_account kind,
                 const char *name,
                 usec_t now,
                 struct sched_usage *ret);
/* The calendar month (UTC) of now began: month sums start at 0. Called by sched_next() itself. */

/* Would this much more waiting be refused? ERR_REFUSED, with the message "quota_queued" or
 * "quota_ceiling": what can never start under the ceiling is refused at submit. */
must_check int sched_refuses(const struct sched *s,
                             const char *user,
                             const char *project,
                             const struct demand *d,
                             struct err *err);

/* ---- the queue ---- */

struct sched_job {
    const char *id;    /* at most 63 bytes; copied, as all texts here; NULL texts = "" */
    int64_t seq;       /* orders within equals; adding out of order is fine */
    int priority;      /* 0 … 100 */
    const char *pool;  /* labels that a node must all have, comma-separated, "" = any */
    const char *needs; /* what a node must not be known to lack: core/job/needs.h */
    const char *user, *project;
    const char *avoid; /* node names not to use while others do, comma-separated */
    struct demand demand;
    usec_t queued_at;
    usec_t limit;                      /* its timeout of running: a promise; 0 = none */
    usec_t expected_p50, expected_p90; /* learnt spans of running; 0 = not known */
    bool restartable;                  /* may be preempted: when it borrows, or under flow */
    usec_t served;      /* what it ran in earlier attempts and has not lost; looked at under flow */
    usec_t saves_every; /* it completes a checkpoint so often; 0 = not known */
    usec_t slice;       /* runs so long before it gives way, if that is more than flow.quantum */
    bool held;          /* waits until sched_set_held(false) */
    void *job;          /* borrowed, comes back in decisions */
};
void sched_enqueue(struct sched *s, const struct sched_job *job);
void sched_dequeue(struct sched *s, const char *id); /* nothing happens if it does not wait */
void sched_set_held(struct sched *s, const char *id, bool held);
void sched_set_priority(struct sched *s, const char *id, int priority);

/* A lease that exists already (at start, from the store), with its GPUs as far as they are known.
 */
void sched_lease_restore(struct sched *s,
                         const struct sched_job *job,
                         const struct gang *gang,
                         usec_t started_at);
/* The slots come back. Nothing happens if there is no lease. now: for what it used. */
void sched_lease_end(struct sched *s, const char *id, usec_t now);
/* It ran for its slice: from its next checkpoint on it may give way. */
bool sched_slice_is_over(const struct sched *s, const char *id, usec_t now);
/* Under this policy jobs run in slices: what one ran before, and its checkpoints, count. */
bool sched_is_sliced(const struct sched *s);
/* The lease was told to go, or ends by itself, and will be gone by then: it is not asked again,
 * and its slots count as coming. */
void sched_lease_leaving(struct sched *s, const char *id, usec_t gone_by);
/* The job completed a checkpoint at saved_at, and completes one each `every`: only such a lease
 * gives way under flow. 0: not known any more, and it stays if it was to give way. */
void sched_lease_saves(struct sched *s, const char *id, usec_t saved_at, usec_t every);
/* A lease that SCHED_PREEMPT was told for, or that is leaving: is it still needed, by a guarantee
 * or under flow by a job that goes before it? If not, it counts as staying again, and may be told
 * another time. */
bool sched_is_wanted_back(struct sched *s, const char *id, usec_t now);
/* The nodes and GPUs of a lease, to be released; false if there is none. */
bool sched_lease_gang(const struct sched *s, const char *id, struct gang *ret);
/* What the lease holds of its i-th node; false: it has not so many, or there is none. */
struct sched_part {
    const char *node; /* borrowed until the lease ends */
    uint64_t gpus;    /* bit n: GPU n, wholly or a share of it */
    int64_t amount;   /* in 1/10000 of a GPU */
};
bool sched_lease_part(const struct sched *s, const char *id, size_t i, struct sched_part *ret);

/* ---- the pass ---- */

enum sched_verb {
    SCHED_START,   /* take it off the queue: its gang is leased */
    SCHED_PREEMPT, /* ask this running job to go (restartable); told once */
};
struct sched_decision {
    enum sched_verb verb;
    void *job;
    const char *id;          /* START: the job's */
    const char *nodes;       /* START: comma-separated names, the driver's node first */
    const char *driver_node; /* all three borrowed until the scheduler is changed */
    char text[256];          /* PREEMPT: the job or account that needs the room */
    usec_t at_save;          /* PREEMPT: it goes right after a checkpoint, expected then; 0 = a
                                guarantee wants it back: after limits.reclaim_grace */
};
/* The next decision, false: none. Call until false. now never falls. */
bool sched_next(struct sched *s, usec_t now, struct sched_decision *ret);

/* The promise of the first job in line among those that compete for this pool, and the time that
 * it was promised when it first became the first: it starts no later as long as limits are true.
 * False: no job has a promise, or its time cannot be known (leases without limits). */
bool sched_promise(struct sched *s, const char *pool, usec_t now, void **ret_job, usec_t *ret_at);

/* What the promises of the last pass keep on a node, in 1/10000 of a GPU; some of it may be leased
 * still. Only nodes where something is kept. *pos = 0 first; NULL: the end. Borrowed. */
const char *sched_kept_next(const struct sched *s, size_t *pos, int64_t *ret_amount);

/* ---- why, and what would help ---- */

/* The words leave the process (JSON). */
#define SCHED_HINT_TABLE(X)                                                                        \
    X(NONE, none)         /* no single change would start it */                                    \
    X(POOL, pool)         /* another pool: hint.pool */                                            \
    X(SHAPE, shape)       /* hint.nnodes x hint.n_gpus_per_node */                                 \
    X(JOB_END, job_end)   /* when job hint.job ends, expected at hint.at */                        \
    X(NODE, node)         /* when node hint.node takes jobs again (undrain, repair) */             \
    X(PRIORITY, priority) /* with priority hint.priority */                                        \
    X(TIMEOUT, timeout)   /* with a timeout of hint.limit the job would delay no other */          \
    X(RELEASE, release)   /* when it is released */
#define X(name, word) SCHED_HINT_##name,
enum sched_hint_kind { SCHED_HINT_TABLE(X) SCHED_HINT_END };
#undef X
const char *sched_hint_to_string(enum sched_hint_kind k);
struct sched_hint {
    enum sched_hint_kind kind;
    char pool[128], job[64], node[128];
    int nnodes, priority;
    double n_gpus_per_node;
    usec_t at;    /* JOB_END: 0 = not known */
    usec_t limit; /* TIMEOUT */
};
struct sched_why {
    int position; /* in the line of its pool's competitors, from 1 */
    /* pool_too_small waiting_for_gpus waiting_for_cpus waiting_for_memory live_jobs_limit
     * queued_behind
     * backfill_would_delay quota_gpus quota_cpus quota_memory quota_running quota_gpu_hours held
     * nodes_not_usable nodes_unfit reclaiming giving_way */
    const char *code;
    char text[320];         /* the arguments of a message (base/message.h): the evidence */
    struct sched_hint hint; /* true: applied alone, the job starts in the next pass */
    char hint_text[240];    /* those of message "hint_<kind>"; "" without a hint */
};
/* False if it does not wait. Without the hint (cheap, for lists) when ret_hint is false. */
bool sched_explain(struct sched *s,
                   const char *id,
                   usec_t now,
                   bool want_hint,
                   struct sched_why *ret);

/* What else would keep it waiting if that reason (of sched_explain()) went: at most max, each with
 * its code and text alone. 0 if it does not wait. */
size_t sched_explain_more(struct sched *s,
                          const char *id,
                          usec_t now,
                          const char *but,
                          size_t max,
                          struct sched_why *ret);

/* What a node of its pool has for a job that waits, looked at alone. The words leave the process.
 */
#define SCHED_LOOK_TABLE(X)                                                                        \
    X(SERVES, serves)   /* it has room now */                                                      \
    X(KEPT, kept)       /* room that another job is promised */                                    \
    X(GPUS, gpus)       /* leases hold it, until look.until */                                     \
    X(CPUS, cpus)       /* so its CPUs */                                                          \
    X(MEMORY, memory)   /* and its memory */                                                       \
    X(FOREIGN, foreign) /* others hold it, for an unknown time */                                  \
    X(SMALL, small)     /* too small, empty */                                                     \
    X(UNFIT, unfit)     /* it is known not to meet a need */                                       \
    X(AWAY, away)       /* it takes no jobs: look.state */
#define X(name, word) SCHED_LOOK_##name,
enum sched_look_code { SCHED_LOOK_TABLE(X) SCHED_LOOK_END };
#undef X
const char *sched_look_to_string(enum sched_look_code code);
struct sched_look {
    const char *node, *state; /* borrowed until the scheduler is changed; state: NULL = usable */
    enum sched_look_code code;
    double free, needs; /* GPUs: whole ones that are free, and what the job's share has */
    usec_t until;       /* room again by then, if limits are true; 0 = not known */
    bool planned;       /* promised to this job */
};
/* The nodes of its pool but for those that never take jobs, at most max; 0: it does not wait. */
size_t sched_look_all(struct sched *s,
                      const char *id,
                      usec_t now,
                      size_t max,
                      struct sched_look *ret);

/* A lease that has to end before a job starts. */
struct sched_end {
    const char *id; /* borrowed until the lease ends */
    void *job;
    double gpus; /* that come free where the job would run */
    usec_t at;   /* by its limit; 0 = it has none */
    bool leaves; /* it was told to go, or gives way */
};
/* On the nodes that the job is promised, or would get if it stood first, in the order of their
 * ends; at most max. *ret_at: the start that it is promised; 0 = none, or its time is not known. */
size_t sched_ends_before(struct sched *s,
                         const char *id,
                         usec_t now,
                         size_t max,
                         struct sched_end *ret,
                         usec_t *ret_at);

struct sched_fit_count {
    int nodes;  /* of the pool, but for those that never take jobs */
    int unfit;  /* known not to meet a need */
    int unseen; /* not known to meet all */
};
void sched_count_fit(const struct sched *s,
                     const char *pool,
                     const char *needs,
                     struct sched_fit_count *ret);

/* Does d fit the nodes of the pool ("" = any) that meet the needs, when they are empty? */
bool sched_fits_empty(const struct sched *s,
                      const char *pool,
                      const char *needs,
                      const struct demand *d);
/* The most nodes that could each hold d's share, empty: "the largest size that would be taken". */
int sched_largest_gang(const struct sched *s,
                       const char *pool,
                       const char *needs,
                       const struct demand *d);

/* A node of the pool that is known not to meet a need, or that nobody asked (has is ""). */
struct sched_gap {
    const char *node; /* borrowed */
    struct needs_unmet lacks;
};
/* One after the other, *pos = 0 first; false: the end. Nodes that take no jobs now are among them,
 * those that never do are not. */
bool sched_gap_next(const struct sched *s,
                    const char *pool,
                    const char *needs,
                    size_t *pos,
                    struct sched_gap *ret);

struct sched_pool {
    double gpus, used, held, free, draining,
        bad;             /* GPUs; draining, bad: on nodes not usable, unused */
    double largest_gang; /* GPUs that one gang of whole nodes' free slots could get now */
    int nodes, queued;   /* usable nodes; jobs that wait and name it (or any pool) */
    usec_t next_free;    /* when the next lease on it is expected to end; 0 = not known */
};
void sched_pool(const struct sched *s, const char *pool, usec_t now, struct sched_pool *ret);
/* Counts only those nodes of the pool that meet the needs; `queued` is the whole pool's. */
void sched_pool_fit(const struct sched *s,
                    const char *pool,
                    const char *needs,
                    usec_t now,
                    struct sched_pool *ret);
/* The labels of the nodes of the table, one node after the other. *pos = 0 first; NULL: the end.
 * Borrowed. */
const char *sched_node_labels_next(const struct sched *s, size_t *pos);
/* Leased on this node. */
void sched_node_used(const struct sched *s, const char *node, double *ret_gpus, double *ret_cpus);
/* Ids of the leases on this node, the i-th; NULL at the end. Borrowed. */
const char *sched_node_lease(const struct sched *s, const char *node, size_t i);

size_t sched_queue_length(const struct sched *s);
size_t sched_lease_count(const struct sched *s);
struct sched_lease_view {
    const char *id; /* borrowed until it ends */
    void *job;
    double gpus;
    usec_t started_at, limit, expected_p50, expected_p90;
};
/* The leases, in no order that means anything but always the same. *pos = 0 first; false: the end.
 */
bool sched_lease_next(const struct sched *s, size_t *pos, struct sched_lease_view *ret);
/* The lease of this job; false: there is none. */
bool sched_lease_find(const struct sched *s, const char *id, struct sched_lease_view *ret);
/* The iterator over waiting jobs, held ones among them; started_at is 0. */
bool sched_waiting_next(const struct sched *s, size_t *pos, struct sched_lease_view *ret);
/* GPUs that jobs of a project wait for in a pool, or that a project is guaranteed (pool ""). In
 * 1/10000 of a GPU; texts are borrowed until the scheduler is changed. */
struct sched_want {
    const char *pool, *project;
    int64_t amount;
};
/* By pool and project: the gangs of jobs that only GPUs keep waiting. Such a job is not held, no
 * quota and no limit of live jobs bars it, its pool could hold it, and neither CPUs nor memory are
 * all that is short; it may be that GPUs are free, and kept for others. *ret is the caller's, to
 * be freed. Costs a look at each job that waits, and a search for room for each shape. */
size_t sched_wants(const struct sched *s, struct sched_want **ret);
/* The guarantees of projects; *ret is the caller's, to be freed. */
size_t sched_guarantees(const struct sched *s, struct sched_want **ret);

/* The job waiting at place i (0 …) of the order that a pass would take; NULL at the end.
 * Walking on from the last i is cheap. */
void *sched_queue_at(struct sched *s, size_t i, usec_t now);

/* NULL, or the first broken invariant: sums, order, no slot twice, nothing used beyond leases. */
const char *sched_check(const struct sched *s);

/* SPDX-License-Identifier: Apache-2.0 */
/* sched_state.h - what the files of the scheduler share; no other file includes it.
 *
 * Amounts are integers in 1/10000 (UNIT), as Ray counts. Everything that refers to something
 * else does so by its row's number (sched_table.h).
 *
 *   host -> kind (same labels, network and versions: hosts by free slots)
 *        <- pool (label set and needs: its kinds)
 *   lease -> part (its share on one host) -> host
 *   waiting job -> shape (pool and demand: what fits, remembered once for all of it)
 *               -> group (level and project: the order) with a lane per pool (places in line)
 *               -> line (same group, shape and quotas: they can start or not together) */
#pragma once
#include "base/buf.h"
#include "core/sched/line/sched_tree.h"
#include "core/sched/sched.h"
#include "core/sched/sched_table.h"

enum {
    UNIT = 10000,              /* one GPU, one CPU */
    MAX_SLOTS = GANG_GPUS_MAX, /* of one node */
    LEVEL_STARVED = 101,
    LEVEL_CLAIM = 102, /* within what its account is guaranteed */
    LEVELS = 103,      /* 0 … 100 are the priorities */
    ID_BUF = 64,
};

/* Longer than anything: an end that was not promised. Ends of such leases are in order of start. */
#define FAR ((usec_t)3650 * USEC_DAY)
#define NEVER UINT64_MAX
#define NO_LIMIT (INT64_MAX / 2)
#define STARVE_AFTER USEC_DAY /* limits.starve_after as installed */

/* A gang's share of one of its nodes. */
struct share {
    int whole, part; /* slots; and of one more, in 1/UNIT, 0 = none */
    int64_t cpus, memory;
};

struct shape {
    uint32_t row, pool;
    uint32_t refs, first_line;
    int nnodes;
    struct share driver, other; /* of the driver's node, of each other one */
    struct demand demand;
    int64_t gpus, cpus; /* of the whole gang */
    int64_t memory;
    uint64_t full_at;      /* does not fit while its pool's `grown` is this; 0 = not known */
    uint64_t bare_full_at; /* the same of its slots alone, whatever its CPUs and memory */
    uint64_t window_tick;  /* `window` is of this s->tick */
    usec_t window;         /* a job that fills a gap now may last so long; NEVER = any */
    uint64_t fits_stamp;   /* `fits` and `fits_ever` are of this s->nodes_stamp */
    bool fits;             /* when all leases are gone */
    bool fits_ever;        /* and what others hold is back, too */
};

struct kind {
    char *labels, *network, *versions, *only;
    uint32_t *hosts; /* n hosts, in order of their numbers */
    uint32_t n, words;
    uint64_t *bits; /* MAX_SLOTS + 1 rows of `words`: hosts with so many free slots */
    uint32_t count[MAX_SLOTS + 1];
    struct numbers pools;
};

struct pool {
    uint32_t row, refs;
    char *text, *needs;
    struct numbers kinds;
    uint64_t grown; /* s->tick when something came free in it */
};

struct host {
    uint32_t row;
    uint32_t kind, place; /* kind 0: not usable; place among the kind's hosts */
    char *name, *labels, *network, *versions, *why_not, *only;
    double gpus, cpus, memory, gpus_held, cpus_held; /* as told */
    bool usable, shareable, listed, slow;
    int n_slots, held_slots;
    int64_t cpus_total;   /* without those held */
    int64_t memory_total; /* NO_LIMIT: not known */
    int free;             /* whole slots that may be given away */
    int lost;             /* whole slots of leases that found none (more leased than there is) */
    uint64_t busy;        /* slots of which something is leased */
    uint16_t used[MAX_SLOTS]; /* of each, in 1/UNIT */
    int64_t gpus_used, cpus_used, memory_used;
    uint32_t first_part, last_part;
    uint32_t first_keep;
    uint64_t stamp; /* s->tick of its last change */
};

struct part {
    uint32_t row;
    uint32_t lease, host, next; /* next of the lease, in the gang's order */
    uint32_t host_prev, host_next;
    uint64_t slots; /* whole ones */
    int16_t shared; /* the slot of which it has `amount`; -1 = none */
    uint16_t amount;
    int lost;    /* whole slots that it should have and has not */
    bool forced; /* restored onto a slot that was not free */
    int64_t gpus, cpus, memory;
};

/* A lease as it must be remembered, and a job that waits: the same facts. */
struct facts {
    char id[ID_BUF];
    int64_t seq;
    int priority; /* as asked */
    uint32_t project, user;
    bool restartable;
    usec_t queued_at, limit, p50, p90;
    usec_t served, slice, saves_every; /* 0 but under flow */
    int64_t memory;                    /* in 1/UNIT GiB, of the whole gang: for quotas */
    void *job;
};

struct lease {
    uint32_t row, first_part;
    struct facts f;
    int64_t gpus, cpus;
    usec_t started_at, ends; /* ends: promised by its limit; FAR after the start if by none */
    uint64_t order;          /* of its start among leases */
    bool leaving;            /* told to go, or known to */
    bool gives_way;          /* ... to a job that goes before it under flow, after a checkpoint */
    usec_t leaves_at;
    usec_t steady_from;           /* from then on it runs for its slice */
    usec_t saved_at, saves_every; /* 0 = not known */
};

/* There are 10,000 of them, and of each copy as many again: ordered so that no byte is lost. */
struct waiting {
    uint32_t row, shape;
    struct facts f;
    char *avoid;     /* NULL = none */
    usec_t lasts;    /* its limit, or what stands for it */
    usec_t promised; /* the start that it was promised when it first became first; 0 = not yet */
    uint64_t promised_in; /* the latest walk in which it was */
    usec_t due;           /* it could have started, and lets others pass until then; 0 = not yet */
    bool held;
    bool blocked;   /* it was the first that did not fit */
    uint8_t claims; /* 1 << enum sched_account: within that account's guarantee */
    int level;
    uint32_t group, lane, line; /* 0 while it is held */
    uint64_t a, b;              /* its place in its group */
    uint64_t stay;              /* which stay in line this is: for s->ageing */
    struct twig in_group, in_lane, in_line;
};

struct group {
    uint32_t row, project; /* project 0: all */
    int level;
    uint32_t root, first_lane;
    uint32_t prev, next; /* of the level */
};

struct lane {
    uint32_t row, group, pool, root, next;
    uint32_t first_line;
};

struct line {
    uint32_t row, group, shape;
    uint32_t user, project; /* 0: they have no quota, so that it does not matter whose a job is */
    uint32_t root;
    uint32_t prev, next;           /* of the shape */
    uint32_t lane_prev, lane_next; /* of the lane */
};

struct account {
    uint32_t row, refs; /* refs: leases, and jobs that wait */
    enum sched_account kind;
    char *name;
    bool has_quota, claims_stale;
    struct sched_quota quota;
    int64_t gpus, cpus, memory;  /* leased */
    int64_t gpus_leaving;        /* of those, told to go */
    int running, queued, claims; /* claims: of those queued */
    double month, decayed;       /* GPU-seconds until `at` */
    usec_t at;
    double standing; /* in fair share at standing_at */
    usec_t standing_at;
    bool standing_known;
};

/* The slots that one promise keeps on one host from the time `at` on. */
struct keep {
    uint32_t row, next;
    struct share share;
    usec_t at;
};

struct promise {
    uint32_t job; /* waiting */
    uint32_t pool;
    bool yields; /* it could have started, but shorter ones may go before until `at` */
    bool rests;  /* on leases that give way: jobs behind it may ask for others */
    usec_t at;
    struct numbers hosts;
};

/* The place of a job in the order: highest level first, then the rest upwards. */
struct rank {
    int level;
    double share;
    uint64_t a, b;
    uint32_t job;
};

/* An entry of the heap: a lane in order (row 0) or one of its lines, a line that fills gaps, or
 * a group of sched_queue_at(). */
struct candidate {
    uint32_t row;
    struct rank rank;
    uint64_t sum; /* GPUs before it in its group */
};
struct heap {
    struct candidate *v;
    size_t n, cap;
};

enum walk_phase { WALK_NEW, WALK_ORDER, WALK_FILL, WALK_DONE };

struct walk {
    enum walk_phase phase;
    uint64_t stamp; /* it is of this s->stamp and this time */
    usec_t now;
    uint64_t count; /* walks so far, restarted ones counted once */
    struct heap heap;
    struct numbers
        taken; /* pools of all jobs that wait in line: jobs that compete with these wait, too */
    size_t n_yields; /* promises of yielding jobs */
    size_t n_firm;   /* promises that no lease gives way for, under flow */
    bool asked;      /* all yielding jobs were passed by every job that may: now no job yields */
    uint64_t vain_stamp; /* no lease could be asked to go at this s->stamp and time */
    usec_t vain_now;
    struct promise *promises;
    size_t n_promises;
};

/* The start that hosts' leases promise for one share; a cache. */
struct foresight {
    struct share share;
    usec_t *at;
    uint64_t *stamp;
    uint32_t cap;
    uint64_t used; /* s->tick: the least recently used makes room */
};
enum { N_FORESIGHT = 8 };

/* A lease that is leaving and that the caller has not been told yet. */
struct telling {
    uint32_t lease;
    uint64_t order; /* of the lease: another may have its row by now */
    usec_t at_save; /* as in a decision */
    char text[256]; /* the job or account that needs the room */
};

struct texts {
    struct buf nodes, driver;
};

struct age {
    usec_t queued_at;
    uint32_t job;
    uint64_t stay;
};

struct sched {
    unsigned char seed[16];
    uint64_t salt;
    struct sched_limits limits;
    usec_t now;           /* the latest that was told */
    uint64_t tick;        /* rises with every change */
    uint64_t stamp;       /* tick of the last change that the pass did not make itself */
    uint64_t nodes_stamp; /* tick of the last change of totals, labels, usability */
    bool has_slow;        /* a host that is not used while others do */

    struct rows hosts, pools, shapes, parts, leases, accounts, waiting, groups, lanes, lines, keeps;
    struct index host_of, pool_of, shape_of, account_of, lease_of, waiting_of, group_of, lane_of,
        line_of;
    struct kind *kinds; /* [0] is no row */
    uint32_t n_kinds;
    uint32_t levels[LEVELS]; /* first group of each */
    struct age *ageing;      /* heap: the next to be starved first */
    size_t n_ageing, cap_ageing;
    size_t n_waiting, n_leases;
    uint64_t lease_order, stays;
    struct numbers guaranteed; /* accounts that have a guarantee */

    struct walk walk;
    struct telling *tellings;
    size_t n_tellings;
    struct foresight foresight[N_FORESIGHT];
    struct {
        uint64_t stamp;
        usec_t now;
        bool valid;
        struct numbers jobs;
        struct heap heap;
    } listed;            /* the order as sched_queue_at() tells it */
    struct texts *texts; /* what borrowed texts point into */
};

#define ROW_OF(type, table)                                                                        \
    static inline struct type *type##_at(const struct sched *s, uint32_t i)                        \
    {                                                                                              \
        return rows_at(&s->table, i);                                                              \
    }
ROW_OF(host, hosts)
ROW_OF(pool, pools)
ROW_OF(shape, shapes)
ROW_OF(part, parts)
ROW_OF(lease, leases)
ROW_OF(account, accounts)
ROW_OF(waiting, waiting)
ROW_OF(group, groups)
ROW_OF(lane, lanes)
ROW_OF(line, lines)
ROW_OF(keep, keeps)
#undef ROW_OF

/* Something changed that a pass has to look at. */
static inline void changed(struct sched *s)
{
    s->stamp = ++s->tick;
}

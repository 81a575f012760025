/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - everything that must outlive argusd, in one SQLite file.
 *
 * The loop thread says what changed; it never waits and is never refused. The
 * changes of one loop turn are a batch: they reach the disk together or not at
 * all, in order. A store thread owns the only write connection and commits every
 * batch that is ready as one transaction (WAL, synchronous=FULL), so that many
 * submits share one fsync while the next ones gather.
 *
 *   store_put_job(s, &row); store_put_event(s, &ev);   in any callback
 *   answer.batch = store_batch(s);                     what the answer has seen
 *   … at the end of the turn the store hands the batch over by itself …
 *   on_durable(batch): every answer and outside effect with .batch <= batch may leave
 *
 * A commit that fails (disk full, I/O error) is tried again until it works;
 * on_trouble tells when that begins and ends, and nothing is undone in memory.
 * What can never be committed (a corrupt file, a row that breaks a constraint: our
 * own bug) ends the process with one line. Readers see only what is on disk.
 *
 * All functions are for the loop thread. All texts given are copied, NULL is
 * allowed unless said otherwise. All times are wall times in microseconds, 0 = not
 * yet. One process at a time may have a store open: a lock file stands beside it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/clock.h"
#include "base/err.h"

struct store;

struct store_options {
    const char *path; /* of the database file, on a local disk; its directory exists */
    uv_loop_t *loop;  /* borrowed; must run once more after store_close() */
    /* Every change up to and with this batch is on disk. Called on the loop. */
    void (*on_durable)(uint64_t batch, void *arg);
    /* Commits began to fail (why: one sentence, borrowed), or work again (why is NULL).
     * Called on the loop; may be NULL. */
    void (*on_trouble)(bool failing, const char *why, void *arg);
    void *arg;
    const char *vfs;  /* SQLite's file layer; NULL = the default. Tests put faults there */
    unsigned readers; /* reads that run at the same time; 2 … 16, 0 = 2 */
};

/* Opens, creates or migrates. ERR_CONFLICT: another process has it; ERR_REFUSED:
 * made by a newer argusd, not a store of ours, or on a network file system; ERR_STORE: the file
 * system or SQLite says no. Neither handle of the store keeps the loop alive. */
must_check int store_open(const struct store_options *opt, struct store **ret, struct err *err);

/* Commits what is pending, ends the thread, drops running reads (their callbacks never
 * fire). s is gone, its memory is freed once the loop has run. ERR_STORE: the
 * last batches could not be written. NULL is fine. */
must_check int store_close(struct store *s, struct err *err);

/* Only that no other process has it, for as long as *ret is open: for who replaces the file.
 * ERR_CONFLICT, ERR_STORE. */
must_check int store_lock(const char *path, int *ret, struct err *err);

/* ---- batches ---- */

/* The number of the newest batch whose changes the caller may have seen: the open batch if it
 * has changes, else the last batch that was handed over. Never falls. */
uint64_t store_batch(const struct store *s);
/* Everything up to and with this batch is on disk: store_batch() <= store_durable()
 * means that an answer may leave at once. */
uint64_t store_durable(const struct store *s);
/* End the turn now. The store does this by itself before the loop goes to sleep. */
void store_flush(struct store *s);
/* Between two requests of a long turn: if the thread sleeps and what was put so far is
 * worth a commit, it starts now and not at the end of the turn, so that disk and loop work
 * side by side. Only where everything that belongs together was put. */
void store_flush_if_idle(struct store *s);
/* Commits fail at present. */
bool store_is_failing(const struct store *s);
/* ERR_STORE with a sentence while they do. */
must_check int store_check(const struct store *s, struct err *err);

/* ---- rows: written by store_put_*, handed out by loads and reads ---- */

/* Where a job came from. A job that came from nowhere, and has no note, has none. */
struct store_origin {
    const char *parent, *how; /* the id of a job, and what this one is to it; NULL: none */
    int64_t step;             /* of the parent's checkpoint that it began with; 0 = none */
    const char *note;         /* why it was made; NULL: nobody said */
};

struct store_job {
    int64_t seq; /* chosen by the caller, > 0, increasing: the order of lists */
    /* Never change after store_put_job(), but for pool and spec: store_respec_job(). id is unique
     * and not NULL. */
    const char *id, *name, *user, *project, *workload, *cluster, *pool;
    usec_t queued_at;
    const char *spec; /* the text as it was given; NULL in lists */
    /* Change with store_update_job(). */
    const char *state; /* not NULL */
    bool live;         /* the state is not a terminal one: loaded at start */
    const char *flags, *reason_code, *reason_text;
    int64_t nnodes;
    double n_gpus_per_node;
    int64_t priority;
    usec_t started_at, ended_at;
    int64_t attempt, restarts, step;
    int64_t gpu_held; /* by its leases that are over: 1/10000 of a GPU times ms (core/account); a
                         job is put without any */
    bool has_exit_code;
    int64_t exit_code;
    const char *detail;         /* JSON text of everything else; NULL in lists and, in an
                                   update, NULL = leave it as it is */
    struct store_origin origin; /* read by store_list_family() alone, put by store_put_origin() */
};

struct store_attempt {
    int64_t job_seq, k;
    const char *ray_id, *state;
    usec_t started_at, ended_at;
    const char *detail;
};

enum { STORE_HASH_BYTES = 32 };

/* Why an attempt ended; k 0: of the job before its first attempt. */
struct store_finding {
    int64_t job_seq, k;             /* together the key */
    const char *class, *body;       /* not NULL; body: JSON text */
    const char *rule, *node, *rank; /* may be NULL */
    usec_t at;                      /* when it was made */
    double confidence;
};

struct store_event {
    int64_t seq; /* chosen by the caller, > 0, increasing without gap or with */
    usec_t at;
    int64_t job_seq; /* 0 = about no job */
    const char *job; /* its id: filled in by reads, ignored by store_put_event() */
    const char *kind, *actor, *from_state, *to_state, *reason_code, *text;
    const char *data;   /* JSON text */
    const char *object; /* "kind/name" of what it is about, when that is no job */
    /* Who may see it, for reads with a scope, which alone look at these: the kind of the thing
     * that it is about, whose it is and of which project. Without a kind they are those of its
     * job; of no job and of no kind, it is for nobody who has a scope. */
    const char *thing, *owner, *project; /* project may be STORE_EVERYBODY; reads leave them out */
    const unsigned char *hash;           /* STORE_HASH_BYTES, of the chain; NULL = from before it */
};

struct store_token {
    const unsigned char *hash; /* STORE_HASH_BYTES; the key */
    const char *id, *name, *user, *role;
    usec_t created_at, expires_at, last_use_at, revoked_at;
};

struct store_user {
    const char *name; /* the key */
    const char *role;
    usec_t created_at;
    const char *detail; /* JSON text */
};

/* Small registries whose truth is in memory: nodes, projects, quotas, … */
struct store_entry {
    const char *kind, *name; /* together the key; not NULL */
    const char *body;        /* JSON text, not NULL */
    usec_t at;
};

/* Sums of one interval for one key, as they are added up; what they mean is the caller's. */
enum { STORE_USAGE_SUMS = 11 };
struct store_usage {
    const char *cluster, *labels, *project, *user, *workload; /* together with step and at the key;
                                                                 not NULL */
    int64_t step, at;                                         /* s */
    int64_t sums[STORE_USAGE_SUMS];
};

struct store_idempotency {
    const char *user, *key;         /* together the key */
    const unsigned char *body_hash; /* STORE_HASH_BYTES */
    const char *job_id;
    usec_t at;
};

/* A new job; seq and id were never used before (else the process ends: check first). */
void store_put_job(struct store *s, const struct store_job *job);
/* Writes what may change; the other members but seq are ignored. */
void store_update_job(struct store *s, const struct store_job *job);
/* The pool and the spec of a job that waits: nothing else of it, see store_update_job(). */
void store_respec_job(struct store *s, int64_t seq, const char *pool, const char *spec);
/* The origin of a job that is put: once. */
void store_put_origin(struct store *s, int64_t seq, const struct store_origin *origin);
/* The note of a job with this seq, with an origin or without; NULL takes it away. */
void store_put_note(struct store *s, int64_t seq, const char *note);
/* These add a row or replace the one with the same key. */
void store_put_attempt(struct store *s, const struct store_attempt *attempt);
void store_put_finding(struct store *s, const struct store_finding *finding);
void store_put_token(struct store *s, const struct store_token *token);
void store_put_user(struct store *s, const struct store_user *user);
void store_put_entry(struct store *s, const struct store_entry *entry);
void store_put_idempotency(struct store *s, const struct store_idempotency *key);
void store_put_meta(struct store *s, const char *key, const char *value);
/* Nothing happens if there is none. */
void store_remove_token(struct store *s, const unsigned char hash[static STORE_HASH_BYTES]);
void store_remove_user(struct store *s, const char *name);
void store_remove_entry(struct store *s, const char *kind, const char *name);
/* Events are only added. */
void store_put_event(struct store *s, const struct store_event *event);
/* Adds the sums to those of the row with this key. */
void store_add_usage(struct store *s, const struct store_usage *usage);
/* Forget the rows of this step that began before. */
void store_prune_usage(struct store *s, int64_t step, int64_t before);
/* Forget this user's idempotency keys older than this; NULL: everybody's. */
void store_prune_idempotency(struct store *s, const char *user, usec_t before);

/* ---- reads at start: synchronous ---- */

/* Each is called once per row, rows are borrowed for the call; NULL = not wanted. */
struct store_load_ops {
    void (*on_job)(const struct store_job *job, void *arg); /* live ones, oldest first */
    void (*on_attempt)(const struct store_attempt *attempt,
                       void *arg);            /* of live jobs, after them */
    void (*on_id)(const char *id, void *arg); /* of every job there ever was */
    void (*on_token)(const struct store_token *token, void *arg);
    void (*on_user)(const struct store_user *user, void *arg);
    void (*on_entry)(const struct store_entry *entry, void *arg); /* by kind, name */
    void (*on_idempotency)(const struct store_idempotency *key, void *arg);
    void (*on_meta)(const char *key, const char *value, void *arg);
};

struct store_last {
    int64_t job_seq, event_seq;                 /* the highest there are, 0 = none */
    unsigned char event_hash[STORE_HASH_BYTES]; /* of the newest event */
    bool has_event_hash;
};

must_check int store_load(struct store *s,
                          const struct store_load_ops *ops,
                          void *arg,
                          struct store_last *ret,
                          struct err *err);

/* Is there a job with this id on disk? A few microseconds; what is not yet durable is
 * the caller's to know. ERR_STORE. */
must_check int store_has_id(struct store *s, const char *id, bool *ret, struct err *err);

/* ---- reads at run time: on libuv's worker pool ---- */

struct store_read; /* a read that is under way */

/* What a query for usage groups by. */
enum store_usage_by {
    STORE_USAGE_BY_CLUSTER,
    STORE_USAGE_BY_LABELS,
    STORE_USAGE_BY_PROJECT,
    STORE_USAGE_BY_USER,
    STORE_USAGE_BY_WORKLOAD,
    STORE_USAGE_BYS
};
struct store_usage_sum {
    const char *name; /* of what is grouped by */
    int64_t point;    /* from 0 */
    int64_t sums[STORE_USAGE_SUMS];
};

enum { STORE_COUNTS_MAX = 16 };

/* How many jobs are in a state. */
struct store_count {
    char state[24];
    int64_t n;
};

struct store_result {
    struct err err; /* code 0: the rest is valid */
    const struct store_job *jobs;
    size_t njobs;
    const struct store_attempt *attempts;
    size_t nattempts;
    const struct store_event *events;
    size_t nevents;
    const struct store_finding *findings;
    size_t nfindings;
    const struct store_usage_sum *usage;
    size_t nusage;
    const char *next; /* cursor of the next page, NULL after the last row */
    bool is_cut;      /* there are more than a family may have */
    int64_t total;    /* of jobs, on all pages; of the same filters but those of state: */
    struct store_count counts[STORE_COUNTS_MAX];
    size_t ncounts;
    void *rendered; /* what render returned */
};

/* The receivers of a result, which is borrowed for each call. */
struct store_then {
    /* On a worker thread, may be NULL: turn rows into text there and not on the loop.
     * Touches nothing but the result and what arg holds for it alone. */
    void *(*render)(const struct store_result *r, void *arg);
    /* On the loop, once, unless the read is cancelled; never from within store_list_…().
     * rendered is the callee's now. */
    void (*done)(const struct store_result *r, void *arg);
    /* Frees what render made when done will never run; may be NULL. Any thread. */
    void (*drop)(void *rendered);
    /* The last call of each read, cancelled or not: from here on no thread touches arg. On the
     * loop; from within store_read_cancel() if the read had not begun. May be NULL; needed where
     * render reads what is freed when the read is cancelled. */
    void (*release)(void *arg);
    void *arg;
};

/* In place of an event's project: a thing that is everybody's. */
#define STORE_EVERYBODY "*"
/* What an event without a kind of thing is about. */
#define STORE_THING_JOB "job"

/* What somebody may see: jobs of this user and of these projects. */
struct store_scope {
    const char *user;            /* not NULL */
    const char *const *projects; /* each once */
    size_t nprojects;            /* at most STORE_SCOPE_MAX; more are an error */
};

enum {
    STORE_SCOPE_MAX = 256,
    STORE_PAGE_MAX = 1000,
    STORE_ATTEMPTS_MAX = 64, /* of one job in a list; a job by itself has them all */
    STORE_STATES_MAX = 16,
    STORE_FLAGS_MAX = 8,
    STORE_CURSOR_MAX = 32
};

enum store_job_sort {
    STORE_SORT_NEWEST, /* by seq: the only order that is read from an index */
    STORE_SORT_ID,
    STORE_SORT_NAME,
    STORE_SORT_USER,
    STORE_SORT_PROJECT,
    STORE_SORT_WORKLOAD,
    STORE_SORT_CLUSTER,
    STORE_SORT_POOL,
    STORE_SORT_STATE,
    STORE_SORT_PRIORITY,
    STORE_SORT_NNODES,
    STORE_SORT_GPUS,
    STORE_SORT_STARTED,
    STORE_SORT_ENDED,
    STORE_SORT_RAN, /* how long it has run */
    STORE_SORT_RESTARTS,
    STORE_SORT_STEP,
    STORE_SORT_GPU_HOURS,
    STORE_SORTS
};
/* "queued_at" for the newest, "ran" …; back STORE_SORTS for another word. */
const char *store_job_sort_to_string(enum store_job_sort by);
enum store_job_sort store_job_sort_from_string(const char *word);

struct store_job_query {
    const char *const *states; /* any of these; more than STORE_STATES_MAX are an error */
    size_t nstates;
    bool live;    /* only jobs that have not ended */
    bool no_live; /* the caller knows that none of those fits: they are not looked through */
    /* NULL = any; with commas, any of these. */
    const char *user, *project, *cluster, *pool, *workload;
    const char *const *flags; /* with any of these; more than STORE_FLAGS_MAX are an error */
    size_t nflags;
    /* With one attempt that failed by one of these classes, and for which one of these nodes may be
     * at fault, each with commas; NULL = any. */
    const char *failure, *failure_node;
    bool by_gpus; /* with so many GPUs in all, where a part of one counts as one */
    int64_t gpus_least, gpus_most;
    const struct store_scope *scope; /* NULL = everything */
    usec_t since, until;             /* queued at or after / before; 0 = open */
    /* With an attempt that held its slots at some moment from one (0 = ever) until before the other
     * (0 = open): it had them before ran_until, and not given back before ran_since. */
    usec_t ran_since, ran_until;
    const char *q;      /* part of the id or the name, ASCII case ignored */
    const char *cursor; /* `next` of the page before, in the same order; NULL = the first page */
    enum store_job_sort sort;
    bool ascending;     /* else the greatest first; what a job does not have goes last either way */
    usec_t now;         /* wall clock, for STORE_SORT_RAN */
    bool want_count;    /* how many there are on all pages: result.total and result.counts */
    unsigned limit;     /* rows, 1 … STORE_PAGE_MAX */
    unsigned newest;    /* look at no job but this many, the newest of all users; 0 = at all */
    bool want_detail;   /* else it is NULL */
    bool want_attempts; /* of these jobs, the first STORE_ATTEMPTS_MAX of each, in their order */
};

/* Without spec and detail, newest first if no other order is asked for. Paging with `next` gives
 * every job that matches all the time exactly once, whatever is added meanwhile; in another order
 * also while no row changes its place. Orders and counts are of what is on disk and look at every
 * job that fits. ERR_BAD_REQUEST: not a cursor of ours, or of another order. */
struct store_read *store_list_jobs(struct store *s,
                                   const struct store_job_query *query,
                                   const struct store_then *then);

/* One job with spec, detail and attempts. ref is an id, else the name of exactly one
 * job, else the beginning of exactly one id or name; of each the user's own go before
 * those of others. Jobs outside the scope are not there. ERR_NOT_FOUND; ERR_CONFLICT names
 * the first few that ref could mean. */
struct store_job_ref {
    const char *ref;
    const char *user;                /* NULL = no user goes first */
    const struct store_scope *scope; /* NULL = everything */
    bool is_id; /* ref is an id: no job is looked for that is called so or begins with it */
};
struct store_read *store_find_job(struct store *s,
                                  const struct store_job_ref *ref,
                                  const struct store_then *then);

/* The jobs that came of one another, as far as they are in the scope: from a job up to its oldest
 * ancestor, and from there all that came of that one. */
enum {
    STORE_FAMILY_MAX = 1000,          /* jobs */
    STORE_FAMILY_UP_MAX = 500,        /* of them the job that is asked about and its ancestors */
    STORE_FAMILY_LOOKS_MAX = 100000,  /* jobs looked at, seen or not */
    STORE_FAMILY_BYTES_MAX = 8 << 20, /* of specs and details; jobs behind have neither */
};
struct store_family_query {
    const char *id;                  /* exactly */
    const struct store_scope *scope; /* NULL = everything */
};
/* With spec, detail and origin; the oldest ancestor first, each job behind its parent, and whatever
 * the ceilings leave out, the job itself and its line are there. The first one's origin has neither
 * a parent nor what it is to one: that job is out of sight. ERR_NOT_FOUND. */
struct store_read *store_list_family(struct store *s,
                                     const struct store_family_query *query,
                                     const struct store_then *then);

/* Which events a user sees: `own`, `shared` and `any` are kinds of things, "job,node", of which he
 * sees his own, those of his projects or of everybody, and simply each. */
struct store_event_scope {
    const struct store_scope *who;
    const char *own, *shared, *any; /* not NULL */
};

struct store_event_query {
    int64_t since;             /* only events after this one; 0 = from the first */
    int64_t before;            /* only events before this one; 0 = to the last */
    const char *job;           /* only of the job with exactly this id */
    const char *kinds, *actor; /* only of these kinds ("stop,ended"), by this one; NULL */
    const char *object;        /* only about it: "node/n1", or "node" for all; NULL */
    usec_t from, to;           /* only of this time: from on, and before to; 0 = no bound */
    unsigned limit;            /* rows, 1 … STORE_PAGE_MAX */
    bool newest_first;         /* else oldest first */
    const struct store_event_scope *scope; /* NULL = everything */
};

/* Events by seq; page on with since (before, when newest first) = the last row's seq. */
struct store_read *store_list_events(struct store *s,
                                     const struct store_event_query *query,
                                     const struct store_then *then);

/* All findings of one job, by attempt. */
struct store_read *store_list_findings(struct store *s,
                                       int64_t job_seq,
                                       const struct store_then *then);

/* A stretch of rows of one step, from and to in s; a row belongs to where it begins. */
struct store_usage_span {
    int64_t step, from, to;
};
enum { STORE_USAGE_SPANS = 3, STORE_USAGE_ROWS_MAX = 200000 };
struct store_usage_query {
    enum store_usage_by by;
    struct store_usage_span spans[STORE_USAGE_SPANS];
    size_t n_spans;
    int64_t origin, point;           /* a row of time `at` counts for point (at - origin) / point */
    const char *project, *user;      /* NULL = any */
    bool owned;                      /* only what somebody held */
    const struct store_scope *scope; /* NULL = everything */
};

/* Sums by name and point, of each span by itself: one name and point may come once per span.
 * ERR_TOO_LARGE: more than STORE_USAGE_ROWS_MAX. */
struct store_read *store_list_usage(struct store *s,
                                    const struct store_usage_query *query,
                                    const struct store_then *then);

/* Forget a read: done never fires. Only before done was called. A long one is
 * interrupted. */
void store_read_cancel(struct store_read *r);

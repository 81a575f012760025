/* SPDX-License-Identifier: Apache-2.0 */
/* jobs.h - the jobs that are not over: their table, and the one way to change them.
 *
 * jobs_apply() lets core decide, writes the change and its event into the open
 * batch, and remembers what then has to be done; once the batch is on disk the
 * actor is called (decide, commit, act). It sends and reads nothing itself. */
#pragma once
#include <stdbool.h>
#include <uv.h>

#include "argusd/ground/events.h"
#include "argusd/jobs/record.h"
#include "base/clock.h"
#include "base/order/heap.h"
#include "core/job/job_event.h"
#include "core/past/forecast.h"
#include "core/sched/sched.h"
#include "core/spec/spec.h"
#include "store/store.h"

struct jobs;
struct jobs_waiter;

/* Lists of due.h. */
enum live_roster { LIVE_PLACED, LIVE_AWAITED, LIVE_UNTRIED, LIVE_CHANGED, LIVE_ROSTERS };

/* What each service keeps for a job while the job is in memory, see live_keep(). */
enum live_slot {
    LIVE_FORESIGHT, /* jobs/foresight.c */
    LIVE_RECLAIM,   /* jobs/queue.c */
    LIVE_SAVES,     /* jobs/queue.c */
    LIVE_LANE,      /* jobs/lanes.c */
    LIVE_TRIAL,     /* launch/trials.c */
    LIVE_SENDER,    /* watch/sender.c */
    LIVE_STOPPER,   /* watch/stopper.c */
    LIVE_SIGHT,     /* watch/sight.c */
    LIVE_STRAYS,    /* watch/watcher.c */
    LIVE_DEADLINES, /* watch/deadlines.c */
    LIVE_ENDING,    /* watch/ending.c */
    LIVE_META,      /* watch/meta.c */
    LIVE_SLOTS
};

/* A job that is not over. */
struct live {
    struct job *job;
    struct record_extra extra;
    char *needs; /* what its code asks of a node, see jobs_ops; of one that waits, NULL = nothing */
    struct jobs *jobs;
    uint32_t place[LIVE_ROSTERS];          /* from 1; 0: it is not in that list */
    struct heap_item span_due, look, wait; /* of the heaps of due.h */

    bool has_dir;          /* jobs/<id> was made for it, or may have been: it had an attempt */
    bool pausing;          /* the scheduler holds it for its restart's backoff */
    int restored_attempts; /* its attempts at the start of argusd, unless it was queued; else 0 */
    usec_t accepted_at;    /* monotonic: when Ray took the attempt under our eyes */
    void **kept;           /* the services' own, by enum live_slot; NULL: none asked yet */
    int busy;              /* asynchronous work that still points here */
    bool over;             /* ended: freed once that is on disk and nobody is busy with it */
    uint64_t end_batch;
    struct live *ended_next;

    struct jobs_waiter *waiters;
    uint64_t act_batch;
    bool act_queued;
    struct live *act_next;
};

/* A service's own memory of this job: zeroed when it is first asked for, and freed with the job,
 * so it must own nothing else. It is not stored. Another service asks its owner and does not look
 * itself. */
void *live_keep(struct live *l, enum live_slot slot, size_t size);
/* NULL if it was never asked for. */
const void *live_kept(const struct live *l, enum live_slot slot);

struct jobs_ops {
    /* The batch with the job's last change is on disk: do what job_act() says, and write what
     * its directory shows. For one that is over too. */
    void (*act)(struct live *l, void *arg);
    /* It ended, within the open batch: what is owed for it goes into the same batch. May be NULL.
     */
    void (*ended)(struct live *l, void *arg);
    /* How far its trial is, a message; empty if it has not begun. May be NULL. */
    void (*trial)(const struct live *l, struct reason *ret, void *arg);
    /* What its code asks of a node (core/job/needs.h), heap; NULL: nothing. Asked whenever it comes
     * into the queue. May be NULL. */
    char *(*needs)(const struct live *l, void *arg);
    /* Its lease on these nodes has just ended, with their GPUs where they are known.
     * May be NULL. */
    void (*lease_ended)(struct live *l, const struct gang *gang, void *arg);
    void *arg;
};

struct jobs_parts { /* all borrowed */
    uv_loop_t *loop;
    struct store *store;
    struct sched *sched;
    struct events *events;
    struct accounting *accounting;
    struct jobs_ops ops;
    int64_t next_seq;
    usec_t reclaim_grace; /* as sched's limits have it */
};

struct jobs *jobs_new(const struct jobs_parts *parts);
void jobs_free(struct jobs *js); /* NULL is fine */

/* A row of the store at start, the oldest first. The job joins the queue or gets its lease
 * back, and what acts were due before the restart are due again. */
void jobs_restore(struct jobs *js, struct job *taken, const struct record_extra *taken_extra);

/* NULL if there is none. Borrowed until the loop goes on. */
struct live *jobs_find_id(const struct jobs *js, const char *id);
/* The same, or one that is over and whose end is not on disk yet: the store knows it only as
 * it was before. */
struct live *jobs_find_any(const struct jobs *js, const char *id);
/* Ray's record of this id is still of use: a job's newest attempt has it and was not given up,
 * or what changed is not on disk yet. */
bool jobs_needs_ray(const struct jobs *js, const char *ray_id);
/* Jobs may change and end during the walk; one that is added or ends is met or not. */
struct live *jobs_next(const struct jobs *js, size_t *pos);
/* The same walk over those that hold slots alone: every state but QUEUED. */
struct live *jobs_next_placed(const struct jobs *js, size_t *pos);
/* The same over those whose trial is due. */
struct live *jobs_next_untried(const struct jobs *js, size_t *pos);
/* For one who asks all jobs each second: the same over those that changed, or whose time of
 * jobs_look_later() has come, since they were told jobs_seen(). Wall times. */
struct live *jobs_next_changed(const struct jobs *js, size_t *pos);
void jobs_look(struct jobs *js, usec_t now);
void jobs_seen(struct live *l);
void jobs_look_later(struct live *l, usec_t at);
/* Since when the one waits that waits the longest and is not held, by the wall; 0: none does. */
usec_t jobs_oldest_wait(const struct jobs *js);
/* Calls tick for each job that the clock has to look at now: those that hold slots, and of the
 * queue those with somebody who waits for news, or with a span that ends. */
void jobs_each_due(struct jobs *js, void (*tick)(struct live *l, void *arg), void *arg);
size_t jobs_count(const struct jobs *js, enum job_state state);
/* False: no live job is of this cluster, pool and workload (NULL: any), nor is one whose end is not
 * on disk. */
bool jobs_may_have(const struct jobs *js,
                   const char *cluster,
                   const char *pool,
                   const char *workload);
const struct sched *jobs_sched(const struct jobs *js); /* to ask, not to change */

/* The live ones are there: learn from those that ended. */
void jobs_restored(struct jobs *js);

/* A new job, taken over, waits from now on. Its id is not used yet. */
struct live *jobs_add(struct jobs *js,
                      struct job *taken,
                      struct record_extra *taken_extra,
                      usec_t now);
int64_t jobs_next_seq(struct jobs *js);

/* Returns true if it changed anything. l stays valid until the loop goes on, see l->over. */
bool jobs_apply(struct live *l, const struct job_event *e, const char *actor, usec_t now);
/* An event without a transition: seen on the job's own list. */
void jobs_note(struct live *l, const char *kind, const char *code, const char *text, usec_t now);
/* The same, with samples of the training to look at: a JSON list, which the event's data has. */
void jobs_note_samples(struct live *l,
                       const char *kind,
                       const char *code,
                       const char *text,
                       const char *samples,
                       usec_t now);
void jobs_note_by(struct live *l,
                  const char *kind,
                  const char *actor,
                  const char *code,
                  const char *text,
                  usec_t now);
/* The job's stored detail changed outside a transition (proof, argv). */
void jobs_save(struct live *l);
/* Stores the job's detail as jobs_save() does, but tells no follower: for figures that change by
 * themselves. */
void jobs_keep(struct live *l);
/* Stores a change to the job's past, also when the job is over. Followers are told; the change
 * starts no action of Argus. */
void jobs_amend(struct live *l);

/* Now, on both clocks, for job_deadline() and the like. */
struct moment jobs_moment(const struct jobs *js);
/* How long it has been in its state. */
usec_t jobs_in_state(const struct live *l);
/* The scheduler's clock: wall time as it was at the start, and steady from there. Whoever hands
 * a `now` to sched_*() takes this. */
usec_t jobs_now(const struct jobs *js);
/* A time of that clock, by the wall clock of now; 0 stays 0. */
usec_t jobs_to_wall(const struct jobs *js, usec_t at);

/* Start what may start, ask back what is wanted back. now: wall. */
void jobs_admit(struct jobs *js, usec_t now);
/* What the passing of time brings: to all, once a second, and to one of them. */
void jobs_tick_all(struct jobs *js, usec_t now);
void jobs_tick(struct live *l);
/* A checkpoint of its attempt is complete: under policy flow it may give way now. */
void jobs_saved(struct live *l);
/* Stop it, and let it go on later from its place in the queue: for a quota, or a node that is
 * drained. False if its spec does not allow that (core/spec/restart.h), or it holds nothing. */
bool jobs_preempt(struct live *l, const char *code, const char *text, const char *actor);
/* What its code asks of a node may be something else now: asked anew, if it waits. */
void jobs_ask_needs(struct live *l);
/* True if that changed anything. */
bool jobs_set_priority(struct live *l, int priority, const char *actor, usec_t now);

/* Act on, and forget, what this batch brought to disk; admit what an end made room for. Never
 * from within a walk. */
void jobs_durable(struct jobs *js, uint64_t batch);
/* Forget those whose end is on disk and with whom nobody is busy any more. Never from within
 * a walk. */
void jobs_sweep(struct jobs *js);

void jobs_busy(struct live *l);
void jobs_idle(struct live *l);

/* Call cb once at the job's next change, or when it is freed. */
typedef void (*jobs_wait_f)(void *arg);
struct jobs_waiter *jobs_wait(struct live *l, jobs_wait_f cb, void *arg);
void jobs_unwait(struct jobs_waiter *w); /* NULL is fine; not after the call */

/* What a job that waits asks for from now on; texts are copied. */
struct job_respec {
    const char *text, *pool;
    const struct demand *demand;
    struct job_limits limits;
    int priority;
};
/* It keeps its place. sealed: the text for the store, where that holds secrets, NULL = the text;
 * warnings: those of the new text, NULL = none. Both are copied. The caller notes it. */
void jobs_respec(struct live *l,
                 const struct job_respec *to,
                 const char *sealed,
                 const char *warnings);

/* Why it waits, and what would help; false if it does not wait. Without the hint it is cheap. */
bool jobs_why(const struct live *l, bool want_hint, struct sched_why *ret);
/* What else keeps it waiting: sched_explain_more(). */
size_t jobs_why_more(const struct live *l, const char *but, size_t max, struct sched_why *ret);
/* The nodes of its pool and the leases that have to end, as sched_look_all() and
 * sched_ends_before() tell them, on the scheduler's clock; 0: it does not wait for them now. */
size_t jobs_look_nodes(const struct live *l, size_t max, struct sched_look *ret);
size_t jobs_ends_before(const struct live *l, size_t max, struct sched_end *ret, usec_t *ret_at);
/* So long did those of its steps take that counted, by the newest that it told. */
void jobs_set_useful(struct live *l, double seconds);
/* Attempt k runs steps that an earlier one had run, or new ones. Nothing happens if it is not the
 * newest: what the job holds now is another one's. */
void jobs_set_redoes(struct live *l, int k, bool redoes);
/* What its lease has held until now is added. */
void jobs_add_held(const struct live *l, struct slotbook_held *held);
/* The same, in GPU-seconds, to what an attempt held. */
void jobs_add_held_of(struct attempt *a, const struct slotbook_held *held);
/* The reason shown for a job: the scheduler's while it waits. */
void jobs_reason(const struct live *l, struct reason *ret, int *ret_position);
/* When it starts, as foreseen; wall, 0 = cannot be said. */
void jobs_eta(const struct live *l, usec_t *ret_p50, usec_t *ret_p90);
/* Nothing is admitted while this says why ("" code = admit). Kept by the cluster's watcher. */
void jobs_block(struct jobs *js, const char *code, const char *text);
const struct reason *jobs_blocked(const struct jobs *js);
struct expo;
struct access_who;
/* Jobs by state, ends, restarts, waits, passes of the scheduler, GPUs and queues of pools. Jobs
 * that hold GPUs have their lanes (lanes.h) from then on; which job is in one is told of those that
 * `who` may see. */
void jobs_put_metrics(const struct jobs *js, const struct access_who *who, struct expo *e);
/* The live jobs that have a lane, from *pos = 0 on; *pos is then the number of its lane. NULL: that
 * was the last. */
const struct live *jobs_next_lane(const struct jobs *js, size_t *pos);
/* How past forecasts came true: a copy, for whoever looks ahead himself. */
struct forecast_error *jobs_forecast_error(const struct jobs *js);
/* Learnt spans of running; 0 where nothing is known. */
void jobs_expect(const struct jobs *js, const struct job *j, usec_t *ret_p50, usec_t *ret_p90);

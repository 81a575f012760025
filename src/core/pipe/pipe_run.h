/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_run.h - where one run of a pipeline stands, and what it owes the world next.
 *
 * A run has an item for each step, or for each combination of the step's matrix. Who drives it asks
 * pipe_run_next() until nothing is due, does what it says, and tells what became of it; all that
 * must outlive a restart is in the items. Items stand in the order of the file. Pure. */
#pragma once
#include "base/digest/hash.h"
#include "core/pipe/pipe.h"

/* X(enumerator, word) */
#define PIPE_STATES(X)                                                                             \
    X(PIPE_WAITING, "WAITING") /* for what it needs, or for its next try */                        \
    X(PIPE_RUNNING, "RUNNING")                                                                     \
    X(PIPE_SUCCEEDED, "SUCCEEDED") /* by its own job or by an earlier run's, see cached */         \
    X(PIPE_FAILED, "FAILED")                                                                       \
    X(PIPE_SKIPPED, "SKIPPED") /* its `if` was false, or what it needs did not succeed */          \
    X(PIPE_CANCELLED, "CANCELLED")

enum pipe_state {
#define X(e, word) e,
    PIPE_STATES(X)
#undef X
        PIPE_STATES_COUNT
};
extern const char *const pipe_state_names[PIPE_STATES_COUNT + 1];

struct pipe_item {
    int step;
    char *name;   /* "train", or "eval-2" for the second combination of a matrix */
    char *matrix; /* the combination, a JSON object; NULL: the step has no matrix */
    int state;    /* enum pipe_state */
    int64_t tries;
    usec_t again_at; /* of one that waits for its next try; wall, 0: it may start at once */
    usec_t started_at, ended_at;
    double gpu_hours;        /* that its newest job held, told once that has ended */
    double gpu_hours_before; /* that the jobs of all tries before it held */
    char *job;               /* of its newest try; NULL: none */
    char *left;          /* what it left behind, a JSON object: see pipe_leaves[] in pipe_graph.c */
    char hash[HASH_HEX]; /* of its inputs; "": not known yet */
    char *contents; /* what they held: a JSON object of names and short hashes; NULL: not known */
    bool cached;    /* an earlier run with the same inputs stands in for it */
    char *earlier;  /* which run that was; NULL: none, or it is not known */
    char *code, *text; /* why it is where it is (base/message.h); NULL: nothing to say */
};
extern const struct field_table pipe_item_table;

struct pipe_run {
    const struct pipe *pipe; /* borrowed */
    const char *id, *user, *project;
    int64_t number;
    json_t *params;
    struct pipe_item *v;
    size_t n;
    bool is_cancelled;
};

/* Fills *ret, zeroed but for its borrowed members and params, with items that all wait. */
void pipe_run_begin(struct pipe_run *ret);
void pipe_run_release(struct pipe_run *r);

/* Would it start once all that it needs has ended, as these stand now? */
bool pipe_run_wants(const struct pipe_run *r, size_t item);
/* A new object: each reference in `if` and `with` of an item, as it is written, and what it stands
 * for now; null: nothing yet. */
json_t *pipe_run_values(const struct pipe_run *r, size_t item);
/* What its `if` is now. A new reference; NULL: it has none, or not all that it needs has ended. */
json_t *pipe_run_if(const struct pipe_run *r, size_t item);

enum pipe_act {
    PIPE_ACT_NONE,  /* nothing is due before pipe_run_wake() */
    PIPE_ACT_START, /* item *ret_item */
    PIPE_ACT_SKIP,  /* item *ret_item is passed over: told by pipe_run_skip() */
};
enum pipe_act pipe_run_next(const struct pipe_run *r, usec_t now, size_t *ret_item);
/* The earliest again_at of those that wait for it; 0: none does. */
usec_t pipe_run_wake(const struct pipe_run *r);

/* RUNNING until every item has ended; then FAILED if one has failed, CANCELLED if one was
 * cancelled, else SUCCEEDED. */
enum pipe_state pipe_run_state(const struct pipe_run *r);

/* Appends `with` of an item with its values. ERR_REFUSED: an expression has no value. */
must_check int pipe_run_fill(const struct pipe_run *r,
                             size_t item,
                             struct buf *out,
                             struct err *err);

void pipe_run_skip(struct pipe_run *r, size_t item, usec_t now);
void pipe_run_started(struct pipe_run *r, size_t item, const char *job, usec_t now);
/* It has ended. A failed one waits for its next try where it has one. left: copied, may be NULL.
 * code and text: why it failed; NULL otherwise. */
void pipe_run_ended(struct pipe_run *r,
                    size_t item,
                    enum pipe_state state,
                    const char *left,
                    const char *code,
                    const char *text,
                    usec_t now);
/* What waits is cancelled; what runs is to be stopped by who drives it. */
void pipe_run_cancel(struct pipe_run *r, usec_t now);
/* The step and all steps that need it wait again, and every other one that did not succeed. -1:
 * each one that did not succeed and what needs it. taken_params: the run's parameters from now on,
 * and each step that reads one with another value goes again, too, with what needs it; NULL: they
 * stay as they are. */
void pipe_run_again(struct pipe_run *r, int step, json_t *taken_params);

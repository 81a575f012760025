/* SPDX-License-Identifier: Apache-2.0 */
/* simulations.h - the simulations that were asked for: those that wait or run, and the results of
 * the last ones.
 *
 * What was asked for is replayed on a worker thread, one simulation at a time, and may be cancelled
 * until its end. A result is a row of the store: it outlives argusd, a replay does not. */
#pragma once
#include <uv.h>

#include "argusd/ground/turns.h"
#include "base/field.h"
#include "core/past/simulation.h"
#include "store/store.h"

enum {
    SIMULATIONS_TRACE_MAX = 8 << 20, /* bytes of a trace */
    SIMULATIONS_JOBS_MAX = 100000,
    SIMULATIONS_POOLS_MAX = 64,
    SIMULATIONS_NODES_MAX = 20000, /* of all pools together */
    SIMULATIONS_SECONDS_MAX = 60,  /* of all policies of one simulation */
    SIMULATIONS_LIVE_MAX = 8,      /* that wait or run */
    SIMULATIONS_LIVE_OF_ONE = 2,
    SIMULATIONS_KEPT_OF_ONE = 10, /* the oldest go */
    SIMULATIONS_RESULT_MAX = 768 << 10,
    SIMULATIONS_NAME_MAX = 80,
};
#define SIMULATIONS_ENTRY "simulation"

enum simulated_state {
    SIMULATED_WAITING,
    SIMULATED_RUNNING,
    SIMULATED_DONE,
    SIMULATED_FAILED,
    SIMULATED_CANCELLED,
};
enum simulated_source { SIMULATED_HISTORY, SIMULATED_TRACE };

struct simulations_work;

/* One simulation; read only but for simulations.c. */
struct simulated {
    char *id, *user, *name;
    int source; /* enum simulated_source */
    int state;  /* enum simulated_state */
    /* What was asked for, as texts of the request; NULL: not. */
    char *nodes, *load, *policy, *guess, *pool;
    int64_t seed;
    bool learner;
    usec_t since; /* of a history */
    usec_t created_at, ended_at;
    int64_t jobs; /* that are played; 0: not known yet */
    bool is_cut;  /* there are older jobs that did not fit */
    char *reason; /* why there is no result, as message_keep(); NULL = none */
    char *result; /* simulation_table as JSON; NULL = none */
    /* In memory alone. */
    double progress; /* 0 to 1 */
    struct simulations_work *work;
    struct turn turn;
};
extern const struct field_table simulated_table;

struct api;
struct http_principal;
struct simulations;

/* Borrowed, both. */
struct simulations *simulations_new(uv_loop_t *loop, struct store *store);
void simulations_close(struct simulations *ss); /* what runs is ended; NULL is fine, as below */
void simulations_free(struct simulations *ss);
/* A row at start; one that was not over is failed then. */
void simulations_restore(struct simulations *ss, const struct store_entry *row);

/* By age, the newest last; NULL at the end. *pos begins at 0. */
const struct simulated *simulations_next(const struct simulations *ss, size_t *pos);
struct simulated *simulations_find(const struct simulations *ss, const char *id);

/* May one more of this user begin? ERR_BUSY. */
must_check int simulations_check(const struct simulations *ss, const char *user, struct err *err);
/* A new one, whose trace is not there yet; asked is copied, but for id, state and times. What was
 * kept of this user's and is too old goes. Options were read once: they are right. */
struct simulated *simulations_add(struct simulations *ss,
                                  const struct simulated *asked,
                                  usec_t now);
/* Its jobs, as the text of a trace (taken): it waits for its turn. nodes > 0: what each pool has,
 * where neither nodes nor a load was asked for. It must not be over. */
void simulations_play(struct simulations *ss,
                      struct simulated *s,
                      struct buf *trace,
                      int nodes,
                      int gpus_per_node);
/* simulations_play() with the jobs that he may see, once they are read: those of s->pool, or all,
 * queued since s->since, that ran; at most SIMULATIONS_JOBS_MAX, the newest. */
void simulations_play_history(struct api *a, const struct http_principal *who, struct simulated *s);
/* It cannot begin; err is kept. */
void simulations_fail(struct simulations *ss, struct simulated *s, const struct err *err);
/* ERR_CONFLICT: it is over. */
must_check int simulations_cancel(struct simulations *ss,
                                  struct simulated *s,
                                  const char *user,
                                  struct err *err);
/* With its row; what runs is ended. */
void simulations_remove(struct simulations *ss, struct simulated *s);

double simulated_progress(const struct simulated *s); /* now, 0 to 1 */
bool simulated_is_over(const struct simulated *s);
extern const char *const simulated_states[], *const simulated_sources[];

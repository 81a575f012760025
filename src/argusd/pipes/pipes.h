/* SPDX-License-Identifier: Apache-2.0 */
/* pipes.h - the pipelines that people keep, and the runs of them.
 *
 * Both live in memory, behind them rows of the store. A run keeps the text that it was started
 * with, so that a pipeline may change while it runs. PIPES_RUNS_MAX runs stay: beyond them goes the
 * oldest that is over of the user who has most that are over. Pointers to pipelines and runs are
 * borrowed until the loop goes on. */
#pragma once
#include "argusd/kit/api.h"
#include "core/pipe/pipe_run.h"

enum {
    PIPES_OF_USER_MAX = 200,
    PIPES_LIVE_RUNS_MAX = 50, /* of one user */
    PIPES_RUNS_MAX = 2000
};

struct pipes;

/* Read-only to everybody but pipes.c. */
struct pipeline {
    char *name, *owner, *project; /* project: whose members see it too; "" = none */
    char *text;                   /* YAML, as it was given */
    char hash[HASH_HEX];          /* SHA-256 of the text */
    usec_t created_at, changed_at;
    char *cron, *zone;     /* a schedule; cron NULL: none */
    char *schedule_params; /* of its runs, a JSON object; NULL: none */
    usec_t next_at;        /* of the schedule; 0: none */
    bool owner_away;       /* disabled or gone when it last came: told already */
    struct pipe *pipe;     /* NULL: this version cannot read it any more */
};
/* What is stored and shown of one. */
extern const struct field_table pipeline_table;

/* A run. Read-only to everybody but this room. */
struct pipe_life {
    char *id;               /* "<name>-<number>" */
    char *pipeline, *owner; /* of the pipeline */
    char *user, *project;   /* whose jobs its steps are */
    int64_t number;
    char *text, *params; /* params: a JSON object */
    bool force;          /* no earlier run stands in for a step */
    bool by_schedule;
    bool cancelled;
    usec_t created_at, started_at, ended_at; /* started_at 0: it waits for another run */
    int state;                               /* enum pipe_state; WAITING as started_at says */
    struct field_list items; /* of struct pipe_item; those of run while it is whole */

    /* Nothing of this is stored. */
    struct pipes *pipes;
    struct pipe *pipe; /* NULL: this version cannot read it any more; the run is over then */
    struct pipe_run run;
    struct pipe_step_work *works; /* under way */
    struct pipes_filed *filed;    /* its items in the index; NULL: it is not there */
};
extern const struct field_table pipe_life_table;

/* a is borrowed, and is not looked at before the start. */
struct pipes *pipes_new(struct api *a);
#define PIPES_ENTRY_PIPELINE "pipeline"
#define PIPES_ENTRY_RUN "pipeline_run"
#define PIPES_ENTRY_LAST "pipeline_last"
void pipes_restore(struct pipes *ps, const struct store_entry *row);
void pipes_start(struct pipes *ps);
void pipes_close(struct pipes *ps); /* nothing is begun any more; NULL is fine */
void pipes_free(struct pipes *ps);

/* ---- pipelines ---- */

/* NULL: there is none. */
const struct pipeline *pipes_find(const struct pipes *ps, const char *owner, const char *name);
const struct pipeline *pipes_next(const struct pipes *ps, size_t *pos);
/* Adds or replaces; its name is the text's own. ERR_BAD_SPEC with problems; ERR_REFUSED: too many.
 */
must_check int pipes_put(struct pipes *ps,
                         const char *owner,
                         const char *project,
                         const char *text,
                         const struct pipeline **ret,
                         struct problems *problems,
                         struct err *err);
void pipes_remove(struct pipes *ps, const struct pipeline *p);
/* cron NULL: no schedule any more. zone NULL: UTC. ERR_BAD_SPEC. */
must_check int pipes_set_schedule(struct pipes *ps,
                                  const struct pipeline *p,
                                  const char *cron,
                                  const char *zone,
                                  const char *params,
                                  struct err *err);
/* When its schedule comes next: n times at most. How many there are. */
size_t pipes_next_times(const struct pipeline *p, usec_t *ret, size_t n);
/* Those that name what is to be removed (kit/removal.h). */
struct removal;
void pipes_add_removal_users(const struct pipes *ps, struct removal *r);
/* Steps that end with the job of a plan (kit/stopplan.h), which is one of theirs. */
struct stopplan;
void pipes_add_stop_steps(const struct pipes *ps, const struct access_who *who, struct stopplan *p);
/* What access_check() is asked about. */
struct access_thing pipeline_thing(const struct pipeline *p);

/* ---- runs ---- */

struct pipes_start_ask {
    const struct pipeline *pipeline;
    const char *user;
    json_t *params; /* as they were given; NULL: none */
    bool force, by_schedule;
};
/* A new run begins, or waits for another one. ERR_BAD_SPEC with problems; ERR_CONFLICT: another one
 * is under way and the pipeline says `skip`; ERR_REFUSED: too many. */
must_check int pipes_run(struct pipes *ps,
                         const struct pipes_start_ask *ask,
                         const struct pipe_life **ret,
                         struct problems *problems,
                         struct err *err);
const struct pipe_life *pipes_find_run(const struct pipes *ps, const char *id);
/* The newest first; NULL at the end. *pos begins at 0. */
const struct pipe_life *pipes_next_run(const struct pipes *ps, size_t *pos);
struct access_thing pipe_life_thing(const struct pipe_life *r);
/* False: it is over. */
bool pipes_cancel(struct pipes *ps, const struct pipe_life *run, const char *actor);
/* The services whose traffic a version has that this run deployed go back to the version that had
 * it before. ERR_CONFLICT: it deployed none, or others have the traffic by now; ERR_NOT_FOUND: a
 * service has no version before; and what who asks may not. Nothing is changed then. */
must_check int pipes_roll_back(struct pipes *ps,
                               const struct pipe_life *run,
                               const struct access_who *who,
                               struct err *err);
struct pipes_retry_ask {
    const char
        *step;      /* it and what needs it; NULL: only what did not succeed, and what needs that */
    json_t *params; /* new values of some parameters: steps that read them go again, too; NULL: as
                       they were */
    bool force;
};
/* Within the same run, which waits or is refused beside others of its pipeline as a new one would.
 * ERR_CONFLICT: it is not over, or another one is under way and the pipeline says `skip`;
 * ERR_NOT_FOUND: no such step; ERR_BAD_SPEC with problems: the parameters; ERR_REFUSED: too many.
 */
must_check int pipes_retry(struct pipes *ps,
                           const struct pipe_life *run,
                           const struct pipes_retry_ask *ask,
                           const char *actor,
                           struct problems *problems,
                           struct err *err);

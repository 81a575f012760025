/* SPDX-License-Identifier: Apache-2.0 */
/* pipes_state.h - what the files of this room share. Nobody outside it includes this. */
#pragma once
#include "argusd/pipes/pipes.h"
#include "argusd/pipes/pipes_sight.h"
#include "base/map.h"
#include "core/pipe/pipe_cron.h"
#include "core/pipe/pipe_zone.h"

struct pipes {
    struct api *a;
    uv_timer_t timer;
    bool started, closing;
    struct map *by_key;       /* of pipelines: "owner/name" */
    struct map *runs;         /* by id */
    struct map *index;        /* see pipes_index.c */
    struct pipe_life **order; /* the same, the oldest first */
    size_t n_order, cap_order;
    int64_t last_number;
    size_t n_live; /* runs that are not over */
};

/* ---- pipes_rows.c ---- */

/* "owner/name": of the map. Heap. */
char *pipes_key(const char *owner, const char *name);
void pipes_save(const struct pipes *ps, const struct pipeline *p);
void pipes_save_run(struct pipe_life *r);
void pipeline_free(struct pipeline *p);
void pipe_life_free(struct pipe_life *r);
/* NULL: this version cannot read the text. */
struct pipe *pipes_read_text(const char *text, struct problems *problems);
/* The items of a run, all waiting. */
void pipes_open_run(struct pipe_life *r);
/* At its place among the runs, by number. */
void pipes_add_run(struct pipes *ps, struct pipe_life *r);

/* ---- pipes_schedule.c ---- */

/* Those whose time has come run. */
void pipes_look_at_schedules(struct pipes *ps, usec_t now);

/* ---- pipes.c ---- */

/* An event about the run: its actor, what was done to which item (NULL: to the run), from and to
 * states (NULL: none), and why. */
struct pipes_said {
    const char *kind, *actor, *item, *from, *to, *code, *text;
};
void pipes_note(const struct pipe_life *r, const struct pipes_said *said);
/* The run is over: how, and who waits for that. */
void pipes_run_over(struct pipe_life *r);

/* A run that would begin now, without a number and an id; the caller's. As pipes_run(). */
must_check int pipes_make_run(struct pipes *ps,
                              const struct pipes_start_ask *ask,
                              struct pipe_life **ret,
                              struct problems *problems,
                              struct err *err);
/* May it be run again? *ret_step: that step; NULL: none was named. *ret_params: all parameters as
 * they would be, the caller's; NULL: none is another one. As pipes_retry(). */
must_check int pipes_check_retry(const struct pipe_life *r,
                                 const struct pipes_retry_ask *ask,
                                 const struct pipe_step **ret_step,
                                 json_t **ret_params,
                                 struct problems *problems,
                                 struct err *err);
/* What goes again waits, with these parameters (taken; NULL: as they were). */
void pipes_wait_again(struct pipe_life *r, int step, json_t *taken_params);

/* ---- pipes_check.c ---- */

/* What is wrong with the JobSpecs of its steps, as far as their values are known. */
void pipes_check_jobs(const struct pipe_life *r, struct problems *ps);

/* ---- pipes_drive.c ---- */

/* As whom the run acts: its user, with no more than the user may now. */
struct http_principal pipes_principal(const struct pipe_life *r);
/* May this user's pipelines do anything now? ERR_REFUSED: the user is disabled or gone. */
must_check int pipes_admit(const struct pipes *ps, const char *user, struct err *err);
/* Do what is due. */
void pipes_drive(struct pipe_life *r);
/* The item has ended: see pipe_run_ended(). */
void pipes_item_over(struct pipe_life *r,
                     size_t item,
                     enum pipe_state state,
                     const char *left,
                     const char *code,
                     const char *text);
/* What an item waits for is not waited for any more; its job is not touched. */
void pipes_drop_work(struct pipe_life *r, size_t item);
/* Once a second. */
void pipes_look(struct pipe_life *r);
void pipes_stop_jobs(struct pipe_life *r, const char *actor);

/* ---- pipes_deploy.c ---- */

/* A new version of a service; the item's `left` names it, and is in the batch of its row. */
must_check int pipes_begin_deploy(struct pipe_life *r,
                                  size_t item,
                                  const char *with,
                                  struct err *err);
/* Has its version the traffic, or will it never? */
void pipes_look_deploy(struct pipe_life *r, size_t item, usec_t now);
/* The version does not get the traffic, where it does not have it. */
void pipes_call_off(struct pipe_life *r, size_t item, const char *actor);
/* The version that an item of a run made, as it is now; NULL: it is gone. The numbers of a service
 * that was removed and made anew begin at 1 again, so the moment is what tells two versions apart;
 * *ret_is_sure: it is known, which it is not in the row of an older argusd. May be NULL. */
const struct service_version *pipes_deployed_version(const struct pipe_life *r,
                                                     const struct pipe_item *i,
                                                     bool *ret_is_sure);
/* That version has the traffic still. */
bool pipes_is_deployed(const struct pipe_life *r, const struct pipe_item *i);
/* As pipes_name_inputs(), of what a deploy names. */
struct pipes_inputs;
bool pipes_name_deploy(const struct pipe_life *r, const char *with, struct pipes_inputs *out);

struct pipe_publish;
/* Something an item waits for; one at most of each item. */
struct pipe_step_work {
    struct pipe_life *run;
    size_t item;
    struct submit *submit;        /* its job is being checked */
    struct store_read *read;      /* how its job ended is read */
    struct job *job;              /* that has ended, and whose checkpoints are looked at */
    char *metrics;                /* of it, a JSON object */
    struct checkpoints_ask *ask;  /* that look */
    struct pipe_publish *publish; /* its source is looked up */
    struct pipes_sight *sight;    /* whether an earlier run stands in for it is looked up */
    struct pipe_step_work *next;
};
struct pipe_step_work *pipes_begin_work(struct pipe_life *r, size_t item);
struct pipe_step_work *pipes_find_work(const struct pipe_life *r, size_t item);

/* ---- pipes_settle.c ---- */

/* Its job is not in memory any more: learn how it ended. */
void pipes_settle(struct pipe_life *r, size_t item);
/* The model or data set that this job brings: 1 it is ready, 0 not yet, -1 there is none. */
int pipes_entry_is_ready(const struct pipe_life *r, int uses, const char *job);

/* ---- pipes_hash.c ---- */

/* X(word): what is known of a path that a step names and no registry does. */
#define PIPES_PATH_STATES(X)                                                                       \
    X(compared) /* names, sizes and times of its files are inputs of the step */                   \
    X(partly)   /* it has too many files: its own time alone is */                                 \
    X(missing)  /* nothing is there */                                                             \
    X(unseen)   /* argusd does not look there, or may not, or could not */
enum pipes_path_state {
#define X(word) PIPES_PATH_##word,
    PIPES_PATH_STATES(X)
#undef X
        PIPES_PATH_COUNT
};
struct pipes_path {
    char *path;
    int state; /* enum pipes_path_state */
    int64_t files;
};

/* What an item's inputs are, while they are put together. */
struct pipes_inputs {
    struct pipes_sight *sight; /* borrowed */
    struct buf all;            /* what is hashed */
    json_t *contents;          /* names and short hashes of what they hold: the first of them */
    size_t contents_room;      /* bytes for more of them */
    size_t n_paths;            /* texts that may be paths, so far */
    struct field_list paths;   /* of struct pipes_path: the first of them */
};
void pipes_paths_release(struct field_list *paths);

/* "sums@1 0123456789ab": how what has this name and hash stands in the contents of an item. Heap.
 */
char *pipes_content(const char *ref, const char *hash);

/* Gives an item the hash of its inputs (what its `with` has become, and the contents of what that
 * names) and what they held. False: they cannot be told, it has neither, and nothing stands in for
 * it. While the sight is open the answer is for now. *ret_paths: of struct pipes_path, the first
 * plain paths among them, in both cases the caller's; may be NULL. */
bool pipes_hash_inputs(struct pipe_life *r,
                       size_t item,
                       const char *with,
                       struct pipes_sight *sight,
                       struct field_list *ret_paths);
/* Appends the contents of what a JobSpec names, resolved as the submit would. False: they cannot be
 * told. */
bool pipes_name_inputs(const struct pipe_life *r, const char *with, struct pipes_inputs *out);

/* ---- pipes_index.c ---- */

/* An item of a run in the index. */
struct pipes_filed {
    struct pipe_life *run;
    size_t item;
    struct pipes_shelf *shelf; /* NULL: it is not there */
    struct pipes_filed *newer, *older;
};
/* Its items that have succeeded can be found by their hash, as they are now. Its number is known.
 */
void pipes_index_run(struct pipe_life *r);
void pipes_unindex_run(struct pipe_life *r);
/* The newest item of this run's user and project with inputs of this hash; NULL: none. Its hash and
 * its state may be others by now. */
const struct pipes_filed *pipes_index_find(const struct pipe_life *r, const char *hash);

/* An item of an earlier run that stands in for another one. */
struct pipes_earlier {
    const struct pipe_item *item; /* NULL: none does */
    const struct pipe_life *run;
    char *gone;    /* the newest one that would have, if this were not gone; NULL: none */
    char *gone_in; /* the run that made it */
};
void pipes_earlier_release(struct pipes_earlier *e);
/* The newest one of the same user and project that had the same inputs, succeeded, and whose output
 * is still there. While the sight is open the answer is for now: what was not looked at counts as
 * there. */
void pipes_find_earlier(const struct pipe_life *r,
                        const struct pipe_step *step,
                        const char *hash,
                        struct pipes_sight *sight,
                        struct pipes_earlier *ret);

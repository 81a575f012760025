/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoints.h - the catalogue of checkpoints, and which of them stay.
 *
 * fsroot/ckpt/ckpt.c reads and removes in the worker pool, core/metric/ckpt.c decides; here is
 * when. A running job that trains is looked at every few seconds, and once more at its end; what is
 * new is an event, and what retention lets go is removed. A row of the store for each job that has
 * some is all that is kept: it is there for jobs that are over, too. The files are the truth. */
#pragma once
#include <uv.h>

#include "argusd/ground/cluster.h"
#include "argusd/ground/events.h"
#include "argusd/ground/settings.h"
#include "argusd/jobs/jobs.h"
#include "core/metric/ckpt.h"
#include "store/store.h"

struct book;
struct checkpoints;
struct http_principal;
struct people;
struct storage;

struct checkpoints_parts { /* all borrowed */
    uv_loop_t *loop;
    const struct settings *settings;
    struct store *store;
    struct events *events;
    const struct cluster *cluster;
    struct jobs *jobs;
    const struct people *people;     /* quotas of projects */
    const struct storage *storage;   /* whose registry holds what is used where it lies */
    const struct archives *archives; /* whose jobs have theirs elsewhere */
};

struct checkpoints *checkpoints_new(const struct checkpoints_parts *parts);
/* A row of the store at start, of this kind; one that cannot be read is left out. */
#define CHECKPOINTS_ENTRY "checkpoints"
void checkpoints_restore(struct checkpoints *cs, const struct store_entry *row);
void checkpoints_start(struct checkpoints *cs);
void checkpoints_close(struct checkpoints *cs); /* nothing is begun any more; NULL is fine */
void checkpoints_free(struct checkpoints *cs);  /* once the loop has run dry */

/* The job's attempt is over: what it saved last is looked at, also where it ran too briefly to be
 * looked at before. The look is owed by a row in the batch of the end, until it was made. */
void checkpoints_ended(struct checkpoints *cs, const struct live *l);

/* What lay in its checkpoints was removed by others: nothing is known of it any more. */
void checkpoints_forget(struct checkpoints *cs, const char *job);

/* What is known of a job's, the oldest first; NULL: nothing. Borrowed until the loop goes on. */
const struct ckpt_list *checkpoints_of(const struct checkpoints *cs, const char *job);
/* An attempt has ended and no look has worked since: there may be more than is known. */
bool checkpoints_is_looking(const struct checkpoints *cs, const char *job);
/* The step of its newest verified one; 0: it has none, or this user may not see the job. */
int64_t checkpoints_newest(const struct checkpoints *cs, const char *job, const char *user);
/* What is known of a job's, as people see it: the value of each is that of keep_best's metric, and
 * where its spec names none, of the main metric of validation. */
struct checkpoints_shown {
    struct ckpt_list list;   /* a copy, each with why it stays */
    char *metric;            /* of the values; NULL: there are none */
    bool is_min;             /* the smallest is the best */
    struct ckpt_user *users; /* what those of the list point to; NULL: nobody looked */
    struct strv user_names;
};
void checkpoints_show(const struct checkpoints *cs, const char *job, struct checkpoints_shown *ret);
/* The same with who needs each: jobs that are not over and entries of the registry, a few of those
 * that p may see. Their texts are searched, with a ceiling of bytes: ask only for who wants it. */
void checkpoints_show_used(const struct checkpoints *cs,
                           const char *job,
                           const struct http_principal *p,
                           struct checkpoints_shown *ret);
/* Another metric is asked for: its values are not there yet (ckpt_find_metric()), and the better
 * ones are the smaller ones of keep_best's metric if it says so, and of a loss. */
void checkpoints_shown_ask(struct checkpoints_shown *s, const char *metric);
void checkpoints_shown_release(struct checkpoints_shown *s);
/* Its list as a JSON array. Heap. */
char *checkpoints_shown_text(const struct checkpoints_shown *s, const struct message_listener *to);
char *checkpoints_text(const struct checkpoints *cs,
                       const char *job,
                       const struct message_listener *to);
/* Those of one job, in sum. All borrowed. */
struct checkpoints_sum {
    const char *id, *user, *project;
    uint64_t bytes;
    size_t n;
    int64_t newest; /* step that can be read; 0: none */
};
/* The next job that has checkpoints: *pos is NULL at first. False: no more. */
bool checkpoints_next(const struct checkpoints *cs,
                      const struct book **pos,
                      struct checkpoints_sum *ret);
/* ERR_REFUSED with a sentence: the checkpoints of this project, or of this user, take more than its
 * quota. Either may be NULL. */
must_check int checkpoints_check_quota(const struct checkpoints *cs,
                                       const char *project,
                                       const char *user,
                                       struct err *err);

/* ---- judged by a job of its own (eval_on_save) ---- */

/* A checkpoint that is to be judged next: whole, and no other of its training is being judged. All
 * borrowed until the loop goes on. */
struct checkpoints_due {
    const char *job, *user;
    const char *spec; /* see core/spec/evalspec.h */
    int64_t step;
    int attempt;
};
/* The next training that has one: *pos is NULL at first. False: no more. */
bool checkpoints_next_due(const struct checkpoints *cs,
                          const struct book **pos,
                          struct checkpoints_due *ret);
/* A checkpoint that is being judged, and by which job. All borrowed until the loop goes on. */
struct checkpoints_judged {
    const char *job, *eval_job;
    int64_t step;
};
/* The next training that has one: *pos is NULL at first. False: no more. */
bool checkpoints_next_judged(const struct checkpoints *cs,
                             const struct book **pos,
                             struct checkpoints_judged *ret);
struct checkpoints_eval {
    enum ckpt_eval state;
    const char *job;       /* that judges it; NULL: as before */
    const json_t *latest;  /* its newest metrics by name, where it is over; NULL: none */
    const struct err *why; /* CKPT_EVAL_REFUSED */
};
/* It is told, and in the open batch. The checkpoint may have gone: then nothing happens. */
void checkpoints_set_eval(struct checkpoints *cs,
                          const char *job,
                          int64_t step,
                          const struct checkpoints_eval *e);
/* ---- who needs one ---- */

/* A submit or a retry under way. All is borrowed and stays as it is until checkpoints_unuse(). */
struct checkpoints_use {
    const char *user;   /* whose it is: of jobs that he may not see it keeps nothing */
    const char *text;   /* a spec, or "<job>@<step>", or "<job>/checkpoints" for all of a job */
    const char *inputs; /* as record_extra has it; may be NULL */
    struct checkpoints *cs;
    struct checkpoints_use *next, **at; /* at: what points here */
};
/* From now on nothing that it names begins to be removed, as it is for what a job names that is not
 * over. Say so before you look whether it is there. */
void checkpoints_use(struct checkpoints *cs, struct checkpoints_use *u);
/* The next job that is not over and names this one, for its checkpoints or its files: NULL at the
 * end. *pos begins at 0. Borrowed. All specs are searched. */
const struct live *checkpoints_next_namer(const struct checkpoints *cs,
                                          const char *job,
                                          size_t *pos);
/* ERR_CONFLICT with who: a job that is not over, a submit under way, or the registry names this job
 * or what lies in its directory, or its checkpoints are being worked on. */
must_check int checkpoints_check_unnamed(const struct checkpoints *cs,
                                         const char *job,
                                         struct err *err);
/* ERR_CONFLICT: one that it names was being removed already. */
must_check int checkpoints_check_use(const struct checkpoints_use *u, struct err *err);
void checkpoints_unuse(struct checkpoints_use *u); /* one that was never used is fine */

/* ---- pinned by people ---- */

struct checkpoints_pin {
    const char *job, *actor;
    int64_t step;
    bool is_on; /* false: the pin is taken back */
};
/* A pinned checkpoint stays whatever the retention says, until that is taken back. Told, and in the
 * open batch; said twice it is said once. *ret is borrowed until the loop goes on. ERR_CONFLICT: it
 * is not there, cannot be read, is being removed, or many are pinned. */
must_check int checkpoints_pin(struct checkpoints *cs,
                               const struct checkpoints_pin *pin,
                               const struct ckpt **ret,
                               struct err *err);
/* ERR_CONFLICT: one of the job's is pinned, so they may not all be removed. */
must_check int checkpoints_check_unpinned(const struct checkpoints *cs,
                                          const char *job,
                                          struct err *err);

/* ---- asked by people ---- */

struct checkpoints_answer {
    const struct err *err; /* code 0: none */
    const struct ckpt_list *list;
    const enum ckpt_keep *plan; /* of each, as it was before anything was removed */
    uint64_t removed_bytes;
    size_t removed;
};
typedef void (*checkpoints_f)(const struct checkpoints_answer *a, void *arg);
struct checkpoints_ask;
/* Look anew, and take away what the job's policy lets go (dry_run: only say it). done is called
 * once, unless the ask is taken back or all is closed. */
struct checkpoints_ask *checkpoints_gc(struct checkpoints *cs,
                                       const struct job *job,
                                       bool dry_run,
                                       const char *actor,
                                       checkpoints_f done,
                                       void *arg);
/* One at a time is read to its last byte: false while another is. found: what was seen, NULL:
 * nothing. */
bool checkpoints_begin_reading(struct checkpoints *cs);
void checkpoints_end_reading(struct checkpoints *cs, const char *job, const struct ckpt *found);
void checkpoints_unask(struct checkpoints_ask *a); /* not after the call; NULL is fine */

/* SPDX-License-Identifier: Apache-2.0 */
/* trackers.h - the runs of attempts in trackers: decided before the start, completed after the end;
 * see README.md.
 *
 * Starts and completions of one user have turns of their own: a server that is slow or hostile
 * delays nobody else. Of more than 20,000 runs the oldest that are over are forgotten, of the users
 * who have most. */
#pragma once
#include <uv.h>

#include "argusd/imports/importer.h"
#include "argusd/jobs/jobs.h"
#include "base/field.h"
#include "core/spec/tracker.h"

struct trackers;

struct trackers_parts { /* all borrowed */
    uv_loop_t *loop;
    const struct settings *settings;
    struct store *store;
    struct jobs *jobs;
    struct secrets *secrets;
    const struct importer *importer; /* filled by the time of trackers_start() */
};

/* The member `trackers` of a job's page. */
extern const struct field_table tracker_run_table;

must_check int trackers_new(const struct trackers_parts *parts,
                            struct trackers **ret,
                            struct err *err);
#define TRACKERS_ENTRY "tracker"
void trackers_restore(struct trackers *ts, const struct store_entry *row);
void trackers_start(struct trackers *ts);
void trackers_close(struct trackers *ts); /* NULL is fine */
void trackers_free(struct trackers *ts);  /* once the loop has run dry */

/* l is about to be sent: true when it is decided how its newest attempt uses its trackers. Else
 * they are being tried, 20 s at most: ask again. */
bool trackers_decide(struct trackers *ts, struct live *l);
/* What was decided, for its command line. Borrowed until the loop goes on. The number. */
size_t trackers_of(const struct trackers *ts,
                   const char *job,
                   int attempt,
                   struct tracker ret[static 2]);
/* The keys of its trackers that its user or project has, added to what its spec names. */
void trackers_add_secrets(const struct trackers *ts, const struct live *l, struct pairs *ret);

/* It changed: an attempt may be over. */
void trackers_act(struct trackers *ts, const struct live *l);
/* It ended, within the open batch. */
void trackers_ended(struct trackers *ts, const struct live *l);

/* The run of a pipeline that this job was a step of is over, within the open batch. It is written
 * to the runs of the job in MLflow and W&B, to those of W&B by one more job of the user for each,
 * and tried for 7 days from now on, also of a run that was given up; end: "FAILED: eval". */
void trackers_tell_pipeline(struct trackers *ts,
                            const char *job,
                            const char *run,
                            const char *step,
                            const char *end);

/* Its runs as a JSON array. Heap; NULL: it has none. */
char *trackers_text(const struct trackers *ts, const char *job);

/* ---- the servers that argus.yaml names ---- */

enum { TRACKERS_NAMED_MAX = 3 };
struct tracker_sight {
    const char *name, *url; /* borrowed from settings and static texts */
    bool is_known;          /* false: it is still being asked */
    bool answers;
    int status; /* HTTP status; 0: no whole answer, err says why */
    struct err err;
    struct trackers *ts;
};
/* Asks each of them whether it answers, 5 s at most. done comes once: when all were asked, or at
 * the close, never from inside. False: there is none to ask, or a look is under way; then done does
 * not come. */
typedef void (*trackers_looked_f)(void *arg);
bool trackers_look(struct trackers *ts, trackers_looked_f done, void *arg);
/* What the newest look has found so far. Borrowed. */
const struct tracker_sight *trackers_seen(const struct trackers *ts, size_t *ret_n);

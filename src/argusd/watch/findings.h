/* SPDX-License-Identifier: Apache-2.0 */
/* findings.h - why attempts ended badly, and trials: asked when they end, kept, shown.
 *
 * The end of such an attempt waits for its finding, for FINDINGS_PATIENCE at most: then the class
 * decides whether the job is restarted, and end and finding are one batch of the store. A crash
 * before that batch loses nothing: the exit file is met again. A finding that comes later than
 * that (the shared root hangs) is owed by a row of the store until it is made, and changes the past
 * no more: it is told and shown. A few are made at a time, in the worker pool: one user's jobs have
 * some of the places, the user who was served longest ago is next, and the more of one user's wait,
 * the less of a log is read for each. */
#pragma once
#include <uv.h>

#include "argusd/ground/cluster.h"
#include "argusd/ground/events.h"
#include "argusd/ground/settings.h"
#include "argusd/jobs/jobs.h"
#include "argusd/watch/meta.h"
#include "core/finding/finding.h"
#include "store/store.h"

#define FINDINGS_HANG "hang-watch" /* rule of what is found while a job hangs */
#define FINDINGS_PATIENCE (10 * USEC_SEC)
enum {
    FINDINGS_AT_ONCE = 4,
    FINDINGS_OF_USER_MAX = 2,
    FINDINGS_PARTS_MAX = 64, /* 2 MiB of the beginning and 6 MiB of the end are always read */
};

struct findings;

struct findings_parts { /* all borrowed */
    uv_loop_t *loop;
    const struct settings *settings;
    struct store *store;
    struct events *events;
    struct cluster *cluster;
    struct jobs *jobs;
    struct metas *metas;
};
/* The rules that argusd was built with do not compile: our own bug, -EINVAL. */
must_check int findings_new(const struct findings_parts *parts,
                            struct findings **ret,
                            struct err *err);
void findings_close(struct findings *fs); /* nobody is told any more; NULL is fine */
void findings_free(struct findings *fs);  /* after the loop has run dry; NULL is fine */

/* A row of the store at start, of this kind; one that cannot be read is left out. */
#define FINDINGS_ENTRY "finding_owed"
void findings_restore(struct findings *fs, const struct store_entry *row);

/* How the newest attempt of a job ended, or before the first its trial; copied. */
struct findings_end {
    struct finding_facts facts; /* texts may be NULL */
    enum finding_class given;   /* the class is known already; FINDING_NONE: it is not */
    const char *whole;          /* all of it is: what finding_to_json() wrote; NULL */
    bool no_logs;               /* the facts say all: nothing is read */
    bool no_file;               /* no finding.json is left: its directory may be another's */
};

/* found is borrowed for the call; NULL: it is not made yet. Called on the loop, once, unless
 * closed: then never. arg is of malloc() and belongs to findings. The job's extra has the finding
 * by then. */
typedef void (*findings_f)(struct live *l, const struct finding *found, void *arg);
void findings_ask(struct findings *fs,
                  struct live *l,
                  const struct findings_end *end,
                  findings_f done,
                  void *arg);

/* The finding of an attempt that runs, and is not asked why it ended: of a hang, or `none` when
 * it went on. Stored, told and shown as the others; the one of its end takes its place. */
void findings_note(struct findings *fs, struct live *l, const struct finding *found);

/* What is shown of the newest attempt of the job is of this rule. */
bool findings_shows(const struct live *l, const char *rule);

/* Once a second: who waited too long goes on, and what could not be begun is begun. */
void findings_tick(struct findings *fs, usec_t mono);

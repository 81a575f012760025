/* SPDX-License-Identifier: Apache-2.0 */
/* adopted.h - foreign jobs of Ray that a project has taken for its own: one record for each.
 *
 * A record says whose the job is, when it began and how it ended, and stays when Ray has forgotten
 * the job. Nothing is ever done to the job itself: it has no lease, and what it holds is subtracted
 * from capacity as before. Rows of the store, live in memory. */
#pragma once
#include "argusd/ground/events.h"
#include "base/clock.h"
#include "base/field.h"
#include "core/job/access.h"
#include "ray/reply.h"
#include "store/store.h"

enum { ADOPTED_MAX = 10000 };

/* Read-only to everybody but adopted.c. */
struct adopted_item {
    char *ray_id;  /* the key: its submission id in Ray */
    char *session; /* Ray's when it was adopted: another session's job of this id is another job */
    char *project, *owner, *adopted_by;
    char *state; /* Ray's word, the last one that was seen; "GONE": Ray forgot it while it ran */
    usec_t adopted_at, started_at, ended_at;
};

struct adopted;

struct adopted *adopted_new(struct store *store);
void adopted_free(struct adopted *ad); /* NULL is fine */
/* A row of the store at start, of this kind; one that cannot be read is left out. */
#define ADOPTED_ENTRY "adopted"
void adopted_restore_entry(struct adopted *ad, const struct store_entry *entry);

/* The adopted job of this Ray session; NULL: nobody has adopted it. Borrowed until it is put
 * again. */
const struct adopted_item *adopted_find(const struct adopted *ad,
                                        const char *ray_id,
                                        const char *session);
/* In no order, of every session. */
const struct adopted_item *adopted_next(const struct adopted *ad, size_t *pos);

struct adopted_claim { /* borrowed */
    const char *session, *project, *owner, *by;
};
/* A record, or another owner and project of the record that there is. ERR_REFUSED: there are too
 * many. *ret is borrowed. */
must_check int adopted_put(struct adopted *ad,
                           const struct ray_job *rj,
                           const struct adopted_claim *claim,
                           usec_t now,
                           const struct adopted_item **ret,
                           struct err *err);

/* Ray's list of this moment: states follow, and an end is an event. */
void adopted_saw_jobs(struct adopted *ad,
                      struct events *ev,
                      const struct ray_jobs *jobs,
                      const char *session,
                      usec_t now);

/* What access_check() is asked about, and what events are about. Borrows from item. */
struct access_thing adopted_thing(const struct adopted_item *item);

/* SPDX-License-Identifier: Apache-2.0 */
/* archives.h - finished jobs whose directory is packed into one file, and on their way there and
 * back.
 *
 *   archives_pack ─▶ packing ─▶ removing ─▶ archived ─▶ unpacking ─▶ restoring ─▶ back
 *                       └─ fails: undone, FAILED until the next try ─┘ fails: archived again
 *
 * The row of the store says which step was begun, and a step that takes something away begins only
 * once the row is on disk (fsroot/archive/jobarchive.h has the steps). So a start goes on where a
 * kill came: what was being packed is undone, the rest is done to its end. One job at a time, in
 * the worker pool: those who asked have turns, and the last quarter of the places where jobs wait
 * is for those who have less than a quarter. Who may do it and which job is over is asked by the
 * handler. */
#pragma once
#include <uv.h>

#include "argusd/ground/cluster.h"
#include "argusd/ground/events.h"
#include "argusd/ground/settings.h"
#include "base/field.h"
#include "core/job/job.h"
#include "store/store.h"

struct archives;
struct message_listener;

struct archives_parts { /* all borrowed */
    uv_loop_t *loop;
    const struct settings *settings;
    struct store *store;
    struct events *events;
    const struct cluster *cluster;
    /* ERR_CONFLICT with a sentence: somebody needs the job's files where they are. */
    int (*check_unused)(const char *job, void *arg, struct err *err);
    /* What lay in the job's checkpoints is no more. */
    void (*checkpoints_gone)(const char *job, void *arg);
    void *arg;
};

/* The member `archived` of a job's page. */
extern const struct field_table archives_table;

struct archives *archives_new(const struct archives_parts *parts);
#define ARCHIVES_ENTRY "archive"
void archives_restore(struct archives *as, const struct store_entry *row);
void archives_start(struct archives *as);
void archives_durable(struct archives *as, uint64_t batch);
void archives_close(struct archives *as); /* what runs is told to stop; NULL is fine */
void archives_free(struct archives *as);  /* once the loop has run dry */

enum archives_flags {
    ARCHIVES_NO_CHECKPOINTS = 1 << 0, /* they are removed for good with the directory */
};
/* From now on it is packed, or brought back; a request that comes twice is one. ERR_CONFLICT (also
 * where it was packed with other flags), ERR_BUSY, or what check_unused says. */
must_check int archives_pack(struct archives *as,
                             const struct job *job,
                             unsigned flags,
                             const char *actor,
                             struct err *err);
must_check int archives_unpack(struct archives *as,
                               const struct job *job,
                               const char *actor,
                               struct err *err);

/* Its state, sizes and place as a JSON object. Heap; NULL: the job was never packed. */
char *archives_text(const struct archives *as, const char *job, const struct message_listener *to);
/* Its files are not where they were, or are about to leave. */
bool archives_is_away(const struct archives *as, const char *job);
/* ERR_CONFLICT with what to do, if that is so. */
must_check int archives_check_files(const struct archives *as, const char *job, struct err *err);
/* The same for each job that a text names by a path below jobs/. */
must_check int archives_check_text(const struct archives *as, const char *text, struct err *err);
/* Retention may pack it: it is not packed or on its way, no try has failed since argusd started,
 * and it was not brought back after `before`. */
bool archives_may_retire(const struct archives *as, const char *job, usec_t before);
/* So many are to be packed or brought back, asked for by this user; NULL: by anybody. */
int archives_waiting(const struct archives *as, const char *actor);
/* What the archives of a user (project NULL), or of a project (user NULL), take. */
uint64_t archives_bytes(const struct archives *as, const char *user, const char *project);

/* SPDX-License-Identifier: Apache-2.0 */
/* backups.h - a backup each `backup.every`, and when somebody asks for one.
 *
 * One is made at a time, on a worker thread. The first is due a minute after the start, if the
 * newest one is older than `backup.every`: restarts do not put it off. A failure is tried again
 * after five minutes; it is told by an event once, and by an alert for as long as it lasts. */
#pragma once
#include "argusd/backup/backupfile.h"
#include "argusd/ground/cluster.h"
#include "argusd/ground/events.h"

struct backups;

struct backups_parts { /* all borrowed */
    uv_loop_t *loop;
    const struct settings *settings;
    struct events *events;
    const struct cluster *cluster;
};

/* ERR_USAGE: backup.key is there and cannot be used; ERR_STORE: it cannot be made. */
must_check int backups_new(const struct backups_parts *parts,
                           struct backups **ret,
                           struct err *err);
void backups_start(struct backups *bs);
/* What runs is given up at its next piece. NULL is fine, as below. */
void backups_close(struct backups *bs);
void backups_free(struct backups *bs);

/* Begin one now. ERR_CONFLICT: one is being made; ERR_UNAVAILABLE: there is no place for it. */
must_check int backups_begin(struct backups *bs, const char *actor, struct err *err);
/* As of the last look, the newest first. Borrowed until the loop runs on. */
const struct backup_files *backups_all(const struct backups *bs);
/* For how long the newest one has been overdue, 0 if it is not, and why (English, borrowed). */
usec_t backups_overdue(const struct backups *bs, const char **ret_trouble);

/* SPDX-License-Identifier: Apache-2.0 */
/* writer.h - the store thread: it owns the write connection and commits batches.
 *
 * Batches that come while a commit runs are joined and committed as one. Between
 * batches the thread checkpoints the WAL. It touches nothing of the loop's state. */
#pragma once
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "store/batch.h"

struct writer;

/* The changes there are: each is one statement, its values are the parameters. */
enum writer_statement {
    WRITE_JOB,
    WRITE_JOB_SPEC,
    WRITE_JOB_DETAIL_NEW,
    WRITE_JOB_DETAIL,
    WRITE_JOB_STATE,
    WRITE_JOB_POOL,
    WRITE_JOB_RESPEC,
    WRITE_ORIGIN,
    WRITE_NOTE,
    WRITE_ATTEMPT,
    WRITE_FINDING,
    WRITE_EVENT,
    WRITE_TOKEN,
    WRITE_TOKEN_REMOVE,
    WRITE_USER,
    WRITE_USER_REMOVE,
    WRITE_ENTRY,
    WRITE_ENTRY_REMOVE,
    WRITE_IDEMPOTENCY,
    WRITE_META,
    WRITE_IDEMPOTENCY_PRUNE,
    WRITE_USAGE_KEY,
    WRITE_USAGE,
    WRITE_USAGE_PRUNE,
    WRITE_COUNT,
};

/* How it stands. */
struct writer_look {
    uint64_t durable; /* the newest batch on disk */
    bool failing;
    uint64_t troubles; /* how often it began to fail */
    char why[512];     /* of the newest trouble's first failure */
};

/* Something changed that writer_look() tells. Called on the thread. */
typedef void (*writer_wake_f)(void *arg);

/* db is taken, also on failure. ERR_STORE. */
must_check int writer_open(sqlite3 *db,
                           writer_wake_f wake,
                           void *arg,
                           struct writer **ret,
                           struct err *err);
/* The changes of b are taken, b is empty afterwards. Never waits for the disk. */
void writer_add(struct writer *w, struct batch *b);
/* The thread sleeps: what is added now is committed at once. */
bool writer_is_idle(struct writer *w);

void writer_look(struct writer *w, struct writer_look *ret);

/* Tries once more what is pending, ends the thread and closes the connection; last is how
 * it stood then. ERR_STORE: something could not be written. */
must_check int writer_close(struct writer *w, struct writer_look *last, struct err *err);

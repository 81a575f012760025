/* SPDX-License-Identifier: Apache-2.0 */
/* reader.h - a read-only connection with its prepared statements, and what one read
 * collects: rows that outlive the statement. Used by one thread at a time. */
#pragma once
#include <sqlite3.h>

#include "store/store.h"

struct reader;

/* The file is opened at the first use. path and vfs are borrowed. */
struct reader *reader_new(const char *path, const char *vfs);
void reader_free(struct reader *reader); /* NULL is fine */

/* A statement ready to be bound, prepared at most once per text. Borrowed until the next
 * reader_statement(); reset it soon: an open read keeps the WAL from shrinking. ERR_STORE. */
must_check int reader_statement(struct reader *reader,
                                const char *sql,
                                sqlite3_stmt **ret,
                                struct err *err);
void reader_reset(sqlite3_stmt *st);
/* 1: a row, 0: no more, ERR_STORE. */
must_check int reader_step(struct reader *reader, sqlite3_stmt *st, struct err *err);
/* Several statements see the same moment. */
must_check int reader_begin(struct reader *reader, struct err *err);
void reader_end(struct reader *reader);
/* From any thread: what runs now ends soon with ERR_STORE. */
void reader_interrupt(struct reader *reader);

/* Rows copied out of statements; freed all at once. */
struct answer {
    struct store_result result;
    struct store_job *jobs;
    struct store_attempt *attempts;
    struct store_event *events;
    struct store_finding *findings;
    struct store_usage_sum *usage;
    size_t jobs_cap, attempts_cap, events_cap, findings_cap, usage_cap;
    struct answer_block *blocks;
    char cursor[STORE_CURSOR_MAX];
};

void answer_release(struct answer *a);
/* Copies; the last one added is at the end of the result's list. */
void answer_add_job(struct answer *a, const struct store_job *job);
void answer_add_attempt(struct answer *a, const struct store_attempt *attempt);
void answer_add_event(struct answer *a, const struct store_event *event);
void answer_add_usage(struct answer *a, const struct store_usage_sum *sum);
void answer_add_finding(struct answer *a, const struct store_finding *finding);

/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c - the columns are read in the order of the lists in rows.h. */
#include "store/rows.h"

#include <errno.h>
#include <sqlite3.h>

/* The next column of a row; reading them in order keeps lists and readers alike. */
struct row {
    sqlite3_stmt *st;
    int column;
};

static const char *text(struct row *r)
{
    /* SQLite's unsigned char is only a type: the bytes are UTF-8. */
    return (const char *)sqlite3_column_text(r->st, r->column++);
}

static int64_t integer(struct row *r)
{
    return sqlite3_column_int64(r->st, r->column++);
}

static usec_t when(struct row *r)
{
    return (usec_t)integer(r);
}

static const unsigned char *hash(struct row *r)
{
    int k = r->column++;
    if (sqlite3_column_bytes(r->st, k) != STORE_HASH_BYTES)
        return NULL;
    return sqlite3_column_blob(r->st, k);
}

static void row_read_job(struct row *r, struct store_job *ret)
{
    *ret = (struct store_job){0};
    ret->seq = integer(r);
    ret->id = text(r);
    ret->name = text(r);
    ret->user = text(r);
    ret->project = text(r);
    ret->workload = text(r);
    ret->cluster = text(r);
    ret->pool = text(r);
    ret->queued_at = when(r);
    ret->state = text(r);
    ret->live = integer(r) != 0;
    ret->flags = text(r);
    ret->reason_code = text(r);
    ret->reason_text = text(r);
    ret->nnodes = integer(r);
    ret->n_gpus_per_node = sqlite3_column_double(r->st, r->column++);
    ret->priority = integer(r);
    ret->started_at = when(r);
    ret->ended_at = when(r);
    ret->attempt = integer(r);
    ret->restarts = integer(r);
    ret->step = integer(r);
    ret->gpu_held = integer(r);
    ret->has_exit_code = sqlite3_column_type(r->st, r->column) != SQLITE_NULL;
    ret->exit_code = integer(r);
}

void rows_job(sqlite3_stmt *st, struct store_job *ret)
{
    struct row r = {.st = st};
    row_read_job(&r, ret);
}

void rows_whole_job(sqlite3_stmt *st, struct store_job *ret)
{
    struct row r = {.st = st};
    row_read_job(&r, ret);
    ret->spec = text(&r);
    ret->detail = text(&r);
}

void rows_family_job(sqlite3_stmt *st, struct store_job *ret)
{
    struct row r = {.st = st};
    row_read_job(&r, ret);
    ret->spec = text(&r);
    ret->detail = text(&r);
    ret->origin.parent = text(&r);
    ret->origin.how = text(&r);
    ret->origin.step = integer(&r);
    ret->origin.note = text(&r);
}

void rows_attempt(sqlite3_stmt *st, struct store_attempt *ret)
{
    struct row r = {.st = st};
    ret->job_seq = integer(&r);
    ret->k = integer(&r);
    ret->ray_id = text(&r);
    ret->state = text(&r);
    ret->started_at = when(&r);
    ret->ended_at = when(&r);
    ret->detail = text(&r);
}

void rows_finding(sqlite3_stmt *st, struct store_finding *ret)
{
    struct row r = {.st = st};
    ret->job_seq = integer(&r);
    ret->k = integer(&r);
    ret->class = text(&r);
    ret->rule = text(&r);
    ret->node = text(&r);
    ret->rank = text(&r);
    ret->at = when(&r);
    ret->confidence = sqlite3_column_double(r.st, r.column++);
    ret->body = text(&r);
}

void rows_event(sqlite3_stmt *st, struct store_event *ret)
{
    struct row r = {.st = st};
    ret->seq = integer(&r);
    ret->at = when(&r);
    ret->job_seq = integer(&r);
    ret->job = text(&r);
    ret->kind = text(&r);
    ret->actor = text(&r);
    ret->from_state = text(&r);
    ret->to_state = text(&r);
    ret->reason_code = text(&r);
    ret->text = text(&r);
    ret->data = text(&r);
    ret->object = text(&r);
    ret->hash = hash(&r);
}

int rows_token(sqlite3_stmt *st, struct store_token *ret)
{
    struct row r = {.st = st};
    ret->hash = hash(&r);
    ret->id = text(&r);
    ret->name = text(&r);
    ret->user = text(&r);
    ret->role = text(&r);
    ret->created_at = when(&r);
    ret->expires_at = when(&r);
    ret->last_use_at = when(&r);
    ret->revoked_at = when(&r);
    return ret->hash ? 0 : -EINVAL;
}

void rows_user(sqlite3_stmt *st, struct store_user *ret)
{
    struct row r = {.st = st};
    ret->name = text(&r);
    ret->role = text(&r);
    ret->created_at = when(&r);
    ret->detail = text(&r);
}

void rows_entry(sqlite3_stmt *st, struct store_entry *ret)
{
    struct row r = {.st = st};
    ret->kind = text(&r);
    ret->name = text(&r);
    ret->body = text(&r);
    ret->at = when(&r);
}

int rows_idempotency(sqlite3_stmt *st, struct store_idempotency *ret)
{
    struct row r = {.st = st};
    ret->user = text(&r);
    ret->key = text(&r);
    ret->body_hash = hash(&r);
    ret->job_id = text(&r);
    ret->at = when(&r);
    return ret->body_hash ? 0 : -EINVAL;
}

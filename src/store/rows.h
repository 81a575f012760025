/* SPDX-License-Identifier: Apache-2.0 */
/* rows.h - from a row of a query to the structs of store.h.
 *
 * Each ROWS_* is a column list for the table's alias; the function of that name reads
 * a row of exactly these columns. Texts are borrowed from the
 * statement until its next step. */
#pragma once
#include <sqlite3.h>

#include "store/store.h"

#define ROWS_JOB                                                                                   \
    "j.seq, j.id, coalesce(j.name, j.id), j.user, j.project, j.workload, j.cluster, j.pool,"       \
    " j.queued_at, j.state, j.live, j.flags, j.reason_code, j.reason_text, j.nnodes,"              \
    " j.n_gpus_per_node, j.priority, j.started_at, j.ended_at, j.attempt, j.restarts, j.step,"     \
    " j.gpu_held, j.exit_code"
enum { ROWS_JOB_COLUMNS = 24 };
#define ROWS_ORIGIN "o.parent, o.how, o.step, o.note"
#define ROWS_ATTEMPT "a.job_seq, a.k, a.ray_id, a.state, a.started_at, a.ended_at, a.detail"
#define ROWS_EVENT                                                                                 \
    "e.seq, e.at, e.job_seq, j.id, e.kind, e.actor, e.from_state, e.to_state, e.reason_code,"      \
    " e.text, e.data, e.object, e.hash"
#define ROWS_FINDING "f.job_seq, f.k, f.class, f.rule, f.node, f.rank, f.at, f.confidence, f.body"
#define ROWS_TOKEN "hash, id, name, user, role, created_at, expires_at, last_use_at, revoked_at"
#define ROWS_USER "name, role, created_at, detail"
#define ROWS_ENTRY "kind, name, body, at"
#define ROWS_IDEMPOTENCY "user, key, body_hash, job_id, at"

void rows_job(sqlite3_stmt *st, struct store_job *ret);
/* Columns: ROWS_JOB, spec, detail. */
void rows_whole_job(sqlite3_stmt *st, struct store_job *ret);
/* Columns: ROWS_JOB, spec, detail, ROWS_ORIGIN. */
void rows_family_job(sqlite3_stmt *st, struct store_job *ret);
void rows_attempt(sqlite3_stmt *st, struct store_attempt *ret);
void rows_finding(sqlite3_stmt *st, struct store_finding *ret);
void rows_event(sqlite3_stmt *st, struct store_event *ret);
/* -EINVAL: the hash has another length. */
must_check int rows_token(sqlite3_stmt *st, struct store_token *ret);
void rows_user(sqlite3_stmt *st, struct store_user *ret);
void rows_entry(sqlite3_stmt *st, struct store_entry *ret);
must_check int rows_idempotency(sqlite3_stmt *st, struct store_idempotency *ret);

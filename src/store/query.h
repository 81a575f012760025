/* SPDX-License-Identifier: Apache-2.0 */
/* query.h - the reads of store.h as plain functions of a connection: what the worker
 * threads run. All fill answer->result but its err, and fail with what store.h says. */
#pragma once
#include "store/reader.h"

must_check int query_jobs(struct reader *reader,
                          const struct store_job_query *q,
                          struct answer *a,
                          struct err *err);
must_check int query_job(struct reader *reader,
                         const struct store_job_ref *ref,
                         struct answer *a,
                         struct err *err);
must_check int query_family(struct reader *reader,
                            const struct store_family_query *q,
                            struct answer *a,
                            struct err *err);
/* The attempts of one job, `most` at most. */
must_check int query_attempts(struct reader *reader,
                              int64_t seq,
                              int64_t most,
                              struct answer *a,
                              struct err *err);
must_check int query_events(struct reader *reader,
                            const struct store_event_query *q,
                            struct answer *a,
                            struct err *err);
must_check int query_findings(struct reader *reader,
                              int64_t seq,
                              struct answer *a,
                              struct err *err);
must_check int query_has_id(struct reader *reader, const char *id, bool *ret, struct err *err);
must_check int query_usage(struct reader *reader,
                           const struct store_usage_query *q,
                           struct answer *a,
                           struct err *err);

/* " AND …" for the jobs j of a scope, "" for everything; heap. A statement that has it is bound by
 * query_bind_scope(), if there is a scope. ERR_REFUSED: it has too many projects. */
char *query_scope_sql(const struct store_scope *scope);
void query_bind_scope(sqlite3_stmt *st, const struct store_scope *scope);
must_check int query_check_scope(const struct store_scope *scope, struct err *err);

/* SPDX-License-Identifier: Apache-2.0 */
/* query.c - one job, events, and whether an id is used. Lists of jobs: list.c. */
#include "store/query.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "store/rows.h"

#define SQL_HAS_ID "SELECT 1 FROM job WHERE id=?1"
#define SQL_BY_ID "SELECT seq, id FROM job WHERE id=?1"
#define SQL_BY_NAME "SELECT seq, id FROM job WHERE name=?1 ORDER BY seq DESC LIMIT 4"
/* ?2 is the first text after all that begin with ?1. */
#define SQL_BY_PREFIX                                                                              \
    "SELECT seq, id FROM (SELECT seq, id FROM job WHERE id>=?1 AND id<?2 LIMIT 4)"                 \
    " UNION SELECT seq, id FROM (SELECT seq, id FROM job WHERE name>=?1 AND name<?2 LIMIT 4)"      \
    " ORDER BY seq DESC LIMIT 4"
#define SQL_WHOLE_JOB                                                                              \
    "SELECT " ROWS_JOB ", s.spec, d.detail FROM job j LEFT JOIN job_spec s ON s.seq=j.seq"         \
    " LEFT JOIN job_detail d ON d.seq=j.seq WHERE j.seq=?1"
#define SQL_ATTEMPTS "SELECT " ROWS_ATTEMPT " FROM attempt a WHERE a.job_seq=?1 ORDER BY a.k"
#define SQL_EVENTS                                                                                 \
    "SELECT " ROWS_EVENT " FROM event e LEFT JOIN job j ON j.seq=e.job_seq"                        \
    " WHERE e.seq>?1 AND e.seq<?2"
#define SQL_OF_JOB " AND e.job_seq>0 AND e.job_seq=(SELECT seq FROM job WHERE id=?4)"
#define SQL_OLDEST " ORDER BY e.seq LIMIT ?3"
#define SQL_NEWEST " ORDER BY e.seq DESC LIMIT ?3"

/* Indexed by: of one job, newest first. */
static const char *const events_sql[2][2] = {
    {SQL_EVENTS SQL_OLDEST, SQL_EVENTS SQL_NEWEST},
    {SQL_EVENTS SQL_OF_JOB SQL_OLDEST, SQL_EVENTS SQL_OF_JOB SQL_NEWEST},
};

/* More jobs than are named in the sentence of an ambiguous reference. */
enum { MATCHES_MAX = 4, MATCHES_TEXT_MAX = 400 };

static void bind_text(sqlite3_stmt *st, int k, const char *s)
{
    /* Fails only for a wrong k or a text beyond SQLite's own limit: then nothing matches. */
    (void)sqlite3_bind_text(st, k, s, -1, SQLITE_STATIC);
}

static void bind_int(sqlite3_stmt *st, int k, int64_t v)
{
    (void)sqlite3_bind_int64(st, k, v); /* fails only for a wrong k */
}

int query_has_id(struct reader *r, const char *id, bool *ret, struct err *err)
{
    sqlite3_stmt *st = NULL;
    int rc = reader_statement(r, SQL_HAS_ID, &st, err);

    if (rc < 0)
        return rc;
    bind_text(st, 1, id);
    rc = reader_step(r, st, err);
    reader_reset(st);
    if (rc < 0)
        return rc;
    *ret = rc == 1;
    return 0;
}

/* Jobs that a reference could mean; names lists the first of them for a sentence. */
struct matches {
    int64_t seq;
    size_t n;
    struct buf names;
};

static int match(struct reader *r,
                 const char *sql,
                 const char *ref,
                 const char *upper,
                 struct matches *m,
                 struct err *err)
{
    sqlite3_stmt *st = NULL;
    int rc = reader_statement(r, sql, &st, err);

    if (rc < 0)
        return rc;
    bind_text(st, 1, ref);
    if (upper)
        bind_text(st, 2, upper);
    while ((rc = reader_step(r, st, err)) == 1) {
        m->seq = sqlite3_column_int64(st, 0);
        if (m->n < MATCHES_MAX - 1) /* what is cut off is only missing from the sentence */
            (void)buf_addf(&m->names, "%s'%s'", m->n ? ", " : "",
                           (const char *)sqlite3_column_text(st, 1));
        m->n++;
    }
    reader_reset(st);
    return rc;
}

/* The first text in SQLite's byte order that does not begin with s; NULL if there is none. */
static char *after_prefix(const char *s)
{
    char *t = xstrdup(s);
    size_t n = strlen(t);

    while (n > 0 && (unsigned char)t[n - 1] == 0xff)
        t[--n] = '\0';
    if (n == 0) {
        free(t);
        return NULL;
    }
    t[n - 1] = (char)((unsigned char)t[n - 1] + 1);
    return t;
}

/* Which one is meant: id, then name, then prefix. */
static int resolve(struct reader *r, const char *ref, struct matches *m, struct err *err)
{
    _cleanup_(freep) char *upper = after_prefix(ref);
    int rc = match(r, SQL_BY_ID, ref, NULL, m, err);

    if (rc == 0 && m->n == 0)
        rc = match(r, SQL_BY_NAME, ref, NULL, m, err);
    if (rc == 0 && m->n == 0 && upper)
        rc = match(r, SQL_BY_PREFIX, ref, upper, m, err);
    if (rc < 0)
        return rc;
    if (m->n == 0)
        return err_set(err, ERR_NOT_FOUND, "no job '%s'", ref);
    if (m->n > 1)
        return err_set(err, ERR_CONFLICT, "'%s' could be any of %s%s: give more of the id", ref,
                       buf_str(&m->names), m->n < MATCHES_MAX ? "" : " and more");
    return 0;
}

static int add_whole_job(struct reader *r, int64_t seq, struct answer *a, struct err *err)
{
    struct store_job job;
    sqlite3_stmt *st = NULL;
    int rc = reader_statement(r, SQL_WHOLE_JOB, &st, err);

    if (rc < 0)
        return rc;
    bind_int(st, 1, seq);
    while ((rc = reader_step(r, st, err)) == 1) {
        rows_whole_job(st, &job);
        answer_add_job(a, &job);
    }
    reader_reset(st);
    return rc;
}

static int add_attempts(struct reader *r, int64_t seq, struct answer *a, struct err *err)
{
    struct store_attempt attempt;
    sqlite3_stmt *st = NULL;
    int rc = reader_statement(r, SQL_ATTEMPTS, &st, err);

    if (rc < 0)
        return rc;
    bind_int(st, 1, seq);
    while ((rc = reader_step(r, st, err)) == 1) {
        rows_attempt(st, &attempt);
        answer_add_attempt(a, &attempt);
    }
    reader_reset(st);
    return rc;
}

int query_job(struct reader *r, const char *ref, struct answer *a, struct err *err)
{
    struct matches m = {.names = BUF_INIT(MATCHES_TEXT_MAX)};
    int rc = reader_begin(r, err);

    if (rc < 0)
        return rc;
    rc = resolve(r, ref, &m, err);
    if (rc == 0)
        rc = add_whole_job(r, m.seq, a, err);
    if (rc == 0)
        rc = add_attempts(r, m.seq, a, err);
    reader_end(r);
    buf_release(&m.names);
    return rc;
}

int query_events(struct reader *r,
                 const struct store_event_query *q,
                 struct answer *a,
                 struct err *err)
{
    struct store_event event;
    sqlite3_stmt *st = NULL;
    int rc = reader_statement(r, events_sql[q->job != NULL][q->newest_first], &st, err);

    if (rc < 0)
        return rc;
    bind_int(st, 1, q->since);
    bind_int(st, 2, q->before ? q->before : INT64_MAX);
    bind_int(st, 3, q->limit);
    if (q->job)
        bind_text(st, 4, q->job);
    while ((rc = reader_step(r, st, err)) == 1) {
        rows_event(st, &event);
        answer_add_event(a, &event);
    }
    reader_reset(st);
    return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* query.c - one job, events, findings, and whether an id is used. Lists of jobs: list.c. */
#include "store/query.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/message.h"
#include "store/rows.h"

#define SQL_HAS_ID "SELECT 1 FROM job WHERE id=?1"
/* %s: whose. */
#define SQL_BY_ID "SELECT seq, id FROM job j WHERE id=?1%s"
#define SQL_BY_NAME "SELECT seq, id FROM job j WHERE name=?1%s ORDER BY seq DESC LIMIT 4"
/* ?2 is the first text after all that begin with ?1. */
#define SQL_BY_PREFIX                                                                              \
    "SELECT seq, id FROM (SELECT seq, id FROM job j WHERE id>=?1 AND id<?2%s LIMIT 4)"             \
    " UNION SELECT seq, id FROM (SELECT seq, id FROM job j WHERE name>=?1 AND name<?2%s LIMIT 4)"  \
    " ORDER BY seq DESC LIMIT 4"
#define SQL_OWN " AND j.user=?4"
#define SQL_JOB_IN_SCOPE " AND (j.user=?8 OR j.project IN (%s))"
#define SQL_WHOLE_JOB                                                                              \
    "SELECT " ROWS_JOB ", s.spec, d.detail FROM job j LEFT JOIN job_spec s ON s.seq=j.seq"         \
    " LEFT JOIN job_detail d ON d.seq=j.seq WHERE j.seq=?1"
#define SQL_ATTEMPTS                                                                               \
    "SELECT " ROWS_ATTEMPT " FROM attempt a WHERE a.job_seq=?1 ORDER BY a.k LIMIT ?2"
#define SQL_FINDINGS "SELECT " ROWS_FINDING " FROM finding f WHERE f.job_seq=?1 ORDER BY f.k"
#define SQL_EVENTS                                                                                 \
    "SELECT " ROWS_EVENT " FROM event e LEFT JOIN job j ON j.seq=e.job_seq"                        \
    " WHERE e.seq>?1 AND e.seq<?2"
#define SQL_OF_JOB " AND e.job_seq>0 AND e.job_seq=(SELECT seq FROM job WHERE id=?4)"
#define SQL_OF_KINDS " AND instr(','||?5||',', ','||e.kind||',')>0"
#define SQL_OF_ACTOR " AND e.actor=?6"
/* A clock that was set back makes times that are not in the order of seq: each row is asked. The
 * '+' keeps the rows in the order of seq, which no index of another column has. */
#define SQL_OF_TIME " AND +e.at>=?13 AND +e.at<?14"
/* Between which numbers the events of a time lie, by their index. Only the time is asked: with the
 * other filters of a query the LIMIT would bound what is found, and not what is walked through. */
#define SQL_TIME_LOOK                                                                              \
    "SELECT count(*), min(seq), max(seq) FROM (SELECT seq FROM event INDEXED BY event_at"          \
    " WHERE at>=?1 AND at<?2 LIMIT ?3)"
/* "node/n1", or "node" for all of them; what is about a job alone has no object. */
#define SQL_OF_OBJECT                                                                              \
    " AND (e.object=?7 OR substr(e.object,1,length(?7)+1)=?7||'/'"                                 \
    " OR (e.object IS NULL AND e.job_seq>0 AND ?7 IN ('job','job/'||j.id)))"
/* ?8: the user. The columns are those of the thing, or of the job that it is about. */
#define SQL_IN_SCOPE                                                                               \
    " AND ((coalesce(e.owner,j.user)=?8 AND " SQL_IS_OF(                                           \
        "9") ")"                                                                                   \
             " OR (coalesce(e.project,j.project) IN (?12%s%s) AND " SQL_IS_OF(                     \
                 "10") ")"                                                                         \
                       " OR " SQL_IS_OF("11") ")"
#define SQL_IS_OF(kinds) "instr(?" kinds ",','||coalesce(e.thing,'" STORE_THING_JOB "')||',')>0"
#define SQL_OLDEST " ORDER BY e.seq LIMIT ?3"
#define SQL_NEWEST " ORDER BY e.seq DESC LIMIT ?3"

enum {
    PARAM_KINDS = 5,
    PARAM_ACTOR,
    PARAM_OBJECT,
    PARAM_USER,
    PARAM_KINDS_OWN,
    PARAM_KINDS_SHARED,
    PARAM_KINDS_ANY,
    PARAM_EVERYBODY,
    PARAM_FROM,
    PARAM_TO,
    PARAM_PROJECT,
    SQL_MAX_BYTES = 32768
};
/* So many events of a time at most are looked up before its page is read. Where there are more, the
 * rows are walked by seq: what lies before the time is then walked through in vain, but many of the
 * rows behind that are of the time. */
enum { TIME_LOOK_MAX = 5000 };
/* More jobs than are named in the sentence of an ambiguous reference. */
enum { MATCHES_MAX = 4, MATCHES_TEXT_MAX = 400 };

static void bind_text(sqlite3_stmt *st, int k, const char *s)
{
    /* Fails only for a wrong k or a text beyond SQLite's own limit: then nothing matches. */
    (void)sqlite3_bind_text(st, k, s, -1, SQLITE_STATIC);
}

static void store_query_bind_int(sqlite3_stmt *st, int k, int64_t v)
{
    (void)sqlite3_bind_int64(st, k, v); /* fails only for a wrong k */
}

int query_has_id(struct reader *reader, const char *id, bool *ret, struct err *err)
{
    sqlite3_stmt *st = NULL;
    int r = reader_statement(reader, SQL_HAS_ID, &st, err);
    if (r < 0)
        return r;
    bind_text(st, 1, id);
    r = reader_step(reader, st, err);
    reader_reset(st);
    if (r < 0)
        return r;
    *ret = r == 1;
    return 0;
}

/* "?15,?16" */
static void store_query_add_projects(const struct store_scope *s, struct buf *sql)
{
    for (size_t i = 0; i < s->nprojects; i++)
        (void)buf_addf(sql, "%s?%d", i ? "," : "", PARAM_PROJECT + (int)i);
}

void query_bind_scope(sqlite3_stmt *st, const struct store_scope *s)
{
    bind_text(st, PARAM_USER, s->user);
    for (size_t i = 0; i < s->nprojects; i++)
        bind_text(st, PARAM_PROJECT + (int)i, s->projects[i]);
}

/* Jobs that a reference could mean; names lists the first of them for a sentence. */
struct matches {
    const struct store_job_ref *ref;
    const char *upper;    /* behind all that begin with it; NULL = nothing is */
    const char *in_scope; /* SQL, "" = everything */
    int64_t seq;
    size_t n;
    struct buf names;
};

static int store_query_match(struct reader *reader,
                             const char *sql,
                             struct matches *m,
                             struct err *err)
{
    sqlite3_stmt *st = NULL;
    int r = reader_statement(reader, sql, &st, err);
    if (r < 0)
        return r;
    bind_text(st, 1, m->ref->ref);
    bind_text(st, 2, m->upper);
    bind_text(st, 4, m->ref->user);
    if (m->ref->scope)
        query_bind_scope(st, m->ref->scope);
    while ((r = reader_step(reader, st, err)) == 1) {
        m->seq = sqlite3_column_int64(st, 0);
        if (m->n < MATCHES_MAX - 1) /* what is cut off is only missing from the sentence */
            (void)buf_addf(&m->names, "%s'%s'", m->n ? ", " : "",
                           (const char *)sqlite3_column_text(st, 1));
        m->n++;
    }
    reader_reset(st);
    return r;
}

enum step { BY_ID, OWN_BY_NAME, BY_NAME, OWN_BY_PREFIX, BY_PREFIX, STEPS };

static int match_step(struct reader *reader, enum step step, struct matches *m, struct err *err)
{
    bool own = step == OWN_BY_NAME || step == OWN_BY_PREFIX;
    const char *whose = own ? SQL_OWN : m->in_scope;
    struct buf sql = BUF_INIT(SQL_MAX_BYTES);
    if ((own && !m->ref->user) || (step >= OWN_BY_PREFIX && !m->upper))
        return 0;
    if (step == BY_ID)
        (void)buf_addf(&sql, SQL_BY_ID, whose);
    else if (step <= BY_NAME)
        (void)buf_addf(&sql, SQL_BY_NAME, whose);
    else
        (void)buf_addf(&sql, SQL_BY_PREFIX, whose, whose);
    int r = store_query_match(reader, buf_str(&sql), m, err);
    buf_release(&sql);
    return r;
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

char *query_scope_sql(const struct store_scope *scope)
{
    struct buf sql = BUF_INIT(SQL_MAX_BYTES), projects = BUF_INIT(SQL_MAX_BYTES);
    if (scope) {
        store_query_add_projects(scope, &projects);
        (void)buf_addf(&sql, SQL_JOB_IN_SCOPE, buf_str(&projects));
    }
    buf_release(&projects);
    return buf_take(&sql);
}

int query_check_scope(const struct store_scope *scope, struct err *err)
{
    if (!scope || scope->nprojects <= STORE_SCOPE_MAX)
        return 0;
    return message_refuse(err, ERR_REFUSED, "many_projects",
                          MESSAGE_ARGS(MESSAGE_NUM("most", STORE_SCOPE_MAX)));
}

/* Which one is meant: the first step that finds any says. */
static int store_query_resolve(struct reader *reader, struct matches *m, struct err *err)
{
    _cleanup_(freep) char *upper = after_prefix(m->ref->ref);
    _cleanup_(freep) char *in_scope = query_scope_sql(m->ref->scope);
    int r = query_check_scope(m->ref->scope, err);
    m->upper = upper;
    m->in_scope = in_scope;
    const enum step end = m->ref->is_id ? BY_ID + 1 : STEPS;
    for (enum step step = BY_ID; r == 0 && m->n == 0 && step < end; step++)
        r = match_step(reader, step, m, err);
    if (r < 0)
        return r;
    if (m->n == 0)
        return message_refuse(
            err, ERR_NOT_FOUND, "not_found",
            MESSAGE_ARGS(MESSAGE_STR("noun", "job"), MESSAGE_STR("name", m->ref->ref)));
    if (m->n > 1)
        return message_refuse(err, ERR_CONFLICT, "job_ambiguous",
                              MESSAGE_ARGS(MESSAGE_STR("text", m->ref->ref),
                                           MESSAGE_STR("ids", buf_str(&m->names)),
                                           MESSAGE_STR("more", m->n < MATCHES_MAX ? "" : "yes")));
    return 0;
}

static int add_whole_job(struct reader *reader, int64_t seq, struct answer *a, struct err *err)
{
    struct store_job job;
    sqlite3_stmt *st = NULL;
    int r = reader_statement(reader, SQL_WHOLE_JOB, &st, err);
    if (r < 0)
        return r;
    store_query_bind_int(st, 1, seq);
    while ((r = reader_step(reader, st, err)) == 1) {
        rows_whole_job(st, &job);
        answer_add_job(a, &job);
    }
    reader_reset(st);
    return r;
}

int query_attempts(struct reader *reader,
                   int64_t seq,
                   int64_t most,
                   struct answer *a,
                   struct err *err)
{
    struct store_attempt attempt;
    sqlite3_stmt *st = NULL;
    int r = reader_statement(reader, SQL_ATTEMPTS, &st, err);
    if (r < 0)
        return r;
    store_query_bind_int(st, 1, seq);
    store_query_bind_int(st, 2, most);
    while ((r = reader_step(reader, st, err)) == 1) {
        rows_attempt(st, &attempt);
        answer_add_attempt(a, &attempt);
    }
    reader_reset(st);
    return r;
}

int query_job(struct reader *reader,
              const struct store_job_ref *ref,
              struct answer *a,
              struct err *err)
{
    struct matches m = {.ref = ref, .names = BUF_INIT(MATCHES_TEXT_MAX)};
    int r = reader_begin(reader, err);
    if (r < 0)
        return r;
    r = store_query_resolve(reader, &m, err);
    if (r == 0)
        r = add_whole_job(reader, m.seq, a, err);
    if (r == 0)
        r = query_attempts(reader, m.seq, INT64_MAX, a, err);
    reader_end(reader);
    buf_release(&m.names);
    return r;
}

int query_findings(struct reader *reader, int64_t seq, struct answer *a, struct err *err)
{
    struct store_finding finding;
    sqlite3_stmt *st = NULL;
    int r = reader_statement(reader, SQL_FINDINGS, &st, err);
    if (r < 0)
        return r;
    store_query_bind_int(st, 1, seq);
    while ((r = reader_step(reader, st, err)) == 1) {
        rows_finding(st, &finding);
        answer_add_finding(a, &finding);
    }
    reader_reset(st);
    return r;
}

static void store_query_make_sql(const struct store_event_query *q, struct buf *sql)
{
    struct buf projects = BUF_INIT(SQL_MAX_BYTES);
    (void)buf_adds(sql, SQL_EVENTS);
    if (q->job)
        (void)buf_adds(sql, SQL_OF_JOB);
    if (q->kinds)
        (void)buf_adds(sql, SQL_OF_KINDS);
    if (q->actor)
        (void)buf_adds(sql, SQL_OF_ACTOR);
    if (q->object)
        (void)buf_adds(sql, SQL_OF_OBJECT);
    if (q->from || q->to)
        (void)buf_adds(sql, SQL_OF_TIME);
    if (q->scope) {
        store_query_add_projects(q->scope->who, &projects);
        (void)buf_addf(sql, SQL_IN_SCOPE, projects.len ? "," : "", buf_str(&projects));
    }
    (void)buf_adds(sql, q->newest_first ? SQL_NEWEST : SQL_OLDEST);
    buf_release(&projects);
}

static void bind_event_time(sqlite3_stmt *st, const struct store_event_query *q)
{
    store_query_bind_int(st, PARAM_FROM, (int64_t)q->from);
    store_query_bind_int(st, PARAM_TO, q->to ? (int64_t)q->to : INT64_MAX);
}

static void bind_event_scope(sqlite3_stmt *st, const struct store_event_scope *s)
{
    query_bind_scope(st, s->who);
    bind_text(st, PARAM_KINDS_OWN, s->own);
    bind_text(st, PARAM_KINDS_SHARED, s->shared);
    bind_text(st, PARAM_KINDS_ANY, s->any);
    bind_text(st, PARAM_EVERYBODY, STORE_EVERYBODY);
}

/* Events after `since` and before `before`, by their numbers. */
struct event_span {
    int64_t since, before;
};

/* Makes *span as narrow as the events of the time are, where these are few: a page of an hour does
 * not walk through the years before and after it. */
static int query_narrow_span(struct reader *reader,
                             const struct store_event_query *q,
                             struct event_span *span,
                             struct err *err)
{
    sqlite3_stmt *st = NULL;
    int r = reader_statement(reader, SQL_TIME_LOOK, &st, err);
    if (r < 0)
        return r;
    store_query_bind_int(st, 1, (int64_t)q->from);
    store_query_bind_int(st, 2, q->to ? (int64_t)q->to : INT64_MAX);
    store_query_bind_int(st, 3, TIME_LOOK_MAX + 1);
    r = reader_step(reader, st, err);
    if (r == 1) {
        int64_t n = sqlite3_column_int64(st, 0), least = sqlite3_column_int64(st, 1),
                most = sqlite3_column_int64(st, 2);
        if (n == 0)
            span->before = span->since; /* nothing lies between them */
        else if (n <= TIME_LOOK_MAX)
            *span = (struct event_span){.since = least > span->since ? least - 1 : span->since,
                                        .before = most < span->before ? most + 1 : span->before};
    }
    reader_reset(st);
    return r < 0 ? r : 0;
}

static void bind_events(sqlite3_stmt *st,
                        const struct store_event_query *q,
                        const struct event_span *span)
{
    store_query_bind_int(st, 1, span->since);
    store_query_bind_int(st, 2, span->before);
    store_query_bind_int(st, 3, q->limit);
    if (q->job)
        bind_text(st, 4, q->job);
    if (q->kinds)
        bind_text(st, PARAM_KINDS, q->kinds);
    if (q->actor)
        bind_text(st, PARAM_ACTOR, q->actor);
    if (q->object)
        bind_text(st, PARAM_OBJECT, q->object);
    if (q->from || q->to)
        bind_event_time(st, q);
    if (q->scope)
        bind_event_scope(st, q->scope);
}

static int query_events_in(struct reader *reader,
                           const struct store_event_query *q,
                           const struct event_span *span,
                           struct answer *a,
                           struct err *err)
{
    struct buf sql = BUF_INIT(SQL_MAX_BYTES);
    struct store_event event;
    sqlite3_stmt *st = NULL;
    store_query_make_sql(q, &sql);
    int r = reader_statement(reader, buf_str(&sql), &st, err);
    buf_release(&sql);
    if (r < 0)
        return r;
    bind_events(st, q, span);
    while ((r = reader_step(reader, st, err)) == 1) {
        rows_event(st, &event);
        answer_add_event(a, &event);
    }
    reader_reset(st);
    return r;
}

static int query_events_of_time(struct reader *reader,
                                const struct store_event_query *q,
                                struct event_span *span,
                                struct answer *a,
                                struct err *err)
{
    int r = reader_begin(reader, err);
    if (r < 0)
        return r;
    r = query_narrow_span(reader, q, span, err);
    if (r == 0)
        r = query_events_in(reader, q, span, a, err);
    reader_end(reader);
    return r;
}

int query_events(struct reader *reader,
                 const struct store_event_query *q,
                 struct answer *a,
                 struct err *err)
{
    struct event_span span = {.since = q->since, .before = q->before ? q->before : INT64_MAX};
    int r = query_check_scope(q->scope ? q->scope->who : NULL, err);
    if (r < 0)
        return r;
    /* A job has few events, and their index. */
    return !q->job && (q->from || q->to) ? query_events_of_time(reader, q, &span, a, err)
                                         : query_events_in(reader, q, &span, a, err);
}

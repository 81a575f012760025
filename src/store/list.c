/* SPDX-License-Identifier: Apache-2.0 */
/* list.c - pages of jobs, newest first: the SQL is put together from the filters.
 *
 * Every index of the table ends in seq, so any one filter can be read newest first
 * from its index and stopped after `limit` rows; the others are tested on the way. Which
 * filter drives is decided by a look at how many rows each would give (PROBE_ROWS at
 * most): that needs no statistics and cannot be very wrong. Several states are
 * several such reads merged (UNION ALL keeps their order without a sort).
 *
 * Clusters, pools and workloads have indexes of the jobs that ended alone, so that a submit
 * does not pay for them: the live jobs are merged in from theirs, unless the caller knows that none
 * of them fits.
 *
 * since and until become bounds of seq by bisection, for jobs are numbered as they
 * are queued. A clock that was set back makes that order untrue by as much, so the
 * bounds are SLACK wide of the times, and the exact test stays in the query.
 *
 * What held slots in a time is told by its attempts. Which jobs that may be: those that live and
 * those that ended since. Up to RAN_SET_MAX of them are a set from their indexes, so that whatever
 * index drives, no row is read of a job that is not in it; and no job before the first of them is
 * looked at. Where no filter leaves any out, and a page does not hold them all, the walk by seq
 * ends sooner.
 *
 * Another order than newest first is one SELECT that looks at every job that fits (listsort.c), and
 * so does a count. */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "store/listsort.h"
#include "store/query.h"
#include "store/rows.h"

/* Parameters: ?1 and ?2 bound seq (?2 < seq < ?1), ?3 is the limit. */
#define SQL_SELECT "SELECT " ROWS_JOB "%s FROM job j %s WHERE j.seq<?1 AND j.seq>?2"
#define SQL_DETAIL ", NULL, (SELECT d.detail FROM job_detail d WHERE d.seq=j.seq)"
#define SQL_ORDER " ORDER BY 1 DESC LIMIT ?3"
#define SQL_UNION " UNION ALL "
/* The jobs of an index of those that ended, and the others. */
#define SQL_ENDED " AND NOT j.live"
#define SQL_LIVE " AND j.live"
#define SQL_PROBE                                                                                  \
    "SELECT count(*) FROM (SELECT 1 FROM job j %s WHERE j.seq<?1 AND j.seq>?2%s LIMIT ?3)"
/* The parts of the filter BY_SCOPE. */
#define SQL_OF_USER " AND j.user=?13"
#define SQL_NOT_OF_USER " AND j.user IS NOT ?13"
#define SQL_NEXT_TIME "SELECT seq, queued_at FROM job WHERE seq>=?1 ORDER BY seq LIMIT 1"
#define SQL_LAST_SEQ "SELECT coalesce(max(seq), 0) FROM job"
#define SQL_COUNT "SELECT j.state, j.live, count(*) FROM job j %s WHERE j.seq<?1 AND j.seq>?2"
#define SQL_COUNT_GROUP " GROUP BY 1, 2 ORDER BY 1, 2"

/* May have held slots since %d: by the indexes, or each by itself. */
#define SQL_RAN_SET                                                                                \
    "SELECT seq FROM job INDEXED BY job_live WHERE live AND seq<?1 AND seq>?2 UNION ALL"           \
    " SELECT seq FROM job INDEXED BY job_ended_at WHERE NOT live AND ended_at>=?%d"                \
    " AND seq<?1 AND seq>?2"
#define SQL_RAN_AMONG " AND j.seq IN (" SQL_RAN_SET ")"
#define SQL_RAN_LATE " AND (j.live OR j.ended_at>=?%d)"
#define SQL_RAN_LOOK "SELECT count(*), min(seq) FROM (" SQL_RAN_SET " LIMIT ?3)"
/* An attempt has its slots from its plan on, and gives them back when it ends; but the last one's
 * may be kept after a failure, until the job ends. started_at of a job that waits again is 0; of
 * one that does not, its last attempt had its slots by then, and has them yet or until the job's
 * end: no attempt need be read. */
#define SQL_HAD_SLOTS                                                                              \
    "coalesce(CASE WHEN json_valid(a.detail) THEN json_extract(a.detail, '$.planned_at') END,"     \
    " nullif(a.started_at, 0), a.ended_at)"
#define SQL_RAN                                                                                    \
    " AND ((j.started_at>0 AND (?%d=0 OR j.started_at<?%d))"                                       \
    " OR EXISTS (SELECT 1 FROM attempt a WHERE a.job_seq=j.seq"                                    \
    " AND (?%d=0 OR " SQL_HAD_SLOTS "<?%d)"                                                        \
    " AND (a.ended_at=0 OR a.ended_at>=?%d OR (a.k=j.attempt AND j.started_at>0))))"

/* An attempt failed, as usage tells failures (core/account/recovery_job.c): one of before outcomes
 * were kept is told by its job. What succeeded at once has none, and is not looked into. Behind it
 * more tests of the same attempt, inside the CASE since a damaged detail ends a read, and its end.
 */
#define SQL_OUTCOME "coalesce(json_extract(a.detail, '$.outcome'), '')"
#define SQL_FAILED                                                                                 \
    " AND (j.attempt>1 OR j.state<>'SUCCEEDED') AND EXISTS (SELECT 1 FROM attempt a"               \
    " WHERE a.job_seq=j.seq AND CASE WHEN json_valid(a.detail)"                                    \
    " THEN (" SQL_OUTCOME "='failed' OR (" SQL_OUTCOME "='' AND a.state='ENDED'"                   \
    " AND (a.k<j.attempt OR j.state IN ('QUEUED','FAILED'))))"
#define SQL_FAILED_END " END)"
/* By one of these classes; without one it is unknown. One of these nodes may be at fault. */
#define SQL_BY_CLASS                                                                               \
    " AND instr(','||?%d||',', ','||coalesce(json_extract(a.detail, '$.class'), 'unknown')||',')>0"
#define SQL_BY_NODE " AND instr(','||?%d||',', ','||json_extract(a.detail, '$.node')||',')>0"
/* Rounded: what a node has of a gang whose nodes differ is a mean. */
#define SQL_GPUS                                                                                   \
    " AND round(j.nnodes*j.n_gpus_per_node, 6)>?%d-1 AND round(j.nnodes*j.n_gpus_per_node, 6)<=?%d"

/* The filters. Those with an index can drive a read. */
enum filter {
    BY_USER,
    BY_PROJECT,
    BY_CLUSTER,
    BY_POOL,
    BY_WORKLOAD,
    BY_SINCE,
    BY_UNTIL,
    BY_PART,
    BY_LIVE,
    BY_SCOPE,
    BY_STATE,
    BY_FLAG,
    BY_FAILURE,
    BY_GPUS,
    FILTERS
};

#define ANY_OF(column, param) " AND instr(','||" param "||',', ','||j." column "||',')>0"

static const struct {
    const char *index; /* NULL: cannot drive */
    const char *test;  /* its parameter is 4 + the filter's number */
    bool is_of_ended;  /* its index holds the jobs that ended alone */
    const char *any;   /* the test of several names, with commas; they do not drive */
} filters[FILTERS] = {
    [BY_USER] = {.index = "INDEXED BY job_user",
                 .test = " AND j.user=?4",
                 .any = ANY_OF("user", "?4")},
    [BY_PROJECT] = {.index = "INDEXED BY job_project",
                    .test = " AND j.project=?5",
                    .any = ANY_OF("project", "?5")},
    [BY_CLUSTER] = {.index = "INDEXED BY job_ended_cluster",
                    .test = " AND j.cluster=?6",
                    .is_of_ended = true,
                    .any = ANY_OF("cluster", "?6")},
    [BY_POOL] = {.index = "INDEXED BY job_ended_pool",
                 .test = " AND j.pool=?7",
                 .is_of_ended = true,
                 .any = ANY_OF("pool", "?7")},
    [BY_WORKLOAD] = {.index = "INDEXED BY job_ended_workload",
                     .test = " AND j.workload=?8",
                     .is_of_ended = true,
                     .any = ANY_OF("workload", "?8")},
    [BY_SINCE] = {.index = NULL, .test = " AND j.queued_at>=?9"},
    [BY_UNTIL] = {.index = NULL, .test = " AND j.queued_at<?10"},
    [BY_PART] = {.index = NULL,
                 .test = " AND (j.id LIKE ?11 ESCAPE '\\' OR j.name LIKE ?11 ESCAPE '\\')"},
    [BY_LIVE] = {.index = "INDEXED BY job_live", .test = SQL_LIVE},
    [BY_SCOPE] = {.index = "INDEXED BY job_user", .test = NULL},  /* of user ?13, or of a project */
    [BY_STATE] = {.index = "INDEXED BY job_state", .test = NULL}, /* one of ?14, ?15, … */
    [BY_FLAG] = {.index = NULL, .test = NULL},
    [BY_FAILURE] = {.index = NULL, .test = NULL},
    [BY_GPUS] = {.index = NULL, .test = NULL},
};

enum {
    PARAM_FIRST = 4,
    PARAM_STATE = PARAM_FIRST + BY_STATE,
    PARAM_PROJECT = PARAM_STATE + STORE_STATES_MAX,
    PARAM_FLAG = PARAM_PROJECT + STORE_SCOPE_MAX,
    PARAM_NOW = PARAM_FLAG + STORE_FLAGS_MAX,
    PARAM_CURSOR,
    PARAM_RAN_SINCE,
    PARAM_RAN_UNTIL,
    PARAM_FAILURE,
    PARAM_FAILURE_NODE,
    PARAM_GPUS_LEAST,
    PARAM_GPUS_MOST,
    CURSOR_MARK_MAX = 8,
    PROBE_ROWS = 500,
    RAN_SET_MAX = 100000, /* seqs, in all sets of a page together */
    SQL_MAX_BYTES = 65536,
    /* A scope of more projects would be a text of as many SELECTs. */
    SCOPE_DRIVES_MAX = 16,
};
#define SLACK USEC_HOUR
#define NO_INDEX "NOT INDEXED"
#define CURSOR_FORM "%s%" PRId64
#define ORDER_PARAMS ((struct listsort_params){PARAM_NOW, PARAM_CURSOR})

/* A query on its way: which filters there are, as bits, and the bounds of seq. */
struct list {
    struct reader *reader;
    const struct store_job_query *q;
    unsigned mask;
    int64_t above, below;
    int64_t cursor; /* seq of the last job of the page before; 0: none */
    char *part;     /* pattern of BY_PART */
    int64_t n_ran;  /* jobs that may have held slots since ran_since; RAN_SET_MAX: that or more */
    bool ran_among; /* they are a set: else each is told by itself */
};

static bool store_list_has(const struct list *l, enum filter f)
{
    return l->mask & (1u << f);
}

static const char *store_list_text_of(const struct list *l, enum filter f)
{
    switch (f) {
    case BY_USER:
        return l->q->user;
    case BY_PROJECT:
        return l->q->project;
    case BY_CLUSTER:
        return l->q->cluster;
    case BY_POOL:
        return l->q->pool;
    case BY_WORKLOAD:
        return l->q->workload;
    case BY_PART:
        return l->part;
    case BY_SCOPE:
        return l->q->scope ? l->q->scope->user : NULL;
    default:
        return NULL;
    }
}

/* Several names, with commas. */
static bool store_list_is_many(const struct list *l, enum filter f)
{
    return filters[f].any && strchr(str_or(store_list_text_of(l, f), ""), ',');
}

/* %q% with LIKE's own characters made plain. */
static char *make_part(const char *q)
{
    char *s = xmalloc(2 * strlen(q) + 3), *p = s;
    *p++ = '%';
    for (; *q; q++) {
        if (strchr("%_\\", *q))
            *p++ = '\\';
        *p++ = *q;
    }
    *p++ = '%';
    *p = '\0';
    return s;
}

/* Newest first is an order by seq alone, whose pages go on at a seq and not behind a job. */
static bool store_list_is_newest(const struct list *l)
{
    return l->q->sort == STORE_SORT_NEWEST && !l->q->ascending;
}

/* What a cursor of this order begins with, before the seq. */
static void store_list_mark(const struct list *l, char ret[static CURSOR_MARK_MAX])
{
    if (store_list_is_newest(l))
        text_copy_to(ret, CURSOR_MARK_MAX, "j");
    else
        text_printf_to(ret, CURSOR_MARK_MAX, "%c%02u-", l->q->ascending ? 'u' : 'd',
                       (unsigned)l->q->sort);
}

static int store_list_read_cursor(const struct list *l,
                                  const char *cursor,
                                  int64_t *ret,
                                  struct err *err)
{
    char mark[CURSOR_MARK_MAX];
    store_list_mark(l, mark);
    size_t n = strlen(mark);
    if (strncmp(cursor, mark, n) != 0 || str_to_int(cursor + n, 1, INT64_MAX, ret, NULL) < 0)
        return message_refuse(err, ERR_BAD_REQUEST, "not_a_cursor",
                              MESSAGE_ARGS(MESSAGE_STR("cursor", cursor)));
    return 0;
}

static int init(struct list *l, struct err *err)
{
    const struct store_job_query *q = l->q;
    l->below = INT64_MAX;
    if (q->limit < 1 || q->limit > STORE_PAGE_MAX)
        return message_refuse(
            err, ERR_BAD_REQUEST, "limit_outside",
            MESSAGE_ARGS(MESSAGE_NUM("limit", q->limit), MESSAGE_NUM("most", STORE_PAGE_MAX)));
    if (q->nstates > STORE_STATES_MAX)
        return message_refuse(err, ERR_BAD_REQUEST, "many_states",
                              MESSAGE_ARGS(MESSAGE_NUM("most", STORE_STATES_MAX)));
    if (q->scope && q->scope->nprojects > STORE_SCOPE_MAX)
        return message_refuse(err, ERR_REFUSED, "many_projects",
                              MESSAGE_ARGS(MESSAGE_NUM("most", STORE_SCOPE_MAX)));
    if (q->nflags > STORE_FLAGS_MAX)
        return message_refuse(err, ERR_BAD_REQUEST, "many_flags",
                              MESSAGE_ARGS(MESSAGE_NUM("most", STORE_FLAGS_MAX)));
    if (q->q && *q->q)
        l->part = make_part(q->q);
    for (enum filter f = 0; f < FILTERS; f++)
        if (store_list_text_of(l, f))
            l->mask |= 1u << f;
    l->mask |= (unsigned)(q->since != 0) << BY_SINCE | (unsigned)(q->until != 0) << BY_UNTIL |
               (unsigned)q->live << BY_LIVE | (unsigned)(q->nstates != 0) << BY_STATE;
    l->mask |= (unsigned)(q->nflags != 0) << BY_FLAG |
               (unsigned)(q->failure || q->failure_node) << BY_FAILURE |
               (unsigned)q->by_gpus << BY_GPUS;
    return q->cursor ? store_list_read_cursor(l, q->cursor, &l->cursor, err) : 0;
}

static void store_list_bind_int(sqlite3_stmt *st, int k, int64_t v)
{
    (void)sqlite3_bind_int64(st, k, v); /* fails only for a parameter that the text lacks */
}

/* Everything that the text of this list may refer to. */
static void bind_all(const struct list *l, sqlite3_stmt *st, int64_t limit)
{
    store_list_bind_int(st, 1, l->below);
    store_list_bind_int(st, 2, l->above);
    store_list_bind_int(st, 3, limit);
    for (enum filter f = 0; f < FILTERS; f++)
        if (store_list_text_of(l, f)) /* a text beyond SQLite's limits matches nothing; as above */
            (void)sqlite3_bind_text(st, PARAM_FIRST + (int)f, store_list_text_of(l, f), -1,
                                    SQLITE_STATIC);
    store_list_bind_int(st, PARAM_FIRST + BY_SINCE, (int64_t)l->q->since);
    store_list_bind_int(st, PARAM_FIRST + BY_UNTIL, (int64_t)l->q->until);
    for (size_t i = 0; i < l->q->nstates; i++)
        (void)sqlite3_bind_text(st, PARAM_STATE + (int)i, l->q->states[i], -1, SQLITE_STATIC);
    for (size_t i = 0; i < l->q->nflags; i++)
        (void)sqlite3_bind_text(st, PARAM_FLAG + (int)i, l->q->flags[i], -1, SQLITE_STATIC);
    store_list_bind_int(st, PARAM_NOW, (int64_t)l->q->now);
    store_list_bind_int(st, PARAM_CURSOR, l->cursor);
    store_list_bind_int(st, PARAM_RAN_SINCE, (int64_t)l->q->ran_since);
    store_list_bind_int(st, PARAM_RAN_UNTIL, (int64_t)l->q->ran_until);
    store_list_bind_int(st, PARAM_GPUS_LEAST, l->q->gpus_least);
    store_list_bind_int(st, PARAM_GPUS_MOST, l->q->gpus_most);
    (void)sqlite3_bind_text(st, PARAM_FAILURE, l->q->failure, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(st, PARAM_FAILURE_NODE, l->q->failure_node, -1, SQLITE_STATIC);
    for (size_t i = 0; l->q->scope && i < l->q->scope->nprojects; i++)
        (void)sqlite3_bind_text(st, PARAM_PROJECT + (int)i, l->q->scope->projects[i], -1,
                                SQLITE_STATIC);
}

/* A number from a query of this list's parameters. */
static int store_list_ask(const struct list *l,
                          const char *sql,
                          int64_t limit,
                          int64_t *ret,
                          struct err *err)
{
    sqlite3_stmt *st = NULL;
    int r = reader_statement(l->reader, sql, &st, err);
    if (r < 0)
        return r;
    bind_all(l, st, limit);
    r = reader_step(l->reader, st, err);
    if (r == 1)
        *ret = sqlite3_column_int64(st, 0);
    reader_reset(st);
    return r < 0 ? r : 0;
}

/* ---- since, until and newest ---- */

/* The first job at or behind *seq: its number and time. 0: there is none. */
static int job_at(const struct list *l, int64_t *seq, usec_t *at, struct err *err)
{
    sqlite3_stmt *st = NULL;
    int r = reader_statement(l->reader, SQL_NEXT_TIME, &st, err);
    if (r < 0)
        return r;
    store_list_bind_int(st, 1, *seq);
    r = reader_step(l->reader, st, err);
    if (r == 1) {
        *seq = sqlite3_column_int64(st, 0);
        *at = (usec_t)sqlite3_column_int64(st, 1);
    }
    reader_reset(st);
    return r;
}

/* The lowest seq from which on jobs were queued at `when` or later, by bisection;
 * behind the last job if there is none. */
static int bisect(const struct list *l, usec_t when, int64_t *ret, struct err *err)
{
    int64_t low = 1, high = 0;
    int r = store_list_ask(l, SQL_LAST_SEQ, 0, &high, err);
    high++;
    while (r >= 0 && low < high) {
        int64_t middle = low + (high - low) / 2, seq = middle;
        usec_t at = 0;
        r = job_at(l, &seq, &at, err);
        if (r == 0 || at >= when)
            high = middle;
        else
            low = seq + 1;
    }
    *ret = low;
    return r < 0 ? r : 0;
}

static int narrow(struct list *l, struct err *err)
{
    int64_t seq = 0;
    int r = 0;
    if (l->q->since > SLACK) {
        r = bisect(l, l->q->since - SLACK, &seq, err);
        l->above = seq - 1;
    }
    /* What held slots before that was queued before it, too. */
    usec_t until = l->q->until ? l->q->until : l->q->ran_until;
    if (l->q->ran_until && l->q->ran_until < until)
        until = l->q->ran_until;
    if (r == 0 && until) {
        r = bisect(l, until + SLACK, &seq, err);
        if (seq < l->below)
            l->below = seq;
    }
    if (r == 0 && l->q->newest) {
        r = store_list_ask(l, SQL_LAST_SEQ, 0, &seq, err);
        if (seq - l->q->newest > l->above)
            l->above = seq - l->q->newest;
    }
    return r;
}

/* How many jobs may have held slots since ran_since; no other is before the first of them. */
static int store_list_look_ran(struct list *l, struct err *err)
{
    struct buf sql = BUF_INIT(SQL_MAX_BYTES);
    sqlite3_stmt *st = NULL;
    (void)buf_addf(&sql, SQL_RAN_LOOK, PARAM_RAN_SINCE);
    int r = reader_statement(l->reader, buf_str(&sql), &st, err);
    buf_release(&sql);
    if (r < 0)
        return r;
    bind_all(l, st, RAN_SET_MAX);
    r = reader_step(l->reader, st, err);
    if (r == 1) {
        int64_t first = sqlite3_column_int64(st, 1); /* 0: there is none */
        l->n_ran = sqlite3_column_int64(st, 0);
        if (l->n_ran < RAN_SET_MAX && first - 1 > l->above)
            l->above = first - 1;
    }
    reader_reset(st);
    return r < 0 ? r : 0;
}

/* ---- which filter drives ---- */

static void add_states(const struct list *l, struct buf *sql)
{
    for (size_t i = 0; i < l->q->nstates; i++)
        (void)buf_addf(sql, "%s?%d", i ? "," : " AND j.state IN (", PARAM_STATE + (int)i);
    (void)buf_adds(sql, ")");
}

static void add_flags(const struct list *l, struct buf *sql)
{
    for (size_t i = 0; i < l->q->nflags; i++)
        (void)buf_addf(sql, "%sinstr(','||coalesce(j.flags, '')||',', ','||?%d||',')",
                       i ? "+" : " AND (", PARAM_FLAG + (int)i);
    (void)buf_adds(sql, ")>0");
}

/* " AND <before> j.project IN (…)<after>" */
static void store_list_add_projects(const struct list *l,
                                    const char *before,
                                    const char *after,
                                    struct buf *sql)
{
    (void)buf_addf(sql, " AND %sj.project IN (", before);
    for (size_t i = 0; i < l->q->scope->nprojects; i++)
        (void)buf_addf(sql, "%s?%d", i ? "," : "", PARAM_PROJECT + (int)i);
    (void)buf_addf(sql, ")%s", after);
}

/* The rows of the user, and those of the projects; some are both. */
static int probe_scope(const struct list *l, int64_t *ret, struct err *err)
{
    struct buf sql = BUF_INIT(SQL_MAX_BYTES), test = BUF_INIT(SQL_MAX_BYTES);
    int64_t own = 0, shared = 0;
    (void)buf_addf(&sql, SQL_PROBE, filters[BY_SCOPE].index, SQL_OF_USER);
    int r = store_list_ask(l, buf_str(&sql), PROBE_ROWS, &own, err);
    buf_reset(&sql);
    store_list_add_projects(l, "", "", &test);
    (void)buf_addf(&sql, SQL_PROBE, filters[BY_PROJECT].index, buf_str(&test));
    if (r == 0)
        r = store_list_ask(l, buf_str(&sql), PROBE_ROWS, &shared, err);
    *ret = own + shared;
    buf_release(&sql);
    buf_release(&test);
    return r;
}

/* How many rows this filter's index has to give, and all live ones beside it where that holds
 * only those that ended. */
static int probe(const struct list *l, enum filter f, int64_t *ret, struct err *err)
{
    struct buf sql = BUF_INIT(SQL_MAX_BYTES), test = BUF_INIT(SQL_MAX_BYTES);
    int64_t n = 0, live = 0;
    if (f == BY_SCOPE)
        return probe_scope(l, ret, err);
    if (f == BY_STATE)
        add_states(l, &test);
    else
        (void)buf_addf(&test, "%s%s", filters[f].test, filters[f].is_of_ended ? SQL_ENDED : "");
    (void)buf_addf(&sql, SQL_PROBE, filters[f].index, buf_str(&test));
    int r = store_list_ask(l, buf_str(&sql), PROBE_ROWS, &n, err);
    if (r == 0 && filters[f].is_of_ended && !l->q->no_live)
        r = probe(l, BY_LIVE, &live, err);
    *ret = n + live;
    buf_release(&sql);
    buf_release(&test);
    return r;
}

static bool may_drive(const struct list *l, enum filter f)
{
    return store_list_has(l, f) && filters[f].index && !store_list_is_many(l, f) &&
           (f != BY_SCOPE || l->q->scope->nprojects <= SCOPE_DRIVES_MAX) &&
           !(filters[f].is_of_ended && l->q->live);
}

/* Whether a page, newest first, is read from the set of those that may have held slots. Each SELECT
 * of it makes the set anew. */
static bool store_list_is_of_ran_set(const struct list *l, enum filter driver)
{
    const unsigned times = 1u << BY_SINCE | 1u << BY_UNTIL;
    int64_t selects = 1;
    if (!(l->mask & ~times))
        return l->n_ran <= l->q->limit;
    if (driver == BY_SCOPE)
        selects += (int64_t)l->q->scope->nprojects;
    else if (driver == BY_STATE)
        selects = (int64_t)l->q->nstates;
    return l->n_ran * selects < RAN_SET_MAX;
}

/* The filter whose index gives the fewest rows; FILTERS if none has an index. */
static int store_list_choose(const struct list *l, enum filter *ret, struct err *err)
{
    int64_t best = INT64_MAX, n = 0;
    enum filter found = FILTERS;
    unsigned candidates = 0;
    for (enum filter f = 0; f < FILTERS; f++)
        if (may_drive(l, f)) {
            candidates++;
            found = f;
        }
    for (enum filter f = 0; candidates > 1 && f < FILTERS; f++) {
        int r = may_drive(l, f) ? probe(l, f, &n, err) : 1;
        if (r < 0)
            return r;
        if (r == 0 && n < best) {
            best = n;
            found = f;
        }
    }
    *ret = found;
    return 0;
}

/* ---- the page ---- */

static void add_failure(const struct list *l, struct buf *sql)
{
    (void)buf_adds(sql, SQL_FAILED);
    if (l->q->failure)
        (void)buf_addf(sql, SQL_BY_CLASS, PARAM_FAILURE);
    if (l->q->failure_node)
        (void)buf_addf(sql, SQL_BY_NODE, PARAM_FAILURE_NODE);
    (void)buf_adds(sql, SQL_FAILED_END);
}

static void add_tests(const struct list *l, enum filter driver, struct buf *sql)
{
    bool all_live = driver == BY_LIVE || store_list_has(l, BY_LIVE);
    for (enum filter f = 0; f < FILTERS; f++)
        if (store_list_has(l, f) && filters[f].test)
            (void)buf_adds(sql, store_list_is_many(l, f) ? filters[f].any : filters[f].test);
    if (store_list_has(l, BY_FLAG))
        add_flags(l, sql);
    if (store_list_has(l, BY_GPUS))
        (void)buf_addf(sql, SQL_GPUS, PARAM_GPUS_LEAST, PARAM_GPUS_MOST);
    if (store_list_has(l, BY_FAILURE))
        add_failure(l, sql);
    if (l->q->ran_since && !all_live) /* what lives may always have */
        (void)buf_addf(sql, l->ran_among ? SQL_RAN_AMONG : SQL_RAN_LATE, PARAM_RAN_SINCE);
    if (l->q->ran_since || l->q->ran_until)
        (void)buf_addf(sql, SQL_RAN, PARAM_RAN_UNTIL, PARAM_RAN_UNTIL, PARAM_RAN_UNTIL,
                       PARAM_RAN_UNTIL, PARAM_RAN_SINCE);
}

/* Who may see it, where no index of theirs drives. */
static void add_scope(const struct list *l, struct buf *sql)
{
    if (store_list_has(l, BY_SCOPE))
        store_list_add_projects(l, "(j.user=?13 OR ", ")", sql);
}

static const char *more_columns(const struct list *l)
{
    return l->q->want_detail ? SQL_DETAIL : "";
}

/* Appends one SELECT with all tests; state >= 0 reads the index of states for that state alone. */
static void add_select(const struct list *l, enum filter driver, int state, struct buf *sql)
{
    (void)buf_addf(sql, SQL_SELECT, more_columns(l),
                   driver == FILTERS ? NO_INDEX : filters[driver].index);
    add_tests(l, driver, sql);
    if (driver != BY_SCOPE)
        add_scope(l, sql);
    if (state >= 0)
        (void)buf_addf(sql, " AND j.state=?%d", PARAM_STATE + state);
    else if (store_list_has(l, BY_STATE))
        add_states(l, sql);
}

/* True if state i was given before: read twice it would give its jobs twice. */
static bool is_repeated(const struct list *l, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (str_eq(l->q->states[k], l->q->states[i]))
            return true;
    return false;
}

/* The user's own by one index, those of each project that are not by another. */
static void add_scope_selects(const struct list *l, struct buf *sql)
{
    add_select(l, BY_SCOPE, -1, sql);
    (void)buf_adds(sql, SQL_OF_USER);
    for (size_t i = 0; i < l->q->scope->nprojects; i++) {
        (void)buf_adds(sql, SQL_UNION);
        (void)buf_addf(sql, SQL_SELECT, more_columns(l), filters[BY_PROJECT].index);
        add_tests(l, BY_PROJECT, sql);
        if (store_list_has(l, BY_STATE))
            add_states(l, sql);
        (void)buf_addf(sql, " AND j.project=?%d" SQL_NOT_OF_USER, PARAM_PROJECT + (int)i);
    }
}

static void add_state_selects(const struct list *l, struct buf *sql)
{
    for (size_t i = 0; i < l->q->nstates; i++) {
        if (is_repeated(l, i))
            continue;
        if (i)
            (void)buf_adds(sql, SQL_UNION);
        add_select(l, BY_STATE, (int)i, sql);
    }
}

/* Those that ended by the filter's index, the live ones by theirs if there are any. */
static void add_ended_and_live(const struct list *l, enum filter driver, struct buf *sql)
{
    add_select(l, driver, -1, sql);
    (void)buf_adds(sql, SQL_ENDED);
    if (l->q->no_live)
        return;
    (void)buf_adds(sql, SQL_UNION);
    add_select(l, BY_LIVE, -1, sql);
    (void)buf_adds(sql, SQL_LIVE);
}

/* Every job that fits is looked at: only an index that holds all of them is worth its use. */
static enum filter store_list_walks_by(const struct list *l)
{
    for (enum filter f = BY_USER; f <= BY_PROJECT; f++)
        if (may_drive(l, f))
            return f;
    return store_list_has(l, BY_LIVE) ? BY_LIVE : FILTERS;
}

static void store_list_make_sorted(const struct list *l, struct buf *sql)
{
    add_select(l, store_list_walks_by(l), -1, sql);
    if (l->cursor)
        listsort_add_after(l->q, ORDER_PARAMS, sql);
    listsort_add_order(l->q, ORDER_PARAMS, sql);
    (void)buf_adds(sql, " LIMIT ?3");
}

static void store_list_make_sql(const struct list *l, enum filter driver, struct buf *sql)
{
    if (driver == BY_SCOPE)
        add_scope_selects(l, sql);
    else if (driver == BY_STATE)
        add_state_selects(l, sql);
    else if (driver != FILTERS && filters[driver].is_of_ended)
        add_ended_and_live(l, driver, sql);
    else
        add_select(l, driver, -1, sql);
    (void)buf_adds(sql, SQL_ORDER);
}

static int store_list_fetch(const struct list *l,
                            const char *sql,
                            struct answer *a,
                            struct err *err)
{
    struct store_job job;
    sqlite3_stmt *st = NULL;
    int r = reader_statement(l->reader, sql, &st, err);
    if (r < 0)
        return r;
    /* One row more than asked tells whether there is a next page. */
    bind_all(l, st, (int64_t)l->q->limit + 1);
    while ((r = reader_step(l->reader, st, err)) == 1) {
        if (a->result.njobs == l->q->limit) {
            char mark[CURSOR_MARK_MAX];
            store_list_mark(l, mark);
            text_printf(a->cursor, CURSOR_FORM, mark, a->jobs[a->result.njobs - 1].seq);
            a->result.next = a->cursor;
            r = 0;
            break;
        }
        if (l->q->want_detail)
            rows_whole_job(st, &job);
        else
            rows_job(st, &job);
        answer_add_job(a, &job);
    }
    reader_reset(st);
    return r;
}

static bool store_list_wants_state(const struct list *l, const char *state, bool live)
{
    bool named = !l->q->nstates;
    for (size_t i = 0; i < l->q->nstates; i++)
        named |= str_eq(l->q->states[i], state);
    return named && (live || !l->q->live);
}

static void store_list_add_count(const struct list *l, sqlite3_stmt *st, struct store_result *ret)
{
    const char *state = (const char *)sqlite3_column_text(st, 0); /* not NULL in the table */
    bool live = sqlite3_column_int(st, 1) != 0;
    int64_t n = sqlite3_column_int64(st, 2);
    if (store_list_wants_state(l, state, live))
        ret->total += n;
    struct store_count *c = ret->ncounts ? &ret->counts[ret->ncounts - 1] : NULL;
    if (!c || strcmp(c->state, state) != 0) {
        if (ret->ncounts == STORE_COUNTS_MAX)
            return;
        c = &ret->counts[ret->ncounts++];
        text_copy(c->state, state);
    }
    c->n += n;
}

/* On all pages, in every state: the filters of state alone are left out. */
static int store_list_count(const struct list *l, struct answer *a, struct err *err)
{
    struct buf sql = BUF_INIT(SQL_MAX_BYTES);
    struct list stateless = *l;
    sqlite3_stmt *st = NULL;
    stateless.mask &= ~(1u << BY_STATE | 1u << BY_LIVE);
    stateless.ran_among = l->n_ran < RAN_SET_MAX;
    enum filter driver = store_list_walks_by(&stateless);
    (void)buf_addf(&sql, SQL_COUNT, driver == FILTERS ? NO_INDEX : filters[driver].index);
    add_tests(&stateless, driver, &sql);
    add_scope(&stateless, &sql);
    (void)buf_adds(&sql, SQL_COUNT_GROUP);
    int r = reader_statement(l->reader, buf_str(&sql), &st, err);
    buf_release(&sql);
    if (r < 0)
        return r;
    bind_all(l, st, 0);
    while ((r = reader_step(l->reader, st, err)) == 1)
        store_list_add_count(l, st, &a->result);
    reader_reset(st);
    return r;
}

static int store_list_page(struct list *l, struct answer *a, struct err *err)
{
    struct buf sql = BUF_INIT(SQL_MAX_BYTES);
    enum filter driver = FILTERS;
    int r = 0;
    if (store_list_is_newest(l)) {
        if (l->cursor && l->cursor < l->below)
            l->below = l->cursor;
        r = store_list_choose(l, &driver, err);
        l->ran_among = store_list_is_of_ran_set(l, driver);
        store_list_make_sql(l, driver, &sql);
    } else {
        l->ran_among = l->n_ran < RAN_SET_MAX;
        store_list_make_sorted(l, &sql);
    }
    if (r == 0)
        r = store_list_fetch(l, buf_str(&sql), a, err);
    buf_release(&sql);
    return r;
}

static int store_list_run(struct list *l, struct answer *a, struct err *err)
{
    int r = init(l, err);
    if (r == 0 && (l->q->since || l->q->until || l->q->ran_until || l->q->newest))
        r = narrow(l, err);
    if (r == 0 && l->q->ran_since)
        r = store_list_look_ran(l, err);
    if (r == 0 && l->q->want_count)
        r = store_list_count(l, a, err);
    if (r < 0 || (l->q->live && l->q->no_live))
        return r; /* 0: there is none */
    return store_list_page(l, a, err);
}

int query_jobs(struct reader *reader,
               const struct store_job_query *q,
               struct answer *a,
               struct err *err)
{
    struct list l = {.reader = reader, .q = q};
    int r = reader_begin(reader, err);
    if (r < 0)
        return r;
    r = store_list_run(&l, a, err);
    for (size_t i = 0; r == 0 && q->want_attempts && i < a->result.njobs; i++)
        r = query_attempts(reader, a->result.jobs[i].seq, STORE_ATTEMPTS_MAX, a, err);
    reader_end(reader);
    free(l.part);
    return r;
}

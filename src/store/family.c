/* SPDX-License-Identifier: Apache-2.0 */
/* family.c - the jobs that came of one another; see store_list_family() in store.h.
 *
 * A parent is always older than its child. Each step up or down keeps to that, so that no rows,
 * whatever they say, lead round in a circle. Who came of whom is found before any spec is read. */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/message.h"
#include "base/str.h"
#include "store/query.h"
#include "store/rows.h"

/* Before and behind the words of who sees what. */
struct family_sql {
    const char *before, *behind;
};
static const struct family_sql family_self = {"SELECT j.seq, j.id, 1 FROM job j WHERE j.id=?1", ""};
static const struct family_sql family_parent = {
    "SELECT j.seq, j.id, 1 FROM origin o JOIN job j ON j.id=o.parent WHERE o.seq=?2 AND j.seq<?2",
    ""};
/* The third column: in the scope. The others are counted, too. */
static const struct family_sql family_children = {
    "SELECT j.seq, j.id, (1",
    ") FROM origin o JOIN job j ON j.seq=o.seq WHERE o.parent=?1 AND o.seq>?2 ORDER BY o.seq"};
/* ?2: 0 where no more texts are read. */
#define SQL_FAMILY_JOB                                                                             \
    "SELECT " ROWS_JOB                                                                             \
    ", CASE WHEN ?2 THEN s.spec END, CASE WHEN ?2 THEN d.detail END, " ROWS_ORIGIN                 \
    " FROM job j LEFT JOIN job_spec s ON s.seq=j.seq LEFT JOIN job_detail d ON d.seq=j.seq"        \
    " LEFT JOIN origin o ON o.seq=j.seq WHERE j.seq=?1"

enum { FAMILY_SQL_MAX = 32768 };

struct family_one {
    int64_t seq;
    char *id;
};

struct family_walk {
    struct reader *reader;
    const struct store_family_query *q;
    const char *in_scope; /* SQL, "" = everything */
    struct family_one v[STORE_FAMILY_MAX];
    size_t n, looks;
    bool is_cut;
};

static void family_walk_free(struct family_walk *w)
{
    for (size_t i = 0; i < w->n; i++)
        free(w->v[i].id);
    free(w);
}

static void family_push(struct family_walk *w, sqlite3_stmt *st)
{
    w->v[w->n++] = (struct family_one){
        .seq = sqlite3_column_int64(st, 0),
        .id = xstrdup((const char *)sqlite3_column_text(st, 1)),
    };
}

/* What the statement finds of this one, but for the job `known`, behind those there are. */
static int family_find(struct family_walk *w,
                       const struct family_sql *form,
                       const struct family_one *of,
                       int64_t known,
                       struct err *err)
{
    struct buf sql = BUF_INIT(FAMILY_SQL_MAX);
    sqlite3_stmt *st = NULL;
    (void)buf_addf(&sql, "%s%s%s", form->before, w->in_scope, form->behind); /* it fits */
    int r = reader_statement(w->reader, buf_str(&sql), &st, err);
    buf_release(&sql);
    if (r < 0)
        return r;
    (void)sqlite3_bind_text(st, 1, of->id, -1, SQLITE_STATIC); /* a wrong k alone fails, */
    (void)sqlite3_bind_int64(st, 2, of->seq);                  /* and SELF has no second one */
    if (w->q->scope)
        query_bind_scope(st, w->q->scope);
    while (!w->is_cut && (r = reader_step(w->reader, st, err)) == 1) {
        if (sqlite3_column_int(st, 2) && sqlite3_column_int64(st, 0) != known) {
            w->is_cut = w->n == STORE_FAMILY_MAX;
            if (!w->is_cut)
                family_push(w, st);
        }
        w->is_cut |= ++w->looks == STORE_FAMILY_LOOKS_MAX;
    }
    reader_reset(st);
    return r < 0 ? r : 0;
}

/* From the job to its oldest ancestor, who then stands first. */
static int family_climb(struct family_walk *w, struct err *err)
{
    const struct family_one asked = {.id = (char *)(uintptr_t)w->q->id};
    size_t before = 0;
    int r = family_find(w, &family_self, &asked, 0, err);
    if (r == 0 && w->n == 0)
        return message_refuse(
            err, ERR_NOT_FOUND, "not_found",
            MESSAGE_ARGS(MESSAGE_STR("noun", "job"), MESSAGE_STR("name", w->q->id)));
    while (r == 0 && w->n > before && w->n <= STORE_FAMILY_UP_MAX) {
        const struct family_one last = w->v[w->n - 1];
        before = w->n;
        r = family_find(w, &family_parent, &last, 0, err);
    }
    if (w->n > STORE_FAMILY_UP_MAX) { /* that one is only known to be there */
        free(w->v[--w->n].id);
        w->is_cut = true;
    }
    for (size_t i = 0, k = w->n; i + 1 < k; i++) {
        struct family_one one = w->v[i];
        w->v[i] = w->v[--k];
        w->v[k] = one;
    }
    return r;
}

/* All that came of the first one, generation by generation. The first `line` are there already,
 * each of them the next one's parent. */
static int family_descend(struct family_walk *w, size_t line, struct err *err)
{
    bool had_more = w->is_cut;
    int r = 0;
    w->is_cut = false;
    for (size_t i = 0; r == 0 && i < w->n && !w->is_cut; i++) {
        const struct family_one of = w->v[i];
        r = family_find(w, &family_children, &of, i + 1 < line ? w->v[i + 1].seq : 0, err);
    }
    w->is_cut |= had_more;
    return r;
}

static int family_read(struct family_walk *w, struct answer *a, struct err *err)
{
    size_t bytes = 0;
    int r = 0;
    for (size_t i = 0; r == 0 && i < w->n; i++) {
        struct store_job job;
        sqlite3_stmt *st = NULL;
        r = reader_statement(w->reader, SQL_FAMILY_JOB, &st, err);
        if (r < 0)
            return r;
        (void)sqlite3_bind_int64(st, 1, w->v[i].seq); /* only a wrong k fails, here and below */
        (void)sqlite3_bind_int(st, 2, bytes <= STORE_FAMILY_BYTES_MAX);
        while ((r = reader_step(w->reader, st, err)) == 1) {
            rows_family_job(st, &job);
            bytes += strlen(str_or(job.spec, "")) + strlen(str_or(job.detail, ""));
            if (bytes > STORE_FAMILY_BYTES_MAX)
                job.spec = job.detail = NULL;
            if (i == 0)
                job.origin.parent = job.origin.how = NULL;
            answer_add_job(a, &job);
        }
        reader_reset(st);
    }
    a->result.is_cut = w->is_cut || bytes > STORE_FAMILY_BYTES_MAX;
    return r;
}

int query_family(struct reader *reader,
                 const struct store_family_query *q,
                 struct answer *a,
                 struct err *err)
{
    int r = query_check_scope(q->scope, err);
    if (r == 0)
        r = reader_begin(reader, err);
    if (r < 0)
        return r;
    _cleanup_(freep) char *in_scope = query_scope_sql(q->scope);
    struct family_walk *w = xcalloc(1, sizeof(*w));
    w->reader = reader;
    w->q = q;
    w->in_scope = in_scope;
    r = family_climb(w, err);
    if (r == 0)
        r = family_descend(w, w->n, err);
    if (r == 0)
        r = family_read(w, a, err);
    reader_end(reader);
    family_walk_free(w);
    return r;
}

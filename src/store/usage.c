/* SPDX-License-Identifier: Apache-2.0 */
/* usage.c - sums of usage by name and point of time; see store.h.
 *
 * First the keys that are meant, by number, each with the name that it counts for; then each span
 * is one walk over a stretch of the primary key (step, at, key), and rows are added up here: a
 * join, a group and a sort in SQLite took five times as long (bench/usage.c). Rows come by time, so
 * the newest sum of a name is the one of the point at hand. */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/message.h"
#include "base/sum.h"
#include "store/query.h"

#define SQL_KEYS "SELECT k.id, k.%s FROM usage_key k WHERE 1"
#define SQL_KEYS_OWNED " AND k.project<>''"
#define SQL_KEYS_OF_PROJECT " AND k.project=?1"
#define SQL_KEYS_OF_USER " AND k.user=?2"
#define SQL_KEYS_IN_SCOPE " AND (k.user=?3 OR k.project IN ("
#define SQL_KEYS_BY_NAME " ORDER BY 2, 1"
static const char SQL_ROWS[] = "SELECT at, key, s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10"
                               " FROM usage WHERE step=?1 AND at>=?2 AND at<?3";

enum { PARAM_OF_PROJECT = 1, PARAM_OF_USER, PARAM_SCOPE, PARAM_PROJECTS, SQL_KEYS_MAX = 16384 };

static const char *const by_columns[STORE_USAGE_BYS] = {"cluster", "labels", "project", "user",
                                                        "workload"};

struct usage_key {
    int64_t id;
    size_t name; /* index of a name */
};
struct usage_name {
    char *text;
    size_t last; /* index + 1 of its newest sum */
};
struct usage_place {
    size_t name;
    struct store_usage_sum sum;
};
struct usage_walk {
    struct usage_key *keys; /* by id */
    size_t n_keys, cap_keys;
    struct usage_name *names; /* by text */
    size_t n_names, cap_names;
    struct usage_place *sums;
    size_t n_sums, cap_sums;
};

static void usage_walk_release(struct usage_walk *w)
{
    for (size_t i = 0; i < w->n_names; i++)
        free(w->names[i].text);
    free(w->names);
    free(w->keys);
    free(w->sums);
}

static void *usage_grow(void *v, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return v;
    *cap = *cap ? 2 * *cap : 256;
    return xrealloc(v, *cap, size);
}

/* ---- the keys ---- */

static void usage_make_sql(const struct store_usage_query *q, struct buf *sql)
{
    (void)buf_addf(sql, SQL_KEYS, by_columns[q->by]);
    (void)buf_adds(sql, q->owned ? SQL_KEYS_OWNED : "");
    (void)buf_adds(sql, q->project ? SQL_KEYS_OF_PROJECT : "");
    (void)buf_adds(sql, q->user ? SQL_KEYS_OF_USER : "");
    if (q->scope) {
        (void)buf_adds(sql, SQL_KEYS_IN_SCOPE);
        for (size_t i = 0; i < q->scope->nprojects; i++)
            (void)buf_addf(sql, "%s?%d", i ? "," : "", PARAM_PROJECTS + (int)i);
        (void)buf_adds(sql, "))");
    }
    (void)buf_adds(sql, SQL_KEYS_BY_NAME);
}

/* As bind_text() of query.c: it fails only for a wrong k. */
static void usage_bind_text(sqlite3_stmt *st, int k, const char *s)
{
    if (s)
        (void)sqlite3_bind_text(st, k, s, -1, SQLITE_STATIC);
}

static void usage_bind(sqlite3_stmt *st, const struct store_usage_query *q)
{
    usage_bind_text(st, PARAM_OF_PROJECT, q->project);
    usage_bind_text(st, PARAM_OF_USER, q->user);
    if (!q->scope)
        return;
    usage_bind_text(st, PARAM_SCOPE, q->scope->user);
    for (size_t i = 0; i < q->scope->nprojects; i++)
        usage_bind_text(st, PARAM_PROJECTS + (int)i, q->scope->projects[i]);
}

/* Keys come by name. */
static void usage_add_key(struct usage_walk *w, int64_t id, const char *name)
{
    if (!w->n_names || strcmp(w->names[w->n_names - 1].text, name) != 0) {
        w->names = usage_grow(w->names, w->n_names, &w->cap_names, sizeof(*w->names));
        w->names[w->n_names++] = (struct usage_name){.text = xstrdup(name)};
    }
    w->keys = usage_grow(w->keys, w->n_keys, &w->cap_keys, sizeof(*w->keys));
    w->keys[w->n_keys++] = (struct usage_key){id, w->n_names - 1};
}

static int usage_by_id(const void *a, const void *b)
{
    int64_t x = ((const struct usage_key *)a)->id, y = ((const struct usage_key *)b)->id;
    return x < y ? -1 : x > y;
}

static int usage_read_keys(struct reader *reader,
                           const struct store_usage_query *q,
                           struct usage_walk *w,
                           struct err *err)
{
    struct buf sql = BUF_INIT(SQL_KEYS_MAX);
    sqlite3_stmt *st = NULL;
    usage_make_sql(q, &sql);
    int r = reader_statement(reader, buf_str(&sql), &st, err);
    if (r == 0) {
        usage_bind(st, q);
        while ((r = reader_step(reader, st, err)) == 1)
            usage_add_key(w, sqlite3_column_int64(st, 0), (const char *)sqlite3_column_text(st, 1));
        reader_reset(st);
    }
    buf_release(&sql);
    xsort(w->keys, w->n_keys, sizeof(*w->keys), usage_by_id);
    return r;
}

/* ---- the rows ---- */

static const struct usage_key *usage_key_of(const struct usage_walk *w, int64_t id)
{
    const struct usage_key wanted = {.id = id};
    return w->n_keys ? bsearch(&wanted, w->keys, w->n_keys, sizeof(*w->keys), usage_by_id) : NULL;
}

/* The name's sum of that point; NULL: there are too many. */
static struct store_usage_sum *usage_sum_of(struct usage_walk *w, size_t name, int64_t point)
{
    struct usage_name *n = &w->names[name];
    if (n->last && w->sums[n->last - 1].sum.point == point)
        return &w->sums[n->last - 1].sum;
    if (w->n_sums == STORE_USAGE_ROWS_MAX)
        return NULL;
    w->sums = usage_grow(w->sums, w->n_sums, &w->cap_sums, sizeof(*w->sums));
    w->sums[w->n_sums] = (struct usage_place){name, {.name = n->text, .point = point}};
    n->last = ++w->n_sums;
    return &w->sums[n->last - 1].sum;
}

static int usage_add_row(struct usage_walk *w,
                         const struct store_usage_query *q,
                         sqlite3_stmt *st,
                         struct err *err)
{
    const struct usage_key *key = usage_key_of(w, sqlite3_column_int64(st, 1));
    if (!key)
        return 0;
    struct store_usage_sum *to =
        usage_sum_of(w, key->name, (sqlite3_column_int64(st, 0) - q->origin) / q->point);
    if (!to)
        return message_refuse(err, ERR_TOO_LARGE, "usage_many_rows",
                              MESSAGE_ARGS(MESSAGE_NUM("most", STORE_USAGE_ROWS_MAX)));
    for (int i = 0; i < STORE_USAGE_SUMS; i++)
        sum_add(&to->sums[i], sqlite3_column_int64(st, i + 2));
    return 0;
}

static int usage_by_name_and_point(const void *a, const void *b)
{
    const struct usage_place *x = a, *y = b;
    if (x->name != y->name)
        return x->name < y->name ? -1 : 1;
    return x->sum.point < y->sum.point ? -1 : x->sum.point > y->sum.point;
}

/* Names are by text, so the answer comes by name and point. */
static void usage_hand_over(struct usage_walk *w, struct answer *a)
{
    xsort(w->sums, w->n_sums, sizeof(*w->sums), usage_by_name_and_point);
    for (size_t i = 0; i < w->n_sums; i++)
        answer_add_usage(a, &w->sums[i].sum);
    w->n_sums = 0;
    for (size_t i = 0; i < w->n_names; i++)
        w->names[i].last = 0;
}

static int usage_of_span(struct reader *reader,
                         const struct store_usage_query *q,
                         const struct store_usage_span *span,
                         struct usage_walk *w,
                         struct err *err)
{
    const int64_t numbers[] = {span->step, span->from, span->to};
    sqlite3_stmt *st = NULL;
    int r = reader_statement(reader, SQL_ROWS, &st, err);
    if (r < 0)
        return r;
    for (int i = 0; i < (int)array_len(numbers); i++)
        (void)sqlite3_bind_int64(st, i + 1, numbers[i]); /* fails only for a wrong number */
    while ((r = reader_step(reader, st, err)) == 1 && usage_add_row(w, q, st, err) == 0)
        ;
    reader_reset(st);
    return r == 1 ? ERR_TOO_LARGE : r;
}

int query_usage(struct reader *reader,
                const struct store_usage_query *q,
                struct answer *a,
                struct err *err)
{
    struct usage_walk w = {0};
    if (q->scope && q->scope->nprojects > STORE_SCOPE_MAX)
        return message_refuse(err, ERR_REFUSED, "many_projects",
                              MESSAGE_ARGS(MESSAGE_NUM("most", STORE_SCOPE_MAX)));
    int r = reader_begin(reader, err);
    if (r == 0)
        r = usage_read_keys(reader, q, &w, err);
    for (size_t i = 0; i < q->n_spans && r == 0; i++) {
        r = usage_of_span(reader, q, &q->spans[i], &w, err);
        if (r == 0)
            usage_hand_over(&w, a);
    }
    reader_end(reader);
    usage_walk_release(&w);
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - all tables in one read transaction, so that they belong together. */
#include "store/load.h"

#include <sqlite3.h>
#include <string.h>

#include "store/rows.h"

#define SQL_LIVE                                                                                   \
    "SELECT " ROWS_JOB ", s.spec, d.detail FROM job j INDEXED BY job_live"                         \
    " LEFT JOIN job_spec s ON s.seq=j.seq LEFT JOIN job_detail d ON d.seq=j.seq"                   \
    " WHERE j.live ORDER BY j.seq"
#define SQL_LIVE_ATTEMPTS                                                                          \
    "SELECT " ROWS_ATTEMPT " FROM job j INDEXED BY job_live"                                       \
    " JOIN attempt a ON a.job_seq=j.seq WHERE j.live ORDER BY j.seq, a.k"
/* The index alone holds all that is asked. */
#define SQL_IDS "SELECT id FROM job INDEXED BY job_id ORDER BY id"
#define SQL_TOKENS "SELECT " ROWS_TOKEN " FROM token"
#define SQL_USERS "SELECT " ROWS_USER " FROM user"
/* In the order of the key. */
#define SQL_ENTRIES "SELECT " ROWS_ENTRY " FROM entry ORDER BY kind, name"
#define SQL_IDEMPOTENCY "SELECT " ROWS_IDEMPOTENCY " FROM idempotency"
#define SQL_META "SELECT key, value FROM meta"
#define SQL_LAST                                                                                   \
    "SELECT (SELECT coalesce(max(seq), 0) FROM job), (SELECT coalesce(max(seq), 0) FROM event),"   \
    " (SELECT hash FROM event ORDER BY seq DESC LIMIT 1)"

struct load {
    const struct store_load_ops *ops;
    void *arg;
    struct store_last *last;
};

static int give_job(sqlite3_stmt *st, const struct load *l)
{
    struct store_job job;
    rows_whole_job(st, &job);
    l->ops->on_job(&job, l->arg);
    return 0;
}

static int give_attempt(sqlite3_stmt *st, const struct load *l)
{
    struct store_attempt attempt;
    rows_attempt(st, &attempt);
    l->ops->on_attempt(&attempt, l->arg);
    return 0;
}

static int give_id(sqlite3_stmt *st, const struct load *l)
{
    l->ops->on_id((const char *)sqlite3_column_text(st, 0), l->arg);
    return 0;
}

static int give_token(sqlite3_stmt *st, const struct load *l)
{
    struct store_token token;
    int r = rows_token(st, &token);
    if (r == 0)
        l->ops->on_token(&token, l->arg);
    return r;
}

static int give_user(sqlite3_stmt *st, const struct load *l)
{
    struct store_user user;
    rows_user(st, &user);
    l->ops->on_user(&user, l->arg);
    return 0;
}

static int give_entry(sqlite3_stmt *st, const struct load *l)
{
    struct store_entry entry;
    rows_entry(st, &entry);
    l->ops->on_entry(&entry, l->arg);
    return 0;
}

static int give_idempotency(sqlite3_stmt *st, const struct load *l)
{
    struct store_idempotency key;
    int r = rows_idempotency(st, &key);
    if (r == 0)
        l->ops->on_idempotency(&key, l->arg);
    return r;
}

static int give_meta(sqlite3_stmt *st, const struct load *l)
{
    l->ops->on_meta((const char *)sqlite3_column_text(st, 0),
                    (const char *)sqlite3_column_text(st, 1), l->arg);
    return 0;
}

static int give_last(sqlite3_stmt *st, const struct load *l)
{
    l->last->job_seq = sqlite3_column_int64(st, 0);
    l->last->event_seq = sqlite3_column_int64(st, 1);
    l->last->has_event_hash = sqlite3_column_bytes(st, 2) == STORE_HASH_BYTES;
    if (l->last->has_event_hash)
        memcpy(l->last->event_hash, sqlite3_column_blob(st, 2), STORE_HASH_BYTES);
    return 0;
}

/* Every row of one query to `give`. */
static int each(struct reader *reader,
                const char *sql,
                int (*give)(sqlite3_stmt *, const struct load *),
                const struct load *l,
                struct err *err)
{
    sqlite3_stmt *st = NULL;
    int r = reader_statement(reader, sql, &st, err);
    if (r < 0)
        return r;
    while ((r = reader_step(reader, st, err)) == 1) {
        r = give(st, l);
        if (r < 0) {
            r = err_set(err, ERR_STORE, "the store has a row with a hash of a wrong length");
            break;
        }
    }
    reader_reset(st);
    return r;
}

static int load_rows_all(struct reader *reader, const struct load *l, struct err *err)
{
    const struct store_load_ops *ops = l->ops;
    const struct {
        const char *sql;
        int (*give)(sqlite3_stmt *st, const struct load *l);
        bool wanted;
    } all[] = {
        {SQL_META, give_meta, ops->on_meta},
        {SQL_USERS, give_user, ops->on_user},
        {SQL_ENTRIES, give_entry, ops->on_entry},
        {SQL_TOKENS, give_token, ops->on_token},
        {SQL_IDEMPOTENCY, give_idempotency, ops->on_idempotency},
        {SQL_IDS, give_id, ops->on_id},
        {SQL_LIVE, give_job, ops->on_job},
        {SQL_LIVE_ATTEMPTS, give_attempt, ops->on_attempt},
        {SQL_LAST, give_last, true},
    };
    int r = 0;

    for (size_t i = 0; r == 0 && i < array_len(all); i++)
        if (all[i].wanted)
            r = each(reader, all[i].sql, all[i].give, l, err);
    return r;
}

int load_all(struct reader *reader,
             const struct store_load_ops *ops,
             void *arg,
             struct store_last *ret,
             struct err *err)
{
    struct store_last last = {0};
    struct load l = {.ops = ops, .arg = arg, .last = &last};
    int r = reader_begin(reader, err);
    if (r < 0)
        return r;
    r = load_rows_all(reader, &l, err);
    reader_end(reader);
    if (r == 0)
        *ret = last;
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* writer.c - take what is ready, commit it, say so; on failure wait and try again.
 *
 * A failed commit leaves nothing behind: the transaction is rolled back and replayed
 * whole from the batch, which is kept until it is on disk. That holds after a failed
 * fsync too: SQLite does not count those frames as written, and the next try writes
 * the same pages of the WAL again before it syncs. */
#include "store/writer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/log.h"
#include "base/text.h"
#include "store/conn.h"
#include "store/gather.h"

#define SQL_BEGIN "BEGIN IMMEDIATE"
#define SQL_COMMIT "COMMIT"
#define SQL_ROLLBACK "ROLLBACK"

static const char *const writer_sql[] = {
    [WRITE_JOB] =
        "INSERT INTO job(seq, id, name, user, project, workload, cluster, pool, queued_at,"
        " state, live, flags, reason_code, reason_text, nnodes, n_gpus_per_node, priority,"
        " started_at, ended_at, attempt, restarts, step, exit_code)"
        " VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [WRITE_JOB_SPEC] = "INSERT INTO job_spec(seq, spec) VALUES(?,?)",
    [WRITE_JOB_DETAIL_NEW] = "INSERT INTO job_detail(seq, detail) VALUES(?,?)",
    [WRITE_JOB_DETAIL] = "INSERT INTO job_detail(seq, detail) VALUES(?,?)"
                         " ON CONFLICT(seq) DO UPDATE SET detail=excluded.detail",
    [WRITE_JOB_STATE] =
        "UPDATE job SET state=?2, live=?3, flags=?4, reason_code=?5, reason_text=?6, nnodes=?7,"
        " n_gpus_per_node=?8, priority=?9, started_at=?10, ended_at=?11, attempt=?12,"
        " restarts=?13, step=?14, exit_code=?15, gpu_held=?16 WHERE seq=?1",
    [WRITE_JOB_POOL] = "UPDATE job SET pool=?2 WHERE seq=?1",
    [WRITE_JOB_RESPEC] = "UPDATE job_spec SET spec=?2 WHERE seq=?1",
    [WRITE_ORIGIN] = "INSERT INTO origin(seq, parent, how, step, note) VALUES(?,?,?,?,?)",
    [WRITE_NOTE] = "INSERT INTO origin(seq, step, note) VALUES(?1,0,?2)"
                   " ON CONFLICT(seq) DO UPDATE SET note=excluded.note",
    [WRITE_ATTEMPT] = "INSERT INTO attempt(job_seq, k, ray_id, state, started_at, ended_at, detail)"
                      " VALUES(?,?,?,?,?,?,?) ON CONFLICT(job_seq, k) DO UPDATE SET"
                      " ray_id=excluded.ray_id, state=excluded.state,"
                      " started_at=excluded.started_at, ended_at=excluded.ended_at,"
                      " detail=excluded.detail",
    [WRITE_FINDING] = "INSERT OR REPLACE INTO finding(job_seq, k, class, rule, node, rank, at,"
                      " confidence, body) VALUES(?,?,?,?,?,?,?,?,?)",
    [WRITE_EVENT] = "INSERT INTO event(seq, at, job_seq, kind, actor, from_state, to_state,"
                    " reason_code, text, data, object, hash, thing, owner, project)"
                    " VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [WRITE_TOKEN] = "INSERT OR REPLACE INTO token(hash, id, name, user, role, created_at,"
                    " expires_at, last_use_at, revoked_at) VALUES(?,?,?,?,?,?,?,?,?)",
    [WRITE_TOKEN_REMOVE] = "DELETE FROM token WHERE hash=?",
    [WRITE_USER] = "INSERT OR REPLACE INTO user(name, role, created_at, detail) VALUES(?,?,?,?)",
    [WRITE_USER_REMOVE] = "DELETE FROM user WHERE name=?",
    [WRITE_ENTRY] = "INSERT OR REPLACE INTO entry(kind, name, body, at) VALUES(?,?,?,?)",
    [WRITE_ENTRY_REMOVE] = "DELETE FROM entry WHERE kind=? AND name=?",
    [WRITE_IDEMPOTENCY] = "INSERT OR REPLACE INTO idempotency(user, key, body_hash, job_id, at)"
                          " VALUES(?,?,?,?,?)",
    [WRITE_META] = "INSERT OR REPLACE INTO meta(key, value) VALUES(?,?)",
    [WRITE_IDEMPOTENCY_PRUNE] = "DELETE FROM idempotency WHERE at < ?1"
                                " AND (?2 IS NULL OR user = ?2)",
    [WRITE_USAGE_KEY] = "INSERT OR IGNORE INTO usage_key(cluster, labels, project, user, workload)"
                        " VALUES(?,?,?,?,?)",
    [WRITE_USAGE] =
        "INSERT INTO usage(step, at, key, s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10)"
        " SELECT ?6, ?7, id, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18 FROM usage_key"
        " WHERE cluster=?1 AND labels=?2 AND project=?3 AND user=?4 AND workload=?5"
        " ON CONFLICT(step, at, key) DO UPDATE SET s0=s0+excluded.s0, s1=s1+excluded.s1,"
        " s2=s2+excluded.s2, s3=s3+excluded.s3, s4=s4+excluded.s4, s5=s5+excluded.s5,"
        " s6=s6+excluded.s6, s7=s7+excluded.s7, s8=s8+excluded.s8, s9=s9+excluded.s9,"
        " s10=s10+excluded.s10",
    [WRITE_USAGE_PRUNE] = "DELETE FROM usage WHERE step=? AND at < ?",
};
static_assert(array_len(writer_sql) == WRITE_COUNT, "each statement has its SQL");

/* Pages of WAL: folded back when the thread has nothing else to do, and in any case
 * when the file would grow past 16 MiB. */
enum { WAL_IDLE_PAGES = 1000, WAL_MUST_PAGES = 4000 };
/* Milliseconds between tries while commits fail. */
enum { RETRY_FIRST_MS = 5, RETRY_MAX_MS = 1000 };

struct writer {
    /* Used by the thread alone. */
    sqlite3 *db;
    struct gather *gather; /* NULL: none */
    sqlite3_stmt *begin, *commit, *rollback;
    sqlite3_stmt *st[WRITE_COUNT];
    struct batch now; /* being committed */
    int wal_pages;

    writer_wake_f wake;
    void *arg;
    uv_thread_t thread;

    uv_mutex_t lock; /* of what follows */
    uv_cond_t some;  /* ready is not empty, or stop */
    struct batch ready;
    bool waiting, stop;
    struct writer_look look;
};

static int bind_value(sqlite3_stmt *st, int k, const struct batch_item *it)
{
    switch (it->kind) {
    case BATCH_INT:
        return sqlite3_bind_int64(st, k, it->i);
    case BATCH_REAL:
        return sqlite3_bind_double(st, k, it->r);
    case BATCH_TEXT:
        return sqlite3_bind_text64(st, k, it->p, it->n, SQLITE_STATIC, SQLITE_UTF8);
    case BATCH_BLOB:
        return sqlite3_bind_blob64(st, k, it->p, it->n, SQLITE_STATIC);
    default:
        return sqlite3_bind_null(st, k);
    }
}

static int writer_step(sqlite3_stmt *st)
{
    int r = sqlite3_step(st);
    (void)sqlite3_reset(st); /* repeats the error of step */
    return r == SQLITE_DONE ? SQLITE_OK : r;
}

/* Replays one change, whose statement `it` names; on return `it` is the next begin or the end. */
static int replay_one(struct writer *w, size_t *pos, struct batch_item *it, int *more)
{
    int64_t which = it->i;
    sqlite3_stmt *st = w->st[which];
    int k = 1, r = SQLITE_OK;
    for (; (*more = batch_next(&w->now, pos, it)) != 0 && it->kind != BATCH_BEGIN; k++)
        if (r == SQLITE_OK)
            r = bind_value(st, k, it);
    if (r == SQLITE_OK)
        r = writer_step(st);
    if (r == SQLITE_OK && which == WRITE_JOB_STATE && sqlite3_changes(w->db) != 1)
        r = SQLITE_NOTFOUND;
    return r;
}

static int replay(struct writer *w)
{
    struct batch_item it;
    size_t pos = 0;
    int more = batch_next(&w->now, &pos, &it);
    int r = SQLITE_OK;
    while (more && r == SQLITE_OK)
        r = replay_one(w, &pos, &it, &more);
    return r;
}

/* The batch `now` as one transaction. On failure nothing of it is left, and why says
 * what SQLite said. */
static int commit(struct writer *w, char *why, size_t size)
{
    int r = writer_step(w->begin);
    if (r == SQLITE_OK)
        r = replay(w);
    if (r == SQLITE_OK)
        r = writer_step(w->commit);
    if (r == SQLITE_OK)
        return r;
    text_printf_to(why, size, "the store cannot write: %s",
                   r == SQLITE_NOTFOUND ? "no such job" : sqlite3_errmsg(w->db));
    if (!sqlite3_get_autocommit(w->db))
        (void)writer_step(w->rollback); /* a failure here shows in the next begin */
    return r;
}

static _Noreturn void die(const char *why)
{
    log_err("store",
            "%s: this cannot pass by itself, ending here; what was acknowledged is on disk", why);
    abort();
}

/* With the lock held: sleep for a while, or until told to stop. */
static void wait_retry(struct writer *w, unsigned ms)
{
    uint64_t left = (uint64_t)ms * 1000000;
    while (!w->stop && uv_cond_timedwait(&w->some, &w->lock, left) == 0)
        ;
}

/* What became of a try, for the loop. It is woken without the lock, which it takes at once. */
static void writer_tell(struct writer *w, int r, const char *why)
{
    uv_mutex_lock(&w->lock);
    if (r == SQLITE_OK)
        w->look.durable = w->now.number;
    else if (!w->look.failing) {
        text_copy(w->look.why, why);
        w->look.troubles++;
    }
    w->look.failing = r != SQLITE_OK;
    uv_mutex_unlock(&w->lock);
    w->wake(w->arg);
}

/* False: told to stop. */
static bool writer_may_retry(struct writer *w, unsigned ms)
{
    uv_mutex_lock(&w->lock);
    bool last = w->stop;
    if (!last)
        wait_retry(w, ms);
    uv_mutex_unlock(&w->lock);
    return !last;
}

/* Commit `now` however often it takes; false: told to stop while it fails. */
static bool commit_batch(struct writer *w)
{
    char why[sizeof(w->look.why)];
    for (unsigned ms = RETRY_FIRST_MS;; ms = ms * 2 < RETRY_MAX_MS ? ms * 2 : RETRY_MAX_MS) {
        int r = commit(w, why, sizeof(why));
        if (r != SQLITE_OK && !conn_is_passing(r))
            die(why);
        writer_tell(w, r, why);
        if (r == SQLITE_OK)
            return true;
        if (!writer_may_retry(w, ms))
            return false;
    }
}

/* Fold the WAL back into the database. A failure is harmless: the WAL keeps
 * everything, and a full disk shows in the next commit. */
static void checkpoint(struct writer *w)
{
    (void)sqlite3_wal_checkpoint_v2(w->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    w->wal_pages = 0;
}

/* Take what is ready into `now`; false: nothing is, and there will be nothing more. */
static bool writer_take(struct writer *w)
{
    batch_reset(&w->now);
    uv_mutex_lock(&w->lock);
    bool idle = !w->ready.len;
    if (w->wal_pages > (idle ? WAL_IDLE_PAGES : WAL_MUST_PAGES)) {
        uv_mutex_unlock(&w->lock);
        checkpoint(w);
        uv_mutex_lock(&w->lock);
    }
    w->waiting = true;
    while (!w->ready.len && !w->stop)
        uv_cond_wait(&w->some, &w->lock);
    w->waiting = false;
    batch_append(&w->now, &w->ready);
    uv_mutex_unlock(&w->lock);
    return w->now.len > 0;
}

static void writer_run(void *arg)
{
    struct writer *w = arg;
    while (writer_take(w) && commit_batch(w))
        ;
}

static int on_wal(void *arg, sqlite3 *db, const char *name, int pages)
{
    struct writer *w = arg;
    (void)db;
    (void)name;
    w->wal_pages = pages;
    return SQLITE_OK;
}

static void writer_release(struct writer *w)
{
    for (size_t i = 0; i < WRITE_COUNT; i++)
        (void)sqlite3_finalize(w->st[i]); /* repeats old errors */
    (void)sqlite3_finalize(w->begin);
    (void)sqlite3_finalize(w->commit);
    (void)sqlite3_finalize(w->rollback);
    conn_close(w->db);
    gather_free(w->gather);
    uv_cond_destroy(&w->some);
    uv_mutex_destroy(&w->lock);
    batch_release(&w->now);
    batch_release(&w->ready);
    free(w);
}

static int writer_prepare(struct writer *w, struct err *err)
{
    int r = conn_prepare(w->db, SQL_BEGIN, &w->begin, err);
    if (r == 0)
        r = conn_prepare(w->db, SQL_COMMIT, &w->commit, err);
    if (r == 0)
        r = conn_prepare(w->db, SQL_ROLLBACK, &w->rollback, err);
    for (size_t i = 0; r == 0 && i < WRITE_COUNT; i++)
        r = conn_prepare(w->db, writer_sql[i], &w->st[i], err);
    return r;
}

static void writer_init_lock(struct writer *w)
{
    if (uv_mutex_init(&w->lock) < 0 || uv_cond_init(&w->some) < 0)
        abort(); /* only without memory */
}

int writer_open(sqlite3 *db, writer_wake_f wake, void *arg, struct writer **ret, struct err *err)
{
    struct writer *w = xcalloc(1, sizeof(*w));
    w->db = db;
    w->wake = wake;
    w->arg = arg;
    writer_init_lock(w);
    (void)sqlite3_wal_hook(db, on_wal, w); /* returns the hook before; ends SQLite's own */
    int r = writer_prepare(w, err);
    w->gather = gather_new(db);
    if (r == 0 && uv_thread_create(&w->thread, writer_run, w) < 0)
        r = err_set(err, ERR_STORE, "cannot start the store's thread");
    if (r < 0) {
        writer_release(w);
        return r;
    }
    *ret = w;
    return 0;
}

int writer_close(struct writer *w, struct writer_look *last, struct err *err)
{
    int r = 0;
    uv_mutex_lock(&w->lock);
    w->stop = true;
    uv_cond_signal(&w->some);
    uv_mutex_unlock(&w->lock);
    (void)uv_thread_join(&w->thread); /* fails only for no thread */
    *last = w->look;
    if (w->look.failing)
        r = err_set(err, ERR_STORE, "the newest changes are lost: %s", w->look.why);
    writer_release(w);
    return r;
}

void writer_add(struct writer *w, struct batch *b)
{
    uv_mutex_lock(&w->lock);
    batch_append(&w->ready, b);
    bool waiting = w->waiting;
    uv_mutex_unlock(&w->lock);
    if (waiting)
        uv_cond_signal(&w->some);
}

bool writer_is_idle(struct writer *w)
{
    uv_mutex_lock(&w->lock);
    bool idle = w->waiting && !w->ready.len;
    uv_mutex_unlock(&w->lock);
    return idle;
}

void writer_look(struct writer *w, struct writer_look *ret)
{
    uv_mutex_lock(&w->lock);
    *ret = w->look;
    uv_mutex_unlock(&w->lock);
}

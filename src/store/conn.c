/* SPDX-License-Identifier: Apache-2.0 */
/* conn.c - connections are used by one thread at a time (SQLITE_OPEN_NOMUTEX) and
 * keep small page caches: the kernel's cache holds the file already. */
#include "store/conn.h"

#include <sqlite3.h>

#define SQL_WRITER                                                                                 \
    "PRAGMA synchronous=FULL; PRAGMA cache_size=-8192; PRAGMA journal_size_limit=67108864;"        \
    "PRAGMA temp_store=MEMORY"
#define SQL_READER                                                                                 \
    "PRAGMA query_only=1; PRAGMA cache_size=-1024; PRAGMA temp_store=MEMORY; PRAGMA mmap_size=0"

/* Another connection of ours recovering the WAL is the only thing to wait for. */
enum { CONN_BUSY_MS = 2000 };

int conn_err(sqlite3 *db, struct err *err)
{
    return err_set(err, ERR_STORE, "store failed: %s (%s)", sqlite3_errmsg(db),
                   sqlite3_errstr(sqlite3_extended_errcode(db)));
}

int conn_open(const char *path, const char *vfs, bool writes, sqlite3 **ret, struct err *err)
{
    int flags = SQLITE_OPEN_NOMUTEX |
                (writes ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY);
    sqlite3 *db = NULL;
    int r;
    /* Nobody asks how much memory SQLite has: counting takes a lock at each allocation. Refused
     * once SQLite runs, by a second store of tests. */
    if (writes)
        (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    if (sqlite3_open_v2(path, &db, flags, vfs) != SQLITE_OK) {
        r = err_set(err, ERR_STORE, "cannot open the store '%s': %s", path, sqlite3_errmsg(db));
        sqlite3_close(db);
        return r;
    }
    (void)sqlite3_extended_result_codes(db, 1); /* fails only for a NULL db */
    (void)sqlite3_busy_timeout(db, CONN_BUSY_MS);
    r = conn_exec(db, writes ? SQL_WRITER : SQL_READER, err);
    if (r < 0) {
        (void)err_prefix(err, "cannot open '%s'", path);
        sqlite3_close(db);
        return r;
    }
    *ret = db;
    return 0;
}

void conn_close(sqlite3 *db)
{
    (void)sqlite3_close_v2(db); /* v2 cannot fail for open statements; nothing else can */
}

int conn_exec(sqlite3 *db, const char *sql, struct err *err)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : conn_err(db, err);
}

int conn_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret, struct err *err)
{
    int r = sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL);
    return r == SQLITE_OK ? 0 : conn_err(db, err);
}

int conn_int(sqlite3 *db, const char *sql, int64_t *ret, struct err *err)
{
    sqlite3_stmt *st = NULL;
    int r = conn_prepare(db, sql, &st, err);
    if (r < 0)
        return r;
    if (sqlite3_step(st) == SQLITE_ROW)
        *ret = sqlite3_column_int64(st, 0);
    else
        r = conn_err(db, err);
    (void)sqlite3_finalize(st); /* repeats the error of step */
    return r;
}

bool conn_is_passing(int sqlite_rc)
{
    switch (sqlite_rc & 0xff) {
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_CANTOPEN:
    case SQLITE_NOMEM:
    case SQLITE_READONLY:
    case SQLITE_PROTOCOL:
        return true;
    default:
        return false;
    }
}

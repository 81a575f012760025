/* SPDX-License-Identifier: Apache-2.0 */
/* copy.c - see copy.h. VACUUM INTO reads within one transaction, so in WAL mode nobody waits for
 * it; the copy has no journal and no free pages. */
#include "store/copy.h"

#include "base/message.h"
#include "store/conn.h"
#include "store/schema.h"

static int copy_into(sqlite3 *db, const char *to, struct err *err)
{
    sqlite3_stmt *st = NULL;
    int r = conn_prepare(db, "VACUUM INTO ?1", &st, err);
    if (r < 0)
        return r;
    (void)sqlite3_bind_text(st, 1, to, -1, SQLITE_STATIC); /* there is such a parameter */
    if (sqlite3_step(st) != SQLITE_DONE)
        r = conn_err(db, err);
    (void)sqlite3_finalize(st); /* repeats the error of step */
    return r;
}

int store_copy(const char *path, const char *to, struct err *err)
{
    sqlite3 *db = NULL;
    int r = conn_open(path, NULL, false, &db, err);
    if (r < 0)
        return r;
    /* A reader may not VACUUM while it is told to change nothing; the store itself is opened for
     * reading all the same. */
    r = conn_exec(db, "PRAGMA query_only=0", err);
    if (r == 0)
        r = copy_into(db, to, err);
    conn_close(db);
    return r;
}

static int copy_is_sound(sqlite3 *db, const char *path, struct err *err)
{
    sqlite3_stmt *st = NULL;
    int r = conn_prepare(db, "PRAGMA integrity_check(1)", &st, err);
    if (r < 0)
        return r;
    bool sound = sqlite3_step(st) == SQLITE_ROW &&
                 sqlite3_stricmp((const char *)sqlite3_column_text(st, 0), "ok") == 0;
    (void)sqlite3_finalize(st); /* repeats the error of step */
    return sound ? 0
                 : message_refuse(err, ERR_REFUSED, "store_damaged",
                                  MESSAGE_ARGS(MESSAGE_STR("path", path)));
}

static int copy_count(sqlite3 *db, struct store_copied *ret, struct err *err)
{
    int64_t at = 0;
    int r = conn_int(db, "SELECT count(*) FROM job", &ret->jobs, err);
    if (r == 0)
        r = conn_int(db, "SELECT count(*) FROM event", &ret->events, err);
    if (r == 0)
        r = conn_int(db, "SELECT coalesce(max(seq), 0) FROM event", &ret->last_event, err);
    if (r == 0)
        r = conn_int(db, "SELECT coalesce(max(at), 0) FROM event", &at, err);
    ret->last_at = (usec_t)at;
    return r;
}

int store_copy_check(const char *path, struct store_copied *ret, struct err *err)
{
    sqlite3 *db = NULL;
    struct store_copied found = {0};
    int r = conn_open(path, NULL, false, &db, err);
    if (r < 0)
        return r;
    r = copy_is_sound(db, path, err);
    if (r == 0)
        r = conn_int(db, "PRAGMA user_version", &found.schema, err);
    if (r == 0 && (found.schema < 1 || found.schema > SCHEMA_VERSION))
        r = message_refuse(err, ERR_REFUSED, "store_newer",
                           MESSAGE_ARGS(MESSAGE_STR("path", path),
                                        MESSAGE_NUM("version", found.schema),
                                        MESSAGE_NUM("most", SCHEMA_VERSION)));
    if (r == 0)
        r = copy_count(db, &found, err);
    conn_close(db);
    if (r == 0)
        *ret = found;
    return r;
}

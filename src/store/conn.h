/* SPDX-License-Identifier: Apache-2.0 */
/* conn.h - opening SQLite connections the same way everywhere, and SQLite's errors
 * as ours. */
#pragma once
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Opens for writing (creates the file) or for reading only. ERR_STORE. */
must_check int conn_open(const char *path,
                         const char *vfs,
                         bool writes,
                         sqlite3 **ret,
                         struct err *err);
/* NULL is fine. Statements must be finalized before. */
void conn_close(sqlite3 *db);
/* Runs statements that return nothing of interest. ERR_STORE. */
must_check int conn_exec(sqlite3 *db, const char *sql, struct err *err);
must_check int conn_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret, struct err *err);
/* The first column of the first row of a query without parameters. ERR_STORE. */
must_check int conn_int(sqlite3 *db, const char *sql, int64_t *ret, struct err *err);
/* ERR_STORE with SQLite's own words for what just failed on db. */
int conn_err(sqlite3 *db, struct err *err);
/* The failure can pass by itself (full disk, I/O error, lock): trying again makes sense. */
bool conn_is_passing(int sqlite_rc);

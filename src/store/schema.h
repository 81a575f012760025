/* SPDX-License-Identifier: Apache-2.0 */
/* schema.h - the tables, and how an older store becomes a newer one. */
#pragma once
#include <sqlite3.h>

#include "base/err.h"

enum { SCHEMA_VERSION = 11 };

/* Brings an empty or older store to SCHEMA_VERSION in one transaction. ERR_REFUSED: it
 * is newer, or it is some other program's database; ERR_STORE. */
must_check int schema_migrate(sqlite3 *db, const char *path, struct err *err);

/* SPDX-License-Identifier: Apache-2.0 */
/* gather.h - gathers what a commit writes to the WAL into few calls.
 *
 * SQLite writes each page of a commit in two calls, one behind the other, and then syncs the file.
 * The bytes are kept here and written in one call before the sync, and before whatever else looks
 * at the file. A write that fails is told by the sync: nothing of that commit counts then, as when
 * the sync itself fails.
 *
 * For a connection with synchronous=FULL alone: where no sync follows, other connections would be
 * told of a commit whose pages are not in the file. */
#pragma once
#include <sqlite3.h>

struct gather;

/* Steps between SQLite and the WAL of the main database of db, which must have been read in WAL
 * mode. NULL: there is no such file, and writes go as they did. */
struct gather *gather_new(sqlite3 *db);
/* After db was closed; NULL is fine. */
void gather_free(struct gather *g);

/* SPDX-License-Identifier: Apache-2.0 */
/* gather.c - the methods of SQLite's open WAL file, with those that write and look replaced; see
 * gather.h.
 *
 * A file of SQLite finds its methods by a pointer, so the table that the pointer leads to can be
 * ours, and the file itself stays the file layer's. All calls come from the thread that uses the
 * connection. */
#include "store/gather.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* A commit of 30 pages; a larger one is written in several calls. SQLite's file layer takes less
 * than 128 KiB in one: of more it says that the disk is full. */
enum { GATHER_MAX = 124 << 10 };

struct gather {
    sqlite3_io_methods methods; /* the file's now; must stand first */
    const sqlite3_io_methods *below;
    char *bytes; /* n of them, not written yet, for the place `at` of the file */
    int n, cap;
    sqlite3_int64 at;
};

static struct gather *gather_of(const sqlite3_file *f)
{
    return (struct gather *)(uintptr_t)f->pMethods; /* the first member; const for SQLite alone */
}

/* The bytes are gone also on failure: SQLite then writes the commit again, or never. */
static int gather_flush(struct gather *g, sqlite3_file *f)
{
    int n = g->n;
    g->n = 0;
    return n ? g->below->xWrite(f, g->bytes, n, g->at) : SQLITE_OK;
}

static void gather_reserve(struct gather *g, int n)
{
    int cap = g->cap ? g->cap : GATHER_MAX / 4;
    if (n <= g->cap)
        return;
    while (cap < n)
        cap *= 2;
    g->bytes = xrealloc(g->bytes, (size_t)cap, 1);
    g->cap = cap;
}

static int gather_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
    struct gather *g = gather_of(f);
    int r = SQLITE_OK;
    if (g->n && (at != g->at + g->n || n > GATHER_MAX - g->n))
        r = gather_flush(g, f);
    if (r != SQLITE_OK)
        return r;
    if (n > GATHER_MAX)
        return g->below->xWrite(f, p, n, at);
    gather_reserve(g, g->n + n);
    if (!g->n)
        g->at = at;
    memcpy(g->bytes + g->n, p, (size_t)n);
    g->n += n;
    return SQLITE_OK;
}

static int gather_sync(sqlite3_file *f, int flags)
{
    struct gather *g = gather_of(f);
    int r = gather_flush(g, f);
    return r == SQLITE_OK ? g->below->xSync(f, flags) : r;
}

static int gather_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
    struct gather *g = gather_of(f);
    int r = gather_flush(g, f);
    return r == SQLITE_OK ? g->below->xRead(f, p, n, at) : r;
}

static int gather_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    struct gather *g = gather_of(f);
    int r = gather_flush(g, f);
    return r == SQLITE_OK ? g->below->xTruncate(f, size) : r;
}

static int gather_size(sqlite3_file *f, sqlite3_int64 *ret)
{
    struct gather *g = gather_of(f);
    int r = gather_flush(g, f);
    return r == SQLITE_OK ? g->below->xFileSize(f, ret) : r;
}

static int gather_close(sqlite3_file *f)
{
    struct gather *g = gather_of(f);
    (void)gather_flush(g, f); /* no commit that counts: each one was synced */
    f->pMethods = g->below;
    return f->pMethods->xClose(f);
}

struct gather *gather_new(sqlite3 *db)
{
    sqlite3_file *f = NULL;
    if (sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &f) != SQLITE_OK || !f ||
        !f->pMethods)
        return NULL;
    struct gather *g = xcalloc(1, sizeof(*g));
    g->below = f->pMethods;
    g->methods = *g->below;
    g->methods.xWrite = gather_write;
    g->methods.xSync = gather_sync;
    g->methods.xRead = gather_read;
    g->methods.xTruncate = gather_truncate;
    g->methods.xFileSize = gather_size;
    g->methods.xClose = gather_close;
    f->pMethods = &g->methods;
    return g;
}

void gather_free(struct gather *g)
{
    if (!g)
        return;
    free(g->bytes);
    free(g);
}

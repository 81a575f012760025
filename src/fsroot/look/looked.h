/* SPDX-License-Identifier: Apache-2.0 */
/* looked.h - what earlier looks have read of files, kept for later looks. Used by look.c and by
 * the owner of such a cache, which lends it to all its looks, on any thread.
 *
 * A file is recognized by its path, device, inode, size and times; a file that changed a moment
 * ago is not remembered, since a second change might go unseen. The oldest entries go when the
 * cache is full. No function here asks the file system. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/strv.h"
#include "core/check/preflight.h"

/* The kind of reading: a file may be read in more than one way. */
enum looked_kind {
    LOOKED_FILE = 'f',
    LOOKED_SHARD = 's',
    LOOKED_OBJECT = 'o',
    LOOKED_INDEX = 'i',
};

struct looked_facts {
    unsigned char head[PREFLIGHT_HEAD], tail[PREFLIGHT_TAIL];
    size_t n_head;
    uint64_t wants, elements; /* of a shard */
    char *broken;             /* NULL: nothing is wrong */
    struct strv names;        /* of an index: its shards, each once */
};
void looked_facts_release(struct looked_facts *f);

struct looked;
/* most: of files. fresh: what changed less long ago is not remembered. wall: the time, from any
 * thread. */
struct looked *looked_new(size_t most, usec_t fresh, usec_t (*wall)(void));
void looked_free(struct looked *lk); /* NULL is fine */

/* st: as the file is now. ret is to be released when it is true. lk NULL: nothing is known. */
bool looked_find(struct looked *lk,
                 enum looked_kind kind,
                 const char *path,
                 const struct stat *st,
                 struct looked_facts *ret);
/* st: as the file was before it was read. Copied. lk NULL: nothing is kept. */
void looked_add(struct looked *lk,
                enum looked_kind kind,
                const char *path,
                const struct stat *st,
                const struct looked_facts *f);

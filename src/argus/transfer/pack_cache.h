/* SPDX-License-Identifier: Apache-2.0 */
/* pack_cache.h - what files of one directory hashed to, while they look the same. For pack.c only.
 *
 * A file that changed within a moment of being hashed may look the same afterwards: such a hash
 * is not kept. */
#pragma once
#include <stdbool.h>
#include <sys/stat.h>

#include "base/digest/hash.h"

struct pack_cache;

/* Opens the cache of this directory; one that cannot be read is empty. */
struct pack_cache *pack_cache_open(const char *dir);
void pack_cache_free(struct pack_cache *c); /* NULL is fine */
bool pack_cache_find(const struct pack_cache *c,
                     const char *path,
                     const struct stat *st,
                     unsigned char ret[static HASH_BYTES]);
/* For the next time: every file of the tree. */
void pack_cache_put(struct pack_cache *c,
                    const char *path,
                    const struct stat *st,
                    const unsigned char hash[static HASH_BYTES]);
/* In place of what was read. A cache that cannot be written is no trouble. */
void pack_cache_save(struct pack_cache *c);

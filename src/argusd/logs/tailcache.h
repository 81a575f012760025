/* SPDX-License-Identifier: Apache-2.0 */
/* tailcache.h - the bytes of one followed log that its followers share: a few chunks, the newest
 * and those that somebody who catches up has read last.
 *
 * Pure. Bounded: the chunk that was used longest ago makes room. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TAILCACHE_CHUNK = 64 << 10, TAILCACHE_CHUNKS = 16 };

struct tailchunk {
    uint64_t asked, at; /* asked < at: a gap was skipped */
    size_t n;
    char *bytes;
    uint64_t used; /* a counter */
};

struct tailcache {
    struct tailchunk chunks[TAILCACHE_CHUNKS];
    size_t n, bytes;
    uint64_t uses;
};

void tailcache_release(struct tailcache *c);

/* What a read at `asked` found: n bytes at `at`, copied, at most TAILCACHE_CHUNK. What goes on
 * where a short chunk ends is put behind it. most: chunks to keep, at least 1. */
void tailcache_add(struct tailcache *c,
                   uint64_t asked,
                   uint64_t at,
                   const char *bytes,
                   size_t n,
                   size_t most);

/* The bytes from this offset on, or those behind the gap that it lies in. Borrowed until the next
 * add. False: they are not here. */
bool tailcache_find(struct tailcache *c, uint64_t offset, struct tailchunk *ret);

/* Nobody needs what lies before this offset any more. */
void tailcache_forget(struct tailcache *c, uint64_t before);

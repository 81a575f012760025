/* SPDX-License-Identifier: Apache-2.0 */
/* tailcache.c - see tailcache.h. So few chunks that they are searched one by one. */
#include "argusd/logs/tailcache.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static void tailcache_drop(struct tailcache *c, size_t i)
{
    c->bytes -= c->chunks[i].n;
    free(c->chunks[i].bytes);
    c->chunks[i] = c->chunks[--c->n];
}

void tailcache_release(struct tailcache *c)
{
    while (c->n)
        tailcache_drop(c, c->n - 1);
}

static void drop_oldest(struct tailcache *c)
{
    size_t oldest = 0;
    for (size_t i = 1; i < c->n; i++)
        if (c->chunks[i].used < c->chunks[oldest].used)
            oldest = i;
    tailcache_drop(c, oldest);
}

/* A log grows by lines, so its newest chunk grows with it. */
static bool tailcache_join(struct tailcache *c, uint64_t at, const char *bytes, size_t n)
{
    for (size_t i = 0; i < c->n; i++) {
        struct tailchunk *k = &c->chunks[i];
        if (k->at + k->n != at || k->n + n > TAILCACHE_CHUNK)
            continue;
        k->bytes = xrealloc(k->bytes, k->n + n, 1);
        memcpy(k->bytes + k->n, bytes, n);
        k->n += n;
        k->used = ++c->uses;
        c->bytes += n;
        return true;
    }
    return false;
}

void tailcache_add(struct tailcache *c,
                   uint64_t asked,
                   uint64_t at,
                   const char *bytes,
                   size_t n,
                   size_t most)
{
    assert(most && n && n <= TAILCACHE_CHUNK && asked <= at);
    if (asked == at && tailcache_join(c, at, bytes, n))
        return;
    while (c->n && (c->n >= most || c->n == TAILCACHE_CHUNKS))
        drop_oldest(c);
    struct tailchunk *k = &c->chunks[c->n++];
    *k = (struct tailchunk){.asked = asked, .at = at, .n = n, .used = ++c->uses};
    k->bytes = xmalloc(n);
    memcpy(k->bytes, bytes, n);
    c->bytes += n;
}

bool tailcache_find(struct tailcache *c, uint64_t offset, struct tailchunk *ret)
{
    for (size_t i = 0; i < c->n; i++) {
        struct tailchunk *k = &c->chunks[i];
        if (offset < k->asked || offset >= k->at + k->n)
            continue;
        size_t skip = offset > k->at ? (size_t)(offset - k->at) : 0;
        k->used = ++c->uses;
        *ret = (struct tailchunk){.asked = offset,
                                  .at = k->at + skip,
                                  .n = k->n - skip,
                                  .bytes = k->bytes + skip,
                                  .used = k->used};
        return true;
    }
    return false;
}

void tailcache_forget(struct tailcache *c, uint64_t before)
{
    for (size_t i = c->n; i-- > 0;)
        if (c->chunks[i].at + c->chunks[i].n <= before)
            tailcache_drop(c, i);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* idset.c - open addressing over 64-bit hashes, at most 2/3 full; see idset.h. */
#include "argusd/ground/idset.h"

#include <sodium.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct idset {
    unsigned char seed[16];
    uint64_t *slots; /* 0 = empty */
    size_t cap, n;
};

struct idset *idset_new(const unsigned char seed[static 16])
{
    struct idset *s = xcalloc(1, sizeof(*s));
    memcpy(s->seed, seed, sizeof(s->seed));
    s->cap = 1024;
    s->slots = xcalloc(s->cap, sizeof(*s->slots));
    return s;
}

void idset_free(struct idset *s)
{
    if (s)
        free(s->slots);
    free(s);
}

static uint64_t idset_hash_of(const struct idset *s, const char *id)
{
    uint64_t h;
    (void)crypto_shorthash((unsigned char *)&h, (const unsigned char *)id, strlen(id),
                           s->seed); /* always 0 */
    return h ? h : 1;
}

static size_t idset_place_of(const struct idset *s, uint64_t h)
{
    size_t i = h & (s->cap - 1);
    while (s->slots[i] && s->slots[i] != h)
        i = (i + 1) & (s->cap - 1);
    return i;
}

static void grow(struct idset *s)
{
    uint64_t *old = s->slots;
    size_t cap = s->cap;
    s->cap *= 2;
    s->slots = xcalloc(s->cap, sizeof(*s->slots));
    for (size_t i = 0; i < cap; i++)
        if (old[i])
            s->slots[idset_place_of(s, old[i])] = old[i];
    free(old);
}

void idset_add(struct idset *s, const char *id)
{
    if ((s->n + 1) * 3 > s->cap * 2)
        grow(s);
    uint64_t h = idset_hash_of(s, id);
    size_t i = idset_place_of(s, h);
    s->n += !s->slots[i];
    s->slots[i] = h;
}

bool idset_has(const struct idset *s, const char *id)
{
    return s->slots[idset_place_of(s, idset_hash_of(s, id))] != 0;
}

size_t idset_count(const struct idset *s)
{
    return s->n;
}

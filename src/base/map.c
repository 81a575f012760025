/* SPDX-License-Identifier: Apache-2.0 */
/* map.c - open addressing with linear probing and backward-shift deletion.
 * Invariant: at most 3/4 full; a chain of probes has no hole. See map.h. */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest/hash.h"

struct slot {
    char *key; /* NULL: empty */
    void *value;
    uint64_t hash;
};

struct map {
    unsigned char seed[16];
    struct slot *slots;
    size_t cap; /* a power of two */
    size_t n;
};

struct map *map_new(const unsigned char seed[static 16])
{
    struct map *m = xcalloc(1, sizeof(*m));
    memcpy(m->seed, seed, sizeof(m->seed));
    m->cap = 16;
    m->slots = xcalloc(m->cap, sizeof(*m->slots));
    return m;
}

void map_free(struct map *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->cap; i++)
        free(m->slots[i].key);
    free(m->slots);
    free(m);
}

size_t map_count(const struct map *m)
{
    return m->n;
}

static uint64_t map_hash_of(const struct map *m, const char *key)
{
    return hash_keyed(m->seed, key, strlen(key));
}

/* The slot of key, or the empty one where it would go. */
static size_t map_place_of(const struct map *m, const char *key, uint64_t hash)
{
    size_t i = hash & (m->cap - 1);
    while (m->slots[i].key && (m->slots[i].hash != hash || strcmp(m->slots[i].key, key) != 0))
        i = (i + 1) & (m->cap - 1);
    return i;
}

static void map_grow(struct map *m)
{
    struct slot *old = m->slots;
    size_t cap = m->cap;
    m->cap *= 2;
    m->slots = xcalloc(m->cap, sizeof(*m->slots));
    for (size_t i = 0; i < cap; i++)
        if (old[i].key)
            m->slots[map_place_of(m, old[i].key, old[i].hash)] = old[i];
    free(old);
}

void *map_find(const struct map *m, const char *key)
{
    return m->n ? m->slots[map_place_of(m, key, map_hash_of(m, key))].value : NULL;
}

void *map_set(struct map *m, const char *key, void *value)
{
    uint64_t hash = map_hash_of(m, key);
    size_t i = map_place_of(m, key, hash);
    if (m->slots[i].key) {
        void *old = m->slots[i].value;
        m->slots[i].value = value;
        return old;
    }
    if ((m->n + 1) * 4 > m->cap * 3) {
        map_grow(m);
        i = map_place_of(m, key, hash);
    }
    m->slots[i] = (struct slot){.key = xstrdup(key), .value = value, .hash = hash};
    m->n++;
    return NULL;
}

void *map_remove(struct map *m, const char *key)
{
    size_t i = map_place_of(m, key, map_hash_of(m, key));
    if (!m->slots[i].key)
        return NULL;
    void *value = m->slots[i].value;
    free(m->slots[i].key);
    m->n--;
    /* Move back whatever would not be found across the hole any more. */
    for (size_t j = (i + 1) & (m->cap - 1); m->slots[j].key; j = (j + 1) & (m->cap - 1)) {
        size_t home = m->slots[j].hash & (m->cap - 1);
        if (((j - home) & (m->cap - 1)) >= ((j - i) & (m->cap - 1))) {
            m->slots[i] = m->slots[j];
            i = j;
        }
    }
    m->slots[i] = (struct slot){0};
    return value;
}

void *map_next(const struct map *m, size_t *pos, const char **ret_key)
{
    while (*pos < m->cap) {
        const struct slot *s = &m->slots[(*pos)++];
        if (s->key) {
            if (ret_key)
                *ret_key = s->key;
            return s->value;
        }
    }
    return NULL;
}

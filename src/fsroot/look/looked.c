/* SPDX-License-Identifier: Apache-2.0 */
/* looked.c - a cache of what looks have read of files; see looked.h. Two maps: when the young
 * one is full it becomes the old one, and entries of the former old one that were not used since
 * then are dropped. */
#include "fsroot/look/looked.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/map.h"
#include "base/str.h"

enum { TEXT_MAX = 1 << 20 }; /* of one file's facts; what has more is read again */

struct item {
    struct stat st;
    struct looked_facts facts;
};

struct looked {
    pthread_mutex_t lock;
    struct map *young, *old;
    size_t most;
    usec_t fresh;
    usec_t (*wall)(void);
    unsigned char seed[16];
};

void looked_facts_release(struct looked_facts *f)
{
    freep(&f->broken);
    strv_release(&f->names);
}

static void facts_copy(struct looked_facts *to, const struct looked_facts *from)
{
    *to = *from;
    to->broken = xstrdup(from->broken);
    to->names = (struct strv){0};
    strv_copy(&to->names, &from->names);
}

static void looked_item_free(struct item *it)
{
    if (!it)
        return;
    looked_facts_release(&it->facts);
    free(it);
}

static void looked_drop(struct map *m)
{
    struct item *it;
    for (size_t pos = 0; (it = map_next(m, &pos, NULL));)
        looked_item_free(it);
    map_free(m);
}

struct looked *looked_new(size_t most, usec_t fresh, usec_t (*wall)(void))
{
    struct looked *lk = xcalloc(1, sizeof(*lk));
    random_bytes(lk->seed, sizeof(lk->seed));
    (void)pthread_mutex_init(&lk->lock, NULL); /* never fails with the usual attributes */
    lk->young = map_new(lk->seed);
    lk->old = map_new(lk->seed);
    lk->most = most;
    lk->fresh = fresh;
    lk->wall = wall;
    return lk;
}

void looked_free(struct looked *lk)
{
    if (!lk)
        return;
    looked_drop(lk->young);
    looked_drop(lk->old);
    (void)pthread_mutex_destroy(&lk->lock); /* no thread holds it */
    free(lk);
}

static bool is_same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool looked_is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           is_same_time(a->st_mtim, b->st_mtim) && is_same_time(a->st_ctim, b->st_ctim);
}

/* Behind the lock: what there was by this name goes. */
static void looked_put(struct looked *lk, const char *key, struct item *it)
{
    if (map_count(lk->young) >= lk->most / 2) {
        looked_drop(lk->old);
        lk->old = lk->young;
        lk->young = map_new(lk->seed);
    }
    looked_item_free(map_set(lk->young, key, it));
}

bool looked_find(struct looked *lk,
                 enum looked_kind kind,
                 const char *path,
                 const struct stat *st,
                 struct looked_facts *ret)
{
    if (!lk)
        return false;
    _cleanup_(freep) char *key = xasprintf("%c%s", (char)kind, path);
    (void)pthread_mutex_lock(&lk->lock); /* ours never fails */
    struct item *it = map_find(lk->young, key);
    if (!it) {
        it = map_remove(lk->old, key);
        if (it)
            looked_put(lk, key, it);
    }
    bool found = it && looked_is_same(&it->st, st);
    if (found)
        facts_copy(ret, &it->facts);
    (void)pthread_mutex_unlock(&lk->lock);
    return found;
}

static size_t text_bytes(const struct looked_facts *f)
{
    size_t n = f->broken ? strlen(f->broken) : 0;
    for (size_t i = 0; i < f->names.n; i++)
        n += strlen(f->names.v[i]) + sizeof(char *);
    return n;
}

static bool is_fresh(const struct looked *lk, const struct stat *st)
{
    usec_t changed = (usec_t)st->st_ctim.tv_sec * USEC_SEC + (usec_t)st->st_ctim.tv_nsec / 1000;
    return changed + lk->fresh >= lk->wall();
}

void looked_add(struct looked *lk,
                enum looked_kind kind,
                const char *path,
                const struct stat *st,
                const struct looked_facts *f)
{
    if (!lk || is_fresh(lk, st) || text_bytes(f) > TEXT_MAX)
        return;
    struct item *it = xcalloc(1, sizeof(*it));
    _cleanup_(freep) char *key = xasprintf("%c%s", (char)kind, path);
    it->st = *st;
    facts_copy(&it->facts, f);
    (void)pthread_mutex_lock(&lk->lock);
    looked_put(lk, key, it);
    (void)pthread_mutex_unlock(&lk->lock);
}

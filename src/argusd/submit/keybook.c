/* SPDX-License-Identifier: Apache-2.0 */
/* keybook.c - see keybook.h. A map of users, for each of them a map of keys: so a share is counted
 * by one look. A user who has a key once keeps his empty map. */
#include "argusd/submit/keybook.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"

static const usec_t KEYBOOK_AGES[] = {USEC_DAY, 60 * USEC_MIN, 10 * USEC_MIN, USEC_MIN};

struct keybook {
    struct map *by_user; /* of maps: struct keybook_key */
    size_t count;        /* keys of all users */
};

static struct map *keybook_map(void)
{
    unsigned char seed[16];
    random_bytes(seed, sizeof(seed));
    return map_new(seed);
}

struct keybook *keybook_new(void)
{
    struct keybook *kb = xcalloc(1, sizeof(*kb));
    kb->by_user = keybook_map();
    return kb;
}

static void keybook_key_free(struct keybook_key *k)
{
    if (k)
        free(k->job_id);
    free(k);
}

static void keybook_share_free(struct map *share)
{
    struct keybook_key *k;
    for (size_t pos = 0; (k = map_next(share, &pos, NULL));)
        keybook_key_free(k);
    map_free(share);
}

void keybook_free(struct keybook *kb)
{
    struct map *share;
    if (!kb)
        return;
    for (size_t pos = 0; (share = map_next(kb->by_user, &pos, NULL));)
        keybook_share_free(share);
    map_free(kb->by_user);
    free(kb);
}

const struct keybook_key *keybook_find(const struct keybook *kb, const char *user, const char *key)
{
    const struct map *share = map_find(kb->by_user, user);
    return share ? map_find(share, key) : NULL;
}

void keybook_add(struct keybook *kb,
                 const char *user,
                 const char *key,
                 const unsigned char body[static HASH_BYTES],
                 const char *job_id,
                 usec_t at)
{
    struct map *share = map_find(kb->by_user, user);
    struct keybook_key *k = xcalloc(1, sizeof(*k));
    if (!share) {
        share = keybook_map();
        (void)map_set(kb->by_user, user, share); /* there was none */
    }
    memcpy(k->body, body, HASH_BYTES);
    k->job_id = xstrdup(job_id);
    k->at = at;
    struct keybook_key *old = map_set(share, key, k);
    kb->count += !old;
    keybook_key_free(old);
}

size_t keybook_count(const struct keybook *kb, const char *user)
{
    const struct map *share = user ? map_find(kb->by_user, user) : NULL;
    return !user ? kb->count : share ? map_count(share) : 0;
}

/* The user who has most; NULL: nobody has any. Borrowed until the book changes. */
static const char *keybook_greatest(const struct keybook *kb)
{
    const struct map *share;
    const char *user, *best = NULL;
    size_t most = 0;
    for (size_t pos = 0; (share = map_next(kb->by_user, &pos, &user));)
        if (map_count(share) > most) {
            most = map_count(share);
            best = user;
        }
    return best;
}

/* He has keys: it is called where there are too many. */
static void keybook_forget(struct keybook *kb, const char *user, usec_t before)
{
    struct map *share = map_find(kb->by_user, user), *kept = keybook_map();
    struct keybook_key *k;
    const char *key;
    for (size_t pos = 0; (k = map_next(share, &pos, &key));)
        if (k->at >= before) {
            (void)map_set(kept, key, k); /* each is there once */
        } else {
            keybook_key_free(k);
            kb->count--;
        }
    map_free(map_set(kb->by_user, user, kept));
}

int keybook_make_room(struct keybook *kb, const char *user, usec_t now, keybook_f forgot, void *arg)
{
    for (size_t i = 0;; i++) {
        bool is_his = keybook_count(kb, user) >= KEYBOOK_OF_USER_MAX;
        const char *whose = is_his ? user : keybook_greatest(kb);
        if (!is_his && kb->count < KEYBOOK_MAX)
            return 0;
        if (i == array_len(KEYBOOK_AGES))
            return is_his ? KEYBOOK_OF_USER_MAX : KEYBOOK_MAX;
        usec_t before = now > KEYBOOK_AGES[i] ? now - KEYBOOK_AGES[i] : 0;
        keybook_forget(kb, whose, before);
        forgot(whose, before, arg);
    }
}

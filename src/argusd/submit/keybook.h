/* SPDX-License-Identifier: Apache-2.0 */
/* keybook.h - the Idempotency-Keys of each user, and which of them go where there are too many.
 *
 * A key is for a retry, so the younger ones stay. Who has his share forgets his own, and only where
 * all together are too many does who has most: nobody's keys push out those of others. Pure: the
 * rows of the store are the caller's. */
#pragma once
#include "base/clock.h"
#include "base/digest/hash.h"
#include "base/err.h"

enum { KEYBOOK_MAX = 100000, KEYBOOK_OF_USER_MAX = 10000 };

struct keybook;

/* What a request with this key asked for and made. */
struct keybook_key {
    unsigned char body[HASH_BYTES];
    char *job_id;
    usec_t at; /* wall */
};

struct keybook *keybook_new(void);
void keybook_free(struct keybook *kb); /* NULL is fine */
/* NULL: there is none. Borrowed until the book changes. */
const struct keybook_key *keybook_find(const struct keybook *kb, const char *user, const char *key);
/* Adds or replaces; all copied. */
void keybook_add(struct keybook *kb,
                 const char *user,
                 const char *key,
                 const unsigned char body[static HASH_BYTES],
                 const char *job_id,
                 usec_t at);
size_t keybook_count(const struct keybook *kb, const char *user); /* NULL: of all users */

/* This user's keys that are older than `before` are forgotten. */
typedef void (*keybook_f)(const char *user, usec_t before, void *arg);
/* Forgets until the user may have one more key, and tells of each forgetting. 0: he may; else the
 * ceiling that is met by keys of the last minute alone. */
must_check int keybook_make_room(struct keybook *kb,
                                 const char *user,
                                 usec_t now,
                                 keybook_f forgot,
                                 void *arg);

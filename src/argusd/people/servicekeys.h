/* SPDX-License-Identifier: Apache-2.0 */
/* servicekeys.h - keys of services: what opens requests to one service, and nothing else.
 *
 * A key is "arguskey_" and 43 characters. It is shown once, when it is made; the store keeps its
 * SHA-256. It asks its service in the name of whoever made it, as far as he may by then, with
 * limits of its own. One that is removed opens nothing from then on, and goes with its service. */
#pragma once
#include "argusd/people/tokens.h"

#define SERVICE_KEYS_ENTRY "service_key" /* kind of its rows in the store */

enum { SERVICE_KEYS_OF_SERVICE_MAX = 50 };

struct service_keys;

/* What may be told of one. Read-only to everybody but servicekeys.c. */
struct service_key {
    char *id, *service, *name, *user; /* user: who made it */
    char *hash;                       /* SHA-256 of its text, hex; the key of its row */
    int64_t requests_per_minute, tokens_per_minute; /* of the key; 0: as the service has them */
    usec_t created_at, expires_at, last_use_at;     /* 0 = never */
};
extern const struct field_table service_key_table;

struct service_keys *service_keys_new(struct store *store);
void service_keys_free(struct service_keys *ks); /* NULL is fine */
void service_keys_restore(struct service_keys *ks, const struct store_entry *row);

/* A new one with service, name, user, limits and expires_at of `form`, which are copied; its text
 * is written to ret, the only time that it is seen. Borrowed. */
const struct service_key *service_keys_add(struct service_keys *ks,
                                           const struct service_key *form,
                                           usec_t now,
                                           char ret[static TOKEN_TEXT_MAX]);
/* It opens nothing any more; k is gone after it. */
void service_keys_remove(struct service_keys *ks, const struct service_key *k);
/* The service is no more: nobody's key opens one that gets its name later. */
void service_keys_remove_all(struct service_keys *ks, const char *service);
/* The same of all that this user made, who is no more. */
void service_keys_remove_user(struct service_keys *ks, const char *user);

/* NULL: there is none. */
const struct service_key *service_keys_find(const struct service_keys *ks, const char *id);
/* In no order; NULL at the end. None may be added or removed on the way. */
const struct service_key *service_keys_next(const struct service_keys *ks, size_t *pos);
size_t service_keys_count(const struct service_keys *ks, const char *service);
bool service_key_works(const struct service_key *k, usec_t now); /* it has not expired */

/* Is it written as a key? Says nothing of whether there is one. */
bool service_keys_is_text(const char *bearer);
/* 0, and *ret is its maker with role none, and `only` its service; or ERR_UNAUTHORISED: it is not
 * known or has expired, why_not says which; the same work in each case. */
must_check int service_keys_check(struct service_keys *ks,
                                  const char *bearer,
                                  usec_t now,
                                  struct http_principal *ret);

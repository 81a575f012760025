/* SPDX-License-Identifier: Apache-2.0 */
/* servicekeys.c - the table of keys of services, by hash; see servicekeys.h. Its rows are entries
 * of the store. The last use is stored now and then, not with each request. */
#include "argusd/people/servicekeys.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/map.h"
#include "base/message.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/text.h"

#define KEY_PREFIX "arguskey_" /* no token begins so: they begin with "argus_" */
static const usec_t KEY_USE_STORED_EVERY = 5 * USEC_MIN;

#define KEY(key, ftype, ...) FIELD_AT(service_key, #key, ftype, key, __VA_ARGS__)
enum { WHOLE = FIELD_STORED | FIELD_SHOWN };
static const struct field service_key_rows[] = {
    KEY(id, FIELD_STR, .flags = WHOLE | FIELD_ALWAYS),
    KEY(service, FIELD_STR, .flags = WHOLE | FIELD_ALWAYS, .doc = "the one that it opens"),
    KEY(name, FIELD_STR, .flags = WHOLE | FIELD_ALWAYS, .doc = "what it is for"),
    KEY(user, FIELD_STR, .flags = WHOLE | FIELD_ALWAYS, .doc = "user who made it"),
    KEY(hash, FIELD_STR, .flags = FIELD_STORED),
    KEY(requests_per_minute,
        FIELD_INT,
        .flags = WHOLE,
        .doc = "of this key; 0: as the service has it for one user"),
    KEY(tokens_per_minute, FIELD_INT, .flags = WHOLE, .doc = "the same of tokens"),
    KEY(created_at, FIELD_TIME, .flags = WHOLE),
    KEY(expires_at, FIELD_TIME, .flags = WHOLE, .doc = "null: never"),
    KEY(last_use_at, FIELD_TIME, .flags = WHOLE, .doc = "noted every five minutes"),
};
const struct field_table service_key_table =
    FIELD_TABLE("ServiceKey", service_key_rows, service_key);

struct service_keys {
    struct store *store;
    struct map *by_hash, *by_id;
};

struct service_keys *service_keys_new(struct store *store)
{
    unsigned char seed[16];
    random_bytes(seed, sizeof(seed));
    struct service_keys *ks = xcalloc(1, sizeof(*ks));
    ks->store = store;
    ks->by_hash = map_new(seed);
    ks->by_id = map_new(seed);
    return ks;
}

static void service_key_free(struct service_key *k)
{
    field_release(&service_key_table, k);
    free(k);
}

void service_keys_free(struct service_keys *ks)
{
    struct service_key *k;
    if (!ks)
        return;
    for (size_t pos = 0; (k = map_next(ks->by_hash, &pos, NULL));)
        service_key_free(k);
    map_free(ks->by_hash);
    map_free(ks->by_id);
    free(ks);
}

static void service_keys_keep(struct service_keys *ks, struct service_key *k)
{
    (void)map_set(ks->by_hash, k->hash, k); /* neither was there */
    (void)map_set(ks->by_id, k->id, k);
}

void service_keys_restore(struct service_keys *ks, const struct store_entry *row)
{
    struct service_key *k = xcalloc(1, sizeof(*k));
    if (field_from_text(&service_key_table, row->body, FIELD_STORED, k) && k->id && k->service &&
        k->user && k->hash && !map_find(ks->by_id, k->id) && !map_find(ks->by_hash, k->hash))
        service_keys_keep(ks, k);
    else
        service_key_free(k);
}

static void service_keys_save(const struct service_keys *ks,
                              const struct service_key *k,
                              usec_t now)
{
    _cleanup_(freep) char *body = field_to_text(&service_key_table, k, FIELD_STORED, FIELD_ROW);
    struct store_entry row = {.kind = SERVICE_KEYS_ENTRY, .name = k->hash, .body = body, .at = now};
    store_put_entry(ks->store, &row);
}

const struct service_key *service_keys_add(struct service_keys *ks,
                                           const struct service_key *form,
                                           usec_t now,
                                           char ret[static TOKEN_TEXT_MAX])
{
    unsigned char hash[HASH_BYTES];
    char id[2 * 6 + 1], hex[HASH_HEX];
    token_make_text(KEY_PREFIX, ret, hash);
    struct service_key *k = xcalloc(1, sizeof(*k));
    *k = (struct service_key){.id = xstrdup(random_hex(id)),
                              .service = xstrdup(form->service),
                              .name = xstrdup(str_or(form->name, "")),
                              .user = xstrdup(form->user),
                              .hash = xstrdup(str_hex(hash, sizeof(hash), hex)),
                              .requests_per_minute = form->requests_per_minute,
                              .tokens_per_minute = form->tokens_per_minute,
                              .created_at = now,
                              .expires_at = form->expires_at};
    service_keys_keep(ks, k);
    service_keys_save(ks, k, now);
    return k;
}

void service_keys_remove(struct service_keys *ks, const struct service_key *k)
{
    struct service_key *own = map_remove(ks->by_id, k->id);
    (void)map_remove(ks->by_hash, own->hash); /* the same one */
    store_remove_entry(ks->store, SERVICE_KEYS_ENTRY, own->hash);
    service_key_free(own);
}

/* Those of this service, or of this user; the other one is NULL. */
static void service_keys_remove_these(struct service_keys *ks,
                                      const char *service,
                                      const char *user)
{
    const struct service_key *k;
    _cleanup_(strv_release) struct strv ids = {0};
    for (size_t pos = 0; (k = service_keys_next(ks, &pos));)
        if (service ? str_eq(k->service, service) : str_eq(k->user, user))
            strv_add(&ids, k->id);
    for (size_t i = 0; i < ids.n; i++)
        service_keys_remove(ks, service_keys_find(ks, ids.v[i]));
}

void service_keys_remove_all(struct service_keys *ks, const char *service)
{
    service_keys_remove_these(ks, service, NULL);
}

void service_keys_remove_user(struct service_keys *ks, const char *user)
{
    service_keys_remove_these(ks, NULL, user);
}

const struct service_key *service_keys_find(const struct service_keys *ks, const char *id)
{
    return map_find(ks->by_id, id);
}

const struct service_key *service_keys_next(const struct service_keys *ks, size_t *pos)
{
    return map_next(ks->by_id, pos, NULL);
}

size_t service_keys_count(const struct service_keys *ks, const char *service)
{
    const struct service_key *k;
    size_t n = 0;
    for (size_t pos = 0; (k = service_keys_next(ks, &pos));)
        n += str_eq(k->service, service);
    return n;
}

bool service_key_works(const struct service_key *k, usec_t now)
{
    return !k->expires_at || now < k->expires_at;
}

bool service_keys_is_text(const char *bearer)
{
    return str_starts(bearer, KEY_PREFIX);
}

static int service_key_admit(struct service_keys *ks,
                             struct service_key *k,
                             usec_t now,
                             struct http_principal *ret)
{
    if (!service_key_works(k, now)) {
        char when[CLOCK_TEXT_MAX];
        (void)clock_to_string(k->expires_at, when);
        return http_principal_refuse(ret, "key_expired", MESSAGE_ARGS(MESSAGE_STR("at", when)));
    }
    text_copy(ret->user, k->user);
    text_copy(ret->token_id, k->id);
    text_copy(ret->only, k->service);
    ret->role = HTTP_ROLE_NONE;
    if (now - k->last_use_at >= KEY_USE_STORED_EVERY) {
        k->last_use_at = now;
        service_keys_save(ks, k, now);
    }
    return 0;
}

int service_keys_check(struct service_keys *ks,
                       const char *bearer,
                       usec_t now,
                       struct http_principal *ret)
{
    unsigned char hash[HASH_BYTES];
    char hex[HASH_HEX];
    hash_sha256(bearer, strlen(bearer), hash);
    struct service_key *k = map_find(ks->by_hash, str_hex(hash, sizeof(hash), hex));
    if (k && hash_compare(hex, k->hash, HASH_HEX) == 0)
        return service_key_admit(ks, k, now, ret);
    return http_principal_refuse(ret, "key_unknown", MESSAGE_NO_ARGS);
}

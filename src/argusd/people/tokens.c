/* SPDX-License-Identifier: Apache-2.0 */
/* tokens.c - the table of tokens, by hash; see tokens.h.
 *
 * The look-up key is a hash that the caller cannot steer without knowing the
 * token, so the time of the look-up tells nothing about the tokens there are. */
#include "argusd/people/tokens.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/people/people_form.h"
#include "argusd/people/sessions.h"
#include "base/digest/hash.h"
#include "base/map.h"
#include "base/message.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/text.h"

static const usec_t USE_NOTED_EVERY = 5 * USEC_MIN;
static const usec_t KEPT_AFTER_END = 30 * USEC_DAY;

#define TOKEN(key, ftype, ...)                                                                     \
    {                                                                                              \
        .name = #key, .type = ftype, .offset = offsetof(struct token, key), __VA_ARGS__            \
    }
static const struct field token_rows[] = {
    TOKEN(id, FIELD_STR, .flags = FIELD_ALWAYS),
    TOKEN(name, FIELD_STR, .flags = FIELD_ALWAYS, .doc = "what it is for"),
    TOKEN(user, FIELD_STR, .flags = FIELD_ALWAYS),
    TOKEN(role, FIELD_ENUM, .names = people_role_names),
    TOKEN(created_at, FIELD_TIME),
    TOKEN(expires_at, FIELD_TIME),
    TOKEN(last_use_at, FIELD_TIME),
    TOKEN(revoked_at, FIELD_TIME),
};
const struct field_table token_table = {.name = "Token",
                                        .rows = token_rows,
                                        .n = array_len(token_rows),
                                        .size = sizeof(struct token),
                                        .all = FIELD_SHOWN};

struct tokens {
    struct store *store;
    const struct sessions *sessions; /* NULL in argusd init */
    struct map *by_hash, *by_id;
};

struct tokens *tokens_new(struct store *store)
{
    unsigned char seed[16];
    random_bytes(seed, sizeof(seed));
    struct tokens *t = xcalloc(1, sizeof(*t));
    t->store = store;
    t->by_hash = map_new(seed);
    t->by_id = map_new(seed);
    return t;
}

static void token_free(struct token *k)
{
    free(k->id);
    free(k->name);
    free(k->user);
    free(k);
}

void tokens_free(struct tokens *t)
{
    if (!t)
        return;
    struct token *k;
    for (size_t pos = 0; (k = map_next(t->by_hash, &pos, NULL));)
        token_free(k);
    map_free(t->by_hash);
    map_free(t->by_id);
    free(t);
}

size_t tokens_count(const struct tokens *t)
{
    return map_count(t->by_hash);
}

static void tokens_keep(struct tokens *t, struct token *k)
{
    char hex[HASH_HEX];
    map_set(t->by_hash, str_hex(k->hash, HASH_BYTES, hex), k);
    map_set(t->by_id, k->id, k);
}

/* When it ceased to work; 0 = it has not. */
static usec_t end_of(const struct token *k, usec_t now)
{
    if (k->revoked_at)
        return k->revoked_at;
    return k->expires_at && now >= k->expires_at ? k->expires_at : 0;
}

bool token_works(const struct token *k, usec_t now)
{
    return !end_of(k, now);
}

void tokens_restore(struct tokens *t, const struct store_token *row)
{
    struct token *k = xcalloc(1, sizeof(*k));
    memcpy(k->hash, row->hash, HASH_BYTES);
    k->id = xstrdup(str_or(row->id, ""));
    k->name = xstrdup(str_or(row->name, ""));
    k->user = xstrdup(str_or(row->user, ""));
    if (http_role_from_string(str_or(row->role, ""), &k->role, NULL) < 0)
        k->role = HTTP_ROLE_NONE; /* a role that we do not know may do nothing */
    k->created_at = row->created_at;
    k->expires_at = row->expires_at;
    k->last_use_at = row->last_use_at;
    k->revoked_at = row->revoked_at;
    tokens_keep(t, k);
}

void tokens_forget(struct tokens *t, const char *user, usec_t now)
{
    struct token *k;
    char hex[HASH_HEX];
    struct strv old = {0};
    for (size_t pos = 0; (k = map_next(t->by_id, &pos, NULL));) {
        usec_t end = end_of(k, now);
        if (str_eq(k->user, user) && end && now > end && now - end > KEPT_AFTER_END)
            strv_add(&old, k->id);
    }
    for (size_t i = 0; i < old.n; i++) {
        k = map_remove(t->by_id, old.v[i]);
        (void)map_remove(t->by_hash, str_hex(k->hash, HASH_BYTES, hex)); /* the same one */
        store_remove_token(t->store, k->hash);
        token_free(k);
    }
    strv_release(&old);
}

static void tokens_save(struct tokens *t, const struct token *k)
{
    struct store_token row = {.hash = k->hash,
                              .id = k->id,
                              .name = k->name,
                              .user = k->user,
                              .role = http_role_to_string(k->role),
                              .created_at = k->created_at,
                              .expires_at = k->expires_at,
                              .last_use_at = k->last_use_at,
                              .revoked_at = k->revoked_at};
    store_put_token(t->store, &row);
}

void token_make_text(const char *prefix,
                     char ret[static TOKEN_TEXT_MAX],
                     unsigned char ret_hash[static STORE_HASH_BYTES])
{
    unsigned char bytes[32];
    size_t n = strlen(prefix);
    random_bytes(bytes, sizeof(bytes));
    memcpy(ret, prefix, n);
    (void)sodium_bin2base64(ret + n, TOKEN_TEXT_MAX - n, bytes, sizeof(bytes),
                            sodium_base64_VARIANT_URLSAFE_NO_PADDING); /* 43 characters fit */
    hash_sha256(ret, strlen(ret), ret_hash);
    sodium_memzero(bytes, sizeof(bytes));
}

const struct token *tokens_add(struct tokens *t,
                               const char *name,
                               const char *user,
                               enum http_role role,
                               usec_t now,
                               usec_t expires_at,
                               char ret[static TOKEN_TEXT_MAX])
{
    char id[2 * 6 + 1];
    struct token *k = xcalloc(1, sizeof(*k));
    token_make_text("argus_", ret, k->hash);
    k->id = xstrdup(random_hex(id));
    k->name = xstrdup(name);
    k->user = xstrdup(user);
    k->role = role;
    k->created_at = now;
    k->expires_at = expires_at;
    tokens_keep(t, k);
    tokens_save(t, k);
    return k;
}

void tokens_revoke(struct tokens *t, const struct token *k, usec_t now)
{
    struct token *own = map_find(t->by_id, k->id);
    if (own->revoked_at)
        return;
    own->revoked_at = now;
    tokens_save(t, own);
}

void tokens_set_sessions(struct tokens *t, const struct sessions *of)
{
    t->sessions = of;
}

bool tokens_session_works(const struct tokens *t, const struct http_principal *p, usec_t now)
{
    return !*p->session_id || (t->sessions && sessions_has(t->sessions, p->session_id, now));
}

const struct token *tokens_find(const struct tokens *t, const char *id)
{
    return map_find(t->by_id, id);
}

const struct token *tokens_next(const struct tokens *t, size_t *pos)
{
    return map_next(t->by_id, pos, NULL);
}

static int token_refuse_ended(const struct token *k, struct http_principal *ret)
{
    char when[CLOCK_TEXT_MAX];
    (void)clock_to_string(k->revoked_at ? k->revoked_at : k->expires_at, when);
    return http_principal_refuse(ret, k->revoked_at ? "token_revoked" : "token_expired",
                                 MESSAGE_ARGS(MESSAGE_STR("at", when)));
}

/* Who the token's user is, if the token works; notes that it was used. */
static int token_admit(struct tokens *t, struct token *k, usec_t now, struct http_principal *ret)
{
    if (!token_works(k, now))
        return token_refuse_ended(k, ret);
    text_copy(ret->user, k->user);
    text_copy(ret->token_id, k->id);
    ret->role = k->role;
    if (now - k->last_use_at >= USE_NOTED_EVERY) {
        k->last_use_at = now;
        tokens_save(t, k);
    }
    return 0;
}

int tokens_check_id(struct tokens *t, const char *id, usec_t now, struct http_principal *ret)
{
    struct token *k = map_find(t->by_id, id);
    if (k)
        return token_admit(t, k, now, ret);
    return http_principal_refuse(ret, "session_token_unknown", MESSAGE_NO_ARGS);
}

int tokens_check(struct tokens *t, const char *bearer, usec_t now, struct http_principal *ret)
{
    unsigned char hash[HASH_BYTES];
    char hex[HASH_HEX];
    static const unsigned char nobody[HASH_BYTES];
    hash_sha256(bearer, strlen(bearer), hash);
    struct token *k = map_find(t->by_hash, str_hex(hash, sizeof(hash), hex));
    bool ok = hash_compare(hash, k ? k->hash : nobody, sizeof(hash)) == 0;
    if (ok && k)
        return token_admit(t, k, now, ret);
    return http_principal_refuse(ret, "token_unknown", MESSAGE_NO_ARGS);
}

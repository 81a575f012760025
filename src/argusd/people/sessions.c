/* SPDX-License-Identifier: Apache-2.0 */
/* sessions.c - the table of sessions; see sessions.h.
 *
 * Its rows are entries of the store. The last use is stored now and then, not with each request.
 * The csrf word is a hash of the cookie, so that nothing has to be kept for it and nobody who reads
 * the store or a list of sessions learns it. */
#include "argusd/people/sessions.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/map.h"
#include "base/message.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/text.h"

static const usec_t USE_STORED_EVERY = 5 * USEC_MIN;

/* With the prefix a browser takes the cookie only over TLS and from this very host, so that no
 * neighbour below the same domain can plant one. */
#define COOKIE_SECURE "__Host-argus"
#define COOKIE_PLAIN "argus_session"

#define SESSION(key, ftype, ...)                                                                   \
    {                                                                                              \
        .name = #key, .type = ftype, .offset = offsetof(struct session, key), __VA_ARGS__          \
    }
enum { WHOLE = FIELD_STORED | FIELD_SHOWN };
static const struct field session_rows[] = {
    SESSION(id, FIELD_STR, .flags = WHOLE | FIELD_ALWAYS),
    SESSION(user, FIELD_STR, .flags = WHOLE | FIELD_ALWAYS),
    SESSION(token_id,
            FIELD_STR,
            .flags = WHOLE | FIELD_ALWAYS,
            .doc = "token with which the session ends"),
    SESSION(hash, FIELD_STR, .flags = FIELD_STORED),
    SESSION(agent, FIELD_STR, .flags = WHOLE, .doc = "what the browser says of itself"),
    SESSION(created_at, FIELD_TIME, .flags = WHOLE),
    SESSION(last_use_at, FIELD_TIME, .flags = WHOLE),
    SESSION(expires_at, FIELD_TIME, .flags = WHOLE, .doc = "used or not"),
};
const struct field_table session_table = {.name = "Session",
                                          .rows = session_rows,
                                          .n = array_len(session_rows),
                                          .size = sizeof(struct session)};

struct link {
    char hash[HASH_HEX]; /* of its text; "": none */
    char token_id[HTTP_TOKEN_ID_MAX], user[HTTP_USER_MAX];
    usec_t made_at;
};

struct sessions {
    struct sessions_parts parts;
    struct map *by_hash, *by_id;
    struct link links[SESSION_LINKS];
};

struct sessions *sessions_new(const struct sessions_parts *parts)
{
    unsigned char seed[16];
    random_bytes(seed, sizeof(seed));
    struct sessions *ss = xcalloc(1, sizeof(*ss));
    ss->parts = *parts;
    ss->by_hash = map_new(seed);
    ss->by_id = map_new(seed);
    tokens_set_sessions(parts->tokens, ss);
    return ss;
}

static void session_free(struct session *k)
{
    field_release(&session_table, k);
    free(k);
}

void sessions_free(struct sessions *ss)
{
    if (!ss)
        return;
    struct session *k;
    for (size_t pos = 0; (k = map_next(ss->by_id, &pos, NULL));)
        session_free(k);
    map_free(ss->by_hash);
    map_free(ss->by_id);
    free(ss);
}

static void sessions_keep(struct sessions *ss, struct session *k)
{
    map_set(ss->by_hash, k->hash, k);
    map_set(ss->by_id, k->id, k);
}

void sessions_restore(struct sessions *ss, const struct store_entry *row)
{
    struct session *k = xcalloc(1, sizeof(*k));
    if (field_from_text(&session_table, row->body, FIELD_STORED, k) && k->id && k->user &&
        k->token_id && k->hash && !map_find(ss->by_id, k->id))
        sessions_keep(ss, k);
    else
        session_free(k);
}

static void sessions_save(const struct sessions *ss, const struct session *k, usec_t now)
{
    _cleanup_(freep) char *body = field_to_text(&session_table, k, FIELD_STORED, FIELD_ROW);
    struct store_entry row = {.kind = SESSIONS_ENTRY, .name = k->hash, .body = body, .at = now};
    store_put_entry(ss->parts.store, &row);
}

void sessions_end(struct sessions *ss, const struct session *k)
{
    if (!k)
        return;
    struct session *own = map_remove(ss->by_id, k->id);
    (void)map_remove(ss->by_hash, own->hash); /* the same one */
    store_remove_entry(ss->parts.store, SESSIONS_ENTRY, own->hash);
    session_free(own);
}

bool session_works(const struct sessions *ss, const struct session *k, usec_t now)
{
    const struct token *token = tokens_find(ss->parts.tokens, k->token_id);
    return token && token_works(token, now) && now < k->expires_at &&
           (now < k->last_use_at || now - k->last_use_at < ss->parts.idle);
}

bool sessions_has(const struct sessions *ss, const char *id, usec_t now)
{
    const struct session *k = map_find(ss->by_id, id);
    return k && session_works(ss, k, now);
}

const struct session *sessions_find(const struct sessions *ss, const char *id)
{
    return map_find(ss->by_id, id);
}

const struct session *sessions_next(const struct sessions *ss, size_t *pos)
{
    return map_next(ss->by_id, pos, NULL);
}

/* ---- beginning one ---- */

/* Those that have ended go, and of this user the least used while there are as many as may be. */
static void sessions_make_room(struct sessions *ss, const char *user, usec_t now)
{
    struct strv over = {0};
    const struct session *k;
    size_t works = 0;
    for (size_t pos = 0; (k = sessions_next(ss, &pos));)
        if (!session_works(ss, k, now))
            strv_add(&over, k->id);
        else
            works += str_eq(k->user, user);
    for (size_t i = 0; i < over.n; i++)
        sessions_end(ss, sessions_find(ss, over.v[i]));
    strv_release(&over);
    for (; works >= ss->parts.most; works--) {
        const struct session *oldest = NULL;
        for (size_t pos = 0; (k = sessions_next(ss, &pos));)
            if (str_eq(k->user, user) && (!oldest || k->last_use_at < oldest->last_use_at))
                oldest = k;
        sessions_end(ss, oldest);
    }
}

const struct session *sessions_add(struct sessions *ss,
                                   const struct http_principal *p,
                                   const char *agent,
                                   usec_t now,
                                   char ret[static SESSION_TEXT_MAX])
{
    unsigned char bytes[32];
    char id[2 * 6 + 1], hex[HASH_HEX], said[SESSION_AGENT_MAX];
    sessions_make_room(ss, p->user, now);
    random_bytes(bytes, sizeof(bytes));
    (void)sodium_bin2base64(ret, SESSION_TEXT_MAX, bytes, sizeof(bytes),
                            sodium_base64_VARIANT_URLSAFE_NO_PADDING); /* 43 characters fit */
    sodium_memzero(bytes, sizeof(bytes));
    text_copy(said, agent);
    struct session *k = xcalloc(1, sizeof(*k));
    k->id = xstrdup(random_hex(id));
    k->user = xstrdup(p->user);
    k->token_id = xstrdup(p->token_id);
    k->hash = xstrdup(hash_sha256_hex(ret, strlen(ret), hex));
    k->agent = xstrdup(said);
    k->created_at = k->last_use_at = now;
    k->expires_at = now + ss->parts.longest;
    sessions_keep(ss, k);
    sessions_save(ss, k, now);
    return k;
}

/* ---- login links ---- */

static bool link_waits(const struct link *l, usec_t now)
{
    return *l->hash && now >= l->made_at && now - l->made_at <= SESSION_LINK_LIFE;
}

/* Where the next link of this user goes. Nobody ends the links of others by making many. */
static struct link *sessions_link_place(struct sessions *ss, const char *user, usec_t now)
{
    struct link *oldest = &ss->links[0], *own = NULL, *room = NULL;
    size_t n = 0;
    for (struct link *l = ss->links; l < ss->links + SESSION_LINKS; l++) {
        if (!link_waits(l, now)) {
            room = l;
            continue;
        }
        oldest = l->made_at < oldest->made_at ? l : oldest;
        if (!str_eq(l->user, user))
            continue;
        own = !own || l->made_at < own->made_at ? l : own;
        n++;
    }
    if (n >= SESSION_LINKS_OF_USER)
        return own;
    return room ? room : oldest;
}

void sessions_make_link(struct sessions *ss,
                        const struct http_principal *p,
                        usec_t now,
                        char ret[static SESSION_LINK_MAX])
{
    unsigned char bytes[32];
    struct link *to = sessions_link_place(ss, p->user, now);
    random_bytes(bytes, sizeof(bytes));
    (void)sodium_bin2base64(ret, SESSION_LINK_MAX, bytes, sizeof(bytes),
                            sodium_base64_VARIANT_URLSAFE_NO_PADDING); /* 43 characters fit */
    sodium_memzero(bytes, sizeof(bytes));
    *to = (struct link){.made_at = now};
    text_copy(to->token_id, p->token_id);
    text_copy(to->user, p->user);
    (void)hash_sha256_hex(ret, strlen(ret), to->hash);
}

int sessions_take_link(struct sessions *ss,
                       const char *text,
                       usec_t now,
                       struct http_principal *ret)
{
    char hex[HASH_HEX];
    struct link *found = NULL;
    (void)hash_sha256_hex(text, strlen(text), hex);
    for (size_t i = 0; i < SESSION_LINKS; i++)
        if (*ss->links[i].hash && sodium_memcmp(ss->links[i].hash, hex, sizeof(hex)) == 0)
            found = &ss->links[i];
    struct link l = found ? *found : (struct link){0};
    if (found)
        *found = (struct link){0};
    if (!link_waits(&l, now))
        return http_principal_refuse(ret, "login_link_over", MESSAGE_NO_ARGS);
    return tokens_check_id(ss->parts.tokens, l.token_id, now, ret);
}

/* ---- the cookie ---- */

static const char *cookie_name(const struct sessions *ss)
{
    return ss->parts.is_secure ? COOKIE_SECURE : COOKIE_PLAIN;
}

void sessions_cookie(const struct sessions *ss,
                     const char *text,
                     char ret[static SESSION_HEADER_MAX])
{
    usec_t age = *text ? ss->parts.longest / USEC_SEC : 0;
    text_printf_to(ret, SESSION_HEADER_MAX,
                   "%s=%s; Path=/; HttpOnly; SameSite=Strict; Max-Age=%llu%s", cookie_name(ss),
                   text, (unsigned long long)age, ss->parts.is_secure ? "; Secure" : "");
}

void sessions_csrf(const char *text, char ret[static SESSION_CSRF_MAX])
{
    char said[SESSION_TEXT_MAX + 8];
    text_printf(said, "csrf:%s", text);
    (void)hash_sha256_hex(said, strlen(said), ret);
}

const struct session *sessions_find_cookie(const struct sessions *ss, const char *header)
{
    char text[SESSION_TEXT_MAX], hex[HASH_HEX];
    if (!http_cookie_find(header, cookie_name(ss), text, sizeof(text)))
        return NULL;
    return map_find(ss->by_hash, hash_sha256_hex(text, strlen(text), hex));
}

bool sessions_csrf_of(const struct sessions *ss,
                      const char *header,
                      char ret[static SESSION_CSRF_MAX])
{
    char text[SESSION_TEXT_MAX];
    if (!http_cookie_find(header, cookie_name(ss), text, sizeof(text)))
        return false;
    sessions_csrf(text, ret);
    return true;
}

/* The look-up key is a hash, as of tokens: its time tells nothing. */
int sessions_check(struct sessions *ss,
                   const struct http_credentials *c,
                   usec_t now,
                   struct http_principal *ret)
{
    char csrf[SESSION_CSRF_MAX] = "";
    struct session *k = NULL;
    const struct session *found = sessions_find_cookie(ss, c->cookie);
    if (found)
        k = map_find(ss->by_id, found->id);
    if (!k || !session_works(ss, k, now))
        return http_principal_refuse(ret, k ? "session_ended" : "no_token", MESSAGE_NO_ARGS);
    bool knows = sessions_csrf_of(ss, c->cookie, csrf) && strlen(c->csrf) == strlen(csrf) &&
                 sodium_memcmp(c->csrf, csrf, strlen(csrf)) == 0;
    if (c->changes && (c->is_foreign || !knows))
        return http_principal_refuse(ret, "csrf_missing", MESSAGE_NO_ARGS);
    int r = tokens_check_id(ss->parts.tokens, k->token_id, now, ret);
    if (r < 0)
        return r;
    text_copy(ret->session_id, k->id);
    bool is_old = now > k->last_use_at && now - k->last_use_at >= USE_STORED_EVERY;
    if (now > k->last_use_at)
        k->last_use_at = now;
    if (is_old)
        sessions_save(ss, k, now);
    return 0;
}

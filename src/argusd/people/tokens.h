/* SPDX-License-Identifier: Apache-2.0 */
/* tokens.h - who may come in: bearer tokens, known by their hash only.
 *
 * A token is "argus_" and 43 characters (32 random bytes, base64url). It is shown
 * once, when it is made; the store keeps its SHA-256. A token that was revoked or has
 * expired is remembered for a while, so that who comes with it is told so. */
#pragma once
#include "base/clock.h"
#include "base/field.h"
#include "http/http.h"
#include "store/store.h"

enum { TOKEN_TEXT_MAX = 64 };
/* Tokens of one user: those that work, and with those that did. */
enum { TOKENS_ACTIVE_MAX = 100, TOKENS_OF_USER_MAX = 1000 };

struct sessions;
struct tokens;

/* What may be told of one. Read-only to everybody but tokens.c. */
struct token {
    unsigned char hash[STORE_HASH_BYTES];
    char *id, *name, *user;
    enum http_role role;
    usec_t created_at, expires_at, last_use_at, revoked_at; /* 0 = never */
};

extern const struct field_table token_table;

/* The text of a new credential, this prefix (at most 16 characters) and 43 that nobody can guess,
 * with its SHA-256. */
void token_make_text(const char *prefix,
                     char ret[static TOKEN_TEXT_MAX],
                     unsigned char ret_hash[static STORE_HASH_BYTES]);

struct tokens *tokens_new(struct store *store);
void tokens_free(struct tokens *t); /* NULL is fine */
void tokens_restore(struct tokens *t, const struct store_token *row);
/* Remove those of this user that ended more than 30 days ago. Done when there is need, not at a
 * start: then the clock may not be right yet. No pointer to one of them may be held. */
void tokens_forget(struct tokens *t, const char *user, usec_t now);
size_t tokens_count(const struct tokens *t);

/* Makes one, stores it, and writes its text to ret (the only time it is seen).
 * expires_at: 0 = never. Borrowed. */
const struct token *tokens_add(struct tokens *t,
                               const char *name,
                               const char *user,
                               enum http_role role,
                               usec_t now,
                               usec_t expires_at,
                               char ret[static TOKEN_TEXT_MAX]);
/* One that is revoked already stays as it is. */
void tokens_revoke(struct tokens *t, const struct token *k, usec_t now);

const struct token *tokens_find(const struct tokens *t, const char *id); /* NULL if there is none */
/* In no order; NULL at the end. Tokens may be revoked on the way, not added. */
const struct token *tokens_next(const struct tokens *t, size_t *pos);
bool token_works(const struct token *k, usec_t now); /* neither revoked nor expired */

/* The token that a session was begun with goes on to open: 0 and *ret filled as below, or
 * ERR_UNAUTHORISED. */
must_check int tokens_check_id(struct tokens *t,
                               const char *id,
                               usec_t now,
                               struct http_principal *ret);
/* Whose sessions are begun with these tokens; borrowed, once. */
void tokens_set_sessions(struct tokens *t, const struct sessions *of);
/* Did the session of this principal not end? True also of one who came with the token itself. */
bool tokens_session_works(const struct tokens *t, const struct http_principal *p, usec_t now);
/* 0, or ERR_UNAUTHORISED: unknown, expired or revoked (then why_not says so); the same work in
 * each case. */
must_check int tokens_check(struct tokens *t,
                            const char *bearer,
                            usec_t now,
                            struct http_principal *ret);

/* SPDX-License-Identifier: Apache-2.0 */
/* tokens.h - who may come in: bearer tokens, known by their hash only.
 *
 * A token is "argus_" and 43 characters (32 random bytes, base64url). It is shown
 * once, when it is made; the store keeps its SHA-256. */
#pragma once
#include "base/clock.h"
#include "http/http.h"
#include "store/store.h"

enum { TOKEN_TEXT_MAX = 64 };

struct tokens;

struct tokens *tokens_new(struct store *store);
void tokens_free(struct tokens *t);
void tokens_restore(struct tokens *t, const struct store_token *row);
size_t tokens_count(const struct tokens *t);

/* Makes one, stores it, and writes its text to ret (the only time it is seen). */
void tokens_add(struct tokens *t,
                const char *name,
                const char *user,
                enum http_role role,
                usec_t now,
                char ret[static TOKEN_TEXT_MAX]);

/* 0, or ERR_UNAUTHORISED: unknown, expired or revoked; the same work in each case. */
must_check int tokens_check(struct tokens *t,
                            const char *bearer,
                            usec_t now,
                            struct http_principal *ret);
/* When the token of this id expires; 0 = never. */
usec_t tokens_expiry(const struct tokens *t, const char *token_id);

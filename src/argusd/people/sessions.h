/* SPDX-License-Identifier: Apache-2.0 */
/* sessions.h - logins of browsers: a cookie in place of a token, known by its hash only.
 *
 * Who shows a token once is given a cookie of 32 random bytes, which no script reads. It opens what
 * the token opens, and ends with it, when it was not used for a while, after its longest life, when
 * it is revoked, or when its user has begun too many others. A change by it needs a second word,
 * the session's csrf, which only our own pages can learn: a page of another site that makes the
 * browser send the cookie does not know it. */
#pragma once
#include "argusd/people/tokens.h"
#include "base/field.h"

#define SESSIONS_ENTRY "session" /* kind of its rows in the store */

/* Bytes of a cookie's text and of a csrf word, with the NUL; of a Set-Cookie header. */
enum { SESSION_TEXT_MAX = 64, SESSION_CSRF_MAX = 65, SESSION_HEADER_MAX = 192 };
enum { SESSION_AGENT_MAX = 160 };

struct sessions;

/* What may be told of one. Read-only to everybody but sessions.c. */
struct session {
    char *id, *user, *token_id;
    char *hash;  /* SHA-256 of the cookie's text, hex; the key of its row */
    char *agent; /* what its browser said of itself; may be "" */
    usec_t created_at, last_use_at, expires_at;
};
extern const struct field_table session_table;

struct sessions_parts {
    struct store *store;
    struct tokens *tokens;
    usec_t idle, longest;
    size_t most;    /* of one user */
    bool is_secure; /* we speak TLS: the cookie goes over nothing else */
};

struct sessions *sessions_new(
    const struct sessions_parts *parts); /* what they point to is borrowed */
void sessions_free(struct sessions *ss); /* NULL is fine */
void sessions_restore(struct sessions *ss, const struct store_entry *row);

/* A new one of the user and token of p. The text of its cookie is written to ret, the only time
 * that it is seen. Borrowed. */
const struct session *sessions_add(struct sessions *ss,
                                   const struct http_principal *p,
                                   const char *agent,
                                   usec_t now,
                                   char ret[static SESSION_TEXT_MAX]);
/* It is forgotten; k is gone after it. NULL is fine. */
void sessions_end(struct sessions *ss, const struct session *k);
const struct session *sessions_find(const struct sessions *ss, const char *id); /* NULL: none */
/* The one whose cookie is in this Cookie header; NULL. It may have expired. */
const struct session *sessions_find_cookie(const struct sessions *ss, const char *header);
/* In no order; NULL at the end. None may be added or ended on the way. */
const struct session *sessions_next(const struct sessions *ss, size_t *pos);
/* Neither it nor its token has ended. */
bool session_works(const struct sessions *ss, const struct session *k, usec_t now);
bool sessions_has(const struct sessions *ss, const char *id, usec_t now);

/* Who sends this cookie: 0 and *ret filled, or ERR_UNAUTHORISED with why_not: unknown, ended, or a
 * change without the csrf word. */
must_check int sessions_check(struct sessions *ss,
                              const struct http_credentials *c,
                              usec_t now,
                              struct http_principal *ret);

/* The csrf word of the session whose cookie has this text, or is in this header. */
void sessions_csrf(const char *text, char ret[static SESSION_CSRF_MAX]);
bool sessions_csrf_of(const struct sessions *ss,
                      const char *header,
                      char ret[static SESSION_CSRF_MAX]);
/* ---- login links: a browser is logged in once, without the token ---- */

/* The size of a link's text, with the NUL, and how many links may wait at once, of all users and
 * of one. */
enum { SESSION_LINK_MAX = 48, SESSION_LINKS = 256, SESSION_LINKS_OF_USER = 8 };
/* A link works for so long. */
#define SESSION_LINK_LIFE (10 * USEC_MIN)

/* A new one for the token of p; the user's oldest goes where he has too many, else the oldest of
 * all where there are too many. Its text is written to ret, the only time that it is seen. It is in
 * memory alone: a restart of argusd ends it. */
void sessions_make_link(struct sessions *ss,
                        const struct http_principal *p,
                        usec_t now,
                        char ret[static SESSION_LINK_MAX]);
/* Whose it is, as his token says now; it is used up, whatever comes of it. ERR_UNAUTHORISED: it is
 * unknown, was used, or is too old. */
must_check int sessions_take_link(struct sessions *ss,
                                  const char *text,
                                  usec_t now,
                                  struct http_principal *ret);

/* A Set-Cookie header. text "": one that takes the cookie away. */
void sessions_cookie(const struct sessions *ss,
                     const char *text,
                     char ret[static SESSION_HEADER_MAX]);

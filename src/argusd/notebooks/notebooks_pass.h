/* SPDX-License-Identifier: Apache-2.0 */
/* notebooks_pass.h - what opens the door of notebooks: a ticket, once, and then a cookie.
 *
 * Both speak for a user and for the token or session by which he asked; whoever reads one must
 * still ask whether that has ended. Tickets are in memory and known by their hash; a cookie holds
 * what it says and a MAC by argusd's key, so that it outlives a restart. Neither is a credential of
 * the API. */
#pragma once
#include "argusd/people/secrets.h"
#include "base/digest/hash.h"
#include "core/notebook/notebook.h"
#include "http/http.h"

enum {
    TICKETS_MAX = 512,
    TICKETS_OF_USER_MAX = 8,
    TICKET_TEXT_MAX = 44,
    PASS_COOKIE_MAX = 512,
};

struct pass {
    char user[HTTP_USER_MAX], token_id[HTTP_TOKEN_ID_MAX], session_id[HTTP_TOKEN_ID_MAX];
};

struct ticket {
    unsigned char hash[HASH_BYTES];
    usec_t until; /* monotonic; 0: none is here */
    struct pass pass;
    char notebook[NOTEBOOK_NAME_MAX + 1];
};

/* Zeroed memory is the beginning. */
struct passes {
    struct ticket tickets[TICKETS_MAX];
};

/* A new one; its text is seen this once. Of one user the oldest gives way to a ninth. */
void pass_ticket_add(struct passes *ps,
                     const struct pass *who,
                     const char *notebook,
                     usec_t now,
                     char ret[static TICKET_TEXT_MAX]);
/* It stays as it is. False: there is none of this text, or it is too old. */
bool pass_ticket_find(const struct passes *ps, const char *text, usec_t now, struct ticket *ret);
/* The same, and it is used up, whatever comes of it. */
bool pass_ticket_take(struct passes *ps, const char *text, usec_t now, struct ticket *ret);

/* until: wall time. */
void pass_cookie_write(const struct secrets *s,
                       const struct pass *who,
                       usec_t until,
                       char ret[static PASS_COOKIE_MAX]);
/* False: it is none of ours, or its time is over. */
bool pass_cookie_read(const struct secrets *s, const char *text, usec_t now, struct pass *ret);

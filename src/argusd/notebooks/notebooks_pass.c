/* SPDX-License-Identifier: Apache-2.0 */
/* notebooks_pass.c - tickets and cookies of the door; see notebooks_pass.h. A cookie is
 * base64url(expiry|token|session|user) "." hex(HMAC-SHA256). */
#include "argusd/notebooks/notebooks_pass.h"

#include <inttypes.h>
#include <sodium.h>
#include <string.h>

#include "base/str.h"
#include "base/text.h"

static const usec_t TICKET_LIFE = USEC_MIN;

/* ---- tickets ---- */

/* Where a new one goes: a free place, the oldest of a user who has many, or the oldest. */
static struct ticket *pass_place(struct passes *ps, const char *user, usec_t now)
{
    struct ticket *oldest = NULL, *own = NULL, *empty = NULL;
    size_t n = 0;
    for (size_t i = 0; i < TICKETS_MAX; i++) {
        struct ticket *t = &ps->tickets[i];
        if (t->until <= now) {
            empty = t;
            continue;
        }
        if (!oldest || t->until < oldest->until)
            oldest = t;
        if (!str_eq(t->pass.user, user))
            continue;
        n++;
        if (!own || t->until < own->until)
            own = t;
    }
    return n >= TICKETS_OF_USER_MAX ? own : empty ? empty : oldest;
}

void pass_ticket_add(struct passes *ps,
                     const struct pass *who,
                     const char *notebook,
                     usec_t now,
                     char ret[static TICKET_TEXT_MAX])
{
    unsigned char bytes[32];
    struct ticket *t = pass_place(ps, who->user, now);
    random_bytes(bytes, sizeof(bytes));
    (void)sodium_bin2base64(ret, TICKET_TEXT_MAX, bytes, sizeof(bytes),
                            sodium_base64_VARIANT_URLSAFE_NO_PADDING); /* 43 characters fit */
    sodium_memzero(bytes, sizeof(bytes));
    *t = (struct ticket){.until = now + TICKET_LIFE, .pass = *who};
    text_copy(t->notebook, notebook);
    hash_sha256(ret, strlen(ret), t->hash);
}

/* Its place; TICKETS_MAX: none. */
static size_t pass_ticket_at(const struct passes *ps, const char *text)
{
    unsigned char hash[HASH_BYTES];
    hash_sha256(text, strlen(text), hash);
    size_t i = 0;
    while (i < TICKETS_MAX &&
           (!ps->tickets[i].until || hash_compare(ps->tickets[i].hash, hash, sizeof(hash)) != 0))
        i++;
    return i;
}

bool pass_ticket_find(const struct passes *ps, const char *text, usec_t now, struct ticket *ret)
{
    size_t i = pass_ticket_at(ps, text);
    if (i == TICKETS_MAX || ps->tickets[i].until <= now)
        return false;
    *ret = ps->tickets[i];
    return true;
}

bool pass_ticket_take(struct passes *ps, const char *text, usec_t now, struct ticket *ret)
{
    size_t i = pass_ticket_at(ps, text);
    bool is_good = pass_ticket_find(ps, text, now, ret);
    if (i < TICKETS_MAX)
        ps->tickets[i] = (struct ticket){0};
    return is_good;
}

/* ---- cookies ---- */

static void pass_mac(const struct secrets *s, const char *text, size_t n, char ret[static HASH_HEX])
{
    unsigned char key[32], mac[HASH_BYTES];
    secrets_derive(s, "notebook cookie", key);
    hash_hmac(key, sizeof(key), text, n, mac);
    (void)str_hex(mac, sizeof(mac), ret); /* HASH_HEX characters fit */
    sodium_memzero(key, sizeof(key));
}

void pass_cookie_write(const struct secrets *s,
                       const struct pass *who,
                       usec_t until,
                       char ret[static PASS_COOKIE_MAX])
{
    char said[3 * HTTP_TOKEN_ID_MAX + 32], mac[HASH_HEX];
    text_printf(said, "%" PRIu64 "|%s|%s|%s", until, who->token_id, who->session_id, who->user);
    (void)sodium_bin2base64(ret, PASS_COOKIE_MAX - HASH_HEX - 1, (const unsigned char *)said,
                            strlen(said), sodium_base64_VARIANT_URLSAFE_NO_PADDING); /* fits */
    size_t n = strlen(ret);
    pass_mac(s, ret, n, mac);
    text_printf_to(ret + n, PASS_COOKIE_MAX - n, ".%s", mac);
}

/* The next field of the text, cut off in place. */
static bool pass_field(char **at, char *ret, size_t size)
{
    char *bar = strchr(*at, '|');
    size_t n = bar ? (size_t)(bar - *at) : strlen(*at);
    if (n >= size)
        return false;
    memcpy(ret, *at, n);
    ret[n] = '\0';
    *at += bar ? n + 1 : n;
    return true;
}

bool pass_cookie_read(const struct secrets *s, const char *text, usec_t now, struct pass *ret)
{
    char said[PASS_COOKIE_MAX], mac[HASH_HEX], until[24];
    const char *dot = strchr(text, '.');
    size_t n;
    int64_t end;
    struct pass p;
    if (!dot || strlen(dot + 1) != HASH_HEX - 1)
        return false;
    pass_mac(s, text, (size_t)(dot - text), mac);
    if (hash_compare(mac, dot + 1, HASH_HEX - 1) != 0 ||
        sodium_base642bin((unsigned char *)said, sizeof(said) - 1, text, (size_t)(dot - text), NULL,
                          &n, NULL, sodium_base64_VARIANT_URLSAFE_NO_PADDING) < 0)
        return false;
    said[n] = '\0';
    char *at = said;
    if (!pass_field(&at, until, sizeof(until)) ||
        !pass_field(&at, p.token_id, sizeof(p.token_id)) ||
        !pass_field(&at, p.session_id, sizeof(p.session_id)) ||
        !pass_field(&at, p.user, sizeof(p.user)) ||
        str_to_int(until, 0, INT64_MAX, &end, NULL) < 0 || (usec_t)end <= now)
        return false;
    *ret = p;
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* shares.c - the table of shares; see shares.h. Peers choose its names, so it is a map with a
 * random key. */
#include "http/shares.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/map.h"
#include "base/text.h"
#include "http/listen.h"

struct share {
    unsigned n[SHARE_KINDS];
    size_t bytes;
};

struct shares {
    struct map *by_name;
};

struct shares *shares_new(void)
{
    unsigned char seed[16];
    struct shares *t = xcalloc(1, sizeof(*t));
    random_bytes(seed, sizeof(seed));
    t->by_name = map_new(seed);
    return t;
}

void shares_free(struct shares *t)
{
    if (!t)
        return;
    struct share *s;
    for (size_t pos = 0; (s = map_next(t->by_name, &pos, NULL));)
        free(s);
    map_free(t->by_name);
    free(t);
}

static struct share *share_get(struct shares *t, const char *name)
{
    struct share *s = map_find(t->by_name, name);
    if (!s) {
        s = xcalloc(1, sizeof(*s));
        map_set(t->by_name, name, s);
    }
    return s;
}

static void share_forget_if_empty(struct shares *t, struct share *s, const char *name)
{
    for (size_t i = 0; i < SHARE_KINDS; i++)
        if (s->n[i])
            return;
    if (s->bytes)
        return;
    free(map_remove(t->by_name, name));
}

bool shares_has_room(const struct shares *t, enum share_kind kind, const char *name, unsigned most)
{
    const struct share *s = map_find(t->by_name, name);
    return !most || !s || s->n[kind] < most;
}

bool shares_take(struct shares *t, enum share_kind kind, const char *name, unsigned most)
{
    if (!shares_has_room(t, kind, name, most))
        return false;
    share_get(t, name)->n[kind]++;
    return true;
}

void shares_give(struct shares *t, enum share_kind kind, const char *name)
{
    struct share *s = map_find(t->by_name, name);
    s->n[kind]--;
    share_forget_if_empty(t, s, name);
}

bool shares_take_bytes(struct shares *t, const char *name, size_t n, size_t most)
{
    const struct share *have = map_find(t->by_name, name);
    if (most && n + (have ? have->bytes : 0) > most)
        return false;
    if (n)
        share_get(t, name)->bytes += n;
    return true;
}

void shares_give_bytes(struct shares *t, const char *name, size_t n)
{
    struct share *s = map_find(t->by_name, name);
    if (!n)
        return;
    s->bytes -= n;
    share_forget_if_empty(t, s, name);
}

void shares_address(const struct sockaddr *a,
                    const struct strv *exempt,
                    char ret[static SHARE_NAME_MAX])
{
    char text[LISTEN_ADDRESS_MAX];
    *ret = 0;
    listen_address(a, text);
    if (exempt && strv_has(exempt, text))
        return;
    if (strchr(text, ':')) {
        struct in6_addr at = ((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
        memset(&at.s6_addr[8], 0, 8);
        (void)inet_ntop(AF_INET6, &at, text, sizeof(text)); /* it fits */
    }
    text_copy_to(ret, SHARE_NAME_MAX, text);
}

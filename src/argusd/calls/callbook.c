/* SPDX-License-Identifier: Apache-2.0 */
/* callbook.c - buckets by service and user; see callbook.h. Kept in memory alone: after a start
 * everybody has a whole minute again. */
#include "argusd/calls/callbook.h"

#include <stdlib.h>

#include "base/digest/hash.h"
#include "base/map.h"

enum { SWEEP_AT = 1024 }; /* entries from which on those that are full again are forgotten */

struct call_share {
    struct callbook_limits limits; /* of the last request */
    double requests, tokens;       /* left */
    usec_t at;
};

struct callbook {
    struct map *by_name; /* "service\nuser" */
    size_t sweep_at;
};

struct callbook *callbook_new(void)
{
    unsigned char seed[16];
    struct callbook *b = xcalloc(1, sizeof(*b));
    random_bytes(seed, sizeof(seed));
    b->by_name = map_new(seed);
    b->sweep_at = SWEEP_AT;
    return b;
}

void callbook_free(struct callbook *b)
{
    if (!b)
        return;
    struct call_share *s;
    for (size_t pos = 0; (s = map_next(b->by_name, &pos, NULL));)
        free(s);
    map_free(b->by_name);
    free(b);
}

/* A limit that is raised, or is new, gives what it is more at once. */
static void share_fill(double *left, int64_t before, int64_t limit, usec_t span)
{
    *left += limit > before ? (double)(limit - before) : 0;
    *left += (double)limit * (double)span / (60.0 * (double)USEC_SEC);
    if (*left > (double)limit)
        *left = (double)limit;
}

/* Nobody can tell it from one that never was. */
static bool share_is_idle(const struct call_share *s, usec_t now)
{
    return now - s->at > 60 * USEC_SEC && s->tokens >= 0;
}

static void callbook_sweep(struct callbook *b, usec_t now)
{
    const char *key;
    struct call_share *s;
    bool found = true;
    while (found) { /* a map is not changed while it is walked */
        found = false;
        for (size_t pos = 0; !found && (s = map_next(b->by_name, &pos, &key));)
            found = share_is_idle(s, now);
        if (found)
            free(map_remove(b->by_name, key));
    }
    b->sweep_at = 2 * map_count(b->by_name) + SWEEP_AT;
}

static struct call_share *callbook_share(struct callbook *b, const char *service, const char *user)
{
    _cleanup_(freep) char *key = xasprintf("%s\n%s", service, user);
    return map_find(b->by_name, key);
}

static struct call_share *callbook_share_now(struct callbook *b,
                                             const char *service,
                                             const char *user,
                                             const struct callbook_limits *l,
                                             usec_t now)
{
    struct call_share *s = callbook_share(b, service, user);
    if (s) {
        share_fill(&s->requests, s->limits.requests, l->requests, now - s->at);
        share_fill(&s->tokens, s->limits.tokens, l->tokens, now - s->at);
        s->limits = *l;
        s->at = now;
        return s;
    }
    if (map_count(b->by_name) >= b->sweep_at)
        callbook_sweep(b, now);
    _cleanup_(freep) char *key = xasprintf("%s\n%s", service, user);
    s = xcalloc(1, sizeof(*s));
    *s = (struct call_share){
        .limits = *l, .requests = (double)l->requests, .tokens = (double)l->tokens, .at = now};
    (void)map_set(b->by_name, key, s); /* there was none */
    return s;
}

static usec_t share_wait(double missing, int64_t limit)
{
    return (usec_t)(missing * 60.0 * (double)USEC_SEC / (double)limit) + 1;
}

enum callbook_answer callbook_take(struct callbook *b,
                                   const char *service,
                                   const char *user,
                                   const struct callbook_limits *l,
                                   usec_t now,
                                   usec_t *ret_wait)
{
    if (!l->requests && !l->tokens)
        return CALLBOOK_GOES;
    struct call_share *s = callbook_share_now(b, service, user, l, now);
    if (l->requests && s->requests < 1) {
        *ret_wait = share_wait(1 - s->requests, l->requests);
        return CALLBOOK_REQUESTS;
    }
    if (l->tokens && s->tokens <= 0) {
        *ret_wait = share_wait(1 - s->tokens, l->tokens);
        return CALLBOOK_TOKENS;
    }
    s->requests -= l->requests ? 1 : 0;
    return CALLBOOK_GOES;
}

void callbook_add_tokens(struct callbook *b, const char *service, const char *user, int64_t tokens)
{
    struct call_share *s = callbook_share(b, service, user);
    if (s && s->limits.tokens && tokens > 0)
        s->tokens -= (double)tokens;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tokencount.c - finds `usage` at the end of an answer; see tokencount.h. The text is a stranger's:
 * whatever does not look like `"completion_tokens": 12` is no number of tokens. */
#include "argusd/calls/tokencount.h"

#include <string.h>

static const char EVENT[] = "\ndata:";

void tokencount_init(struct tokencount *t)
{
    t->n = 0;
    t->events = 0;
    t->at = 1; /* the first line begins without an end of another */
}

static void tokencount_events(struct tokencount *t, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] == EVENT[t->at])
            t->at++;
        else
            t->at = p[i] == '\n';
        if (!EVENT[t->at]) {
            t->events++;
            t->at = 0;
        }
    }
}

void tokencount_add(struct tokencount *t, const char *p, size_t n)
{
    tokencount_events(t, p, n);
    if (n > TOKENCOUNT_KEPT) {
        p += n - TOKENCOUNT_KEPT;
        n = TOKENCOUNT_KEPT;
    }
    if (t->n + n > sizeof(t->kept)) {
        memmove(t->kept, t->kept + t->n - TOKENCOUNT_KEPT, TOKENCOUNT_KEPT);
        t->n = TOKENCOUNT_KEPT;
    }
    memcpy(t->kept + t->n, p, n);
    t->n += n;
}

/* The last place of a text in the bytes; NULL: nowhere. */
static const char *tokencount_last(const char *p, size_t n, const char *text)
{
    const char *found = NULL;
    size_t len = strlen(text);
    for (const char *at = p; (at = memmem(at, n - (size_t)(at - p), text, len)); at += len)
        found = at;
    return found;
}

/* The number behind `"name":` in the bytes; -1: there is none. */
static int64_t tokencount_number(const char *p, size_t n, const char *name)
{
    enum { MOST = 1000000000 };
    const char *at = memmem(p, n, name, strlen(name)), *end = p + n;
    int64_t value = 0;
    if (!at)
        return -1;
    at += strlen(name);
    while (at < end && (*at == ' ' || *at == ':'))
        at++;
    if (at == end || *at < '0' || *at > '9')
        return -1;
    for (; at < end && *at >= '0' && *at <= '9' && value < MOST; at++)
        value = value * 10 + (*at - '0');
    return value;
}

bool tokencount_read(const struct tokencount *t, int64_t *ret_in, int64_t *ret_out)
{
    const char *usage = tokencount_last(t->kept, t->n, "\"usage\"");
    size_t n = usage ? t->n - (size_t)(usage - t->kept) : 0;
    int64_t in = usage ? tokencount_number(usage, n, "\"prompt_tokens\"") : -1;
    int64_t out = usage ? tokencount_number(usage, n, "\"completion_tokens\"") : -1;
    if (in >= 0) {
        *ret_in = in;
        *ret_out = out < 0 ? 0 : out; /* embeddings have none */
        return true;
    }
    *ret_in = -1;
    *ret_out = t->events ? t->events - 1 : -1;
    return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* hydra_near.c - what an override that Hydra cannot read was meant to be; see hydra_read.h. Each
 * guess is read by hydra_read() and shown only if it has no fault. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "core/spec/hydra_read.h"

enum { TEXT_MAX = 64 * 1024 };
static const char BLANKS[] = " \t";

static bool hydra_is_fine(const char *override)
{
    struct hydra_value v;
    bool fine = hydra_read(override, &v) == HYDRA_FINE;
    hydra_value_release(&v);
    return fine;
}

/* Takes the text: it comes back if Hydra reads it. */
static char *hydra_take_if_fine(char *override)
{
    if (override && hydra_is_fine(override))
        return override;
    free(override);
    return NULL;
}

/* The value as one text: a quote gets a backslash, and those before it are doubled. */
static char *hydra_quote_value(const char *key, const char *value)
{
    struct buf out = BUF_INIT(TEXT_MAX);
    const char *end = value + strlen(value);
    while (end > value && strchr(BLANKS, end[-1]))
        end--;
    (void)buf_adds(&out, key); /* failed is looked at below */
    (void)buf_addc(&out, '\'');
    for (const char *s = value; s < end; s++) {
        size_t k = strspn(s, "\\");
        bool stops = s + k >= end || s[k] == '\'';
        for (size_t i = 0; i < (stops ? 2 * k : k); i++)
            (void)buf_addc(&out, '\\');
        s += k;
        if (s >= end)
            break;
        if (*s == '\'')
            (void)buf_addc(&out, '\\');
        (void)buf_addc(&out, *s);
    }
    (void)buf_addc(&out, '\'');
    return buf_take_whole(&out);
}

/* {"a": 1} as others write it: Hydra's keys have no quotes. */
static char *hydra_bare_keys(const char *key, const char *value)
{
    struct buf out = BUF_INIT(TEXT_MAX);
    (void)buf_adds(&out, key); /* failed is looked at below */
    for (const char *s = value; *s;) {
        size_t n = hydra_quoted(s);
        bool is_key = n > 2 && s[n + strspn(s + n, BLANKS)] == ':';
        if (n)
            (void)buf_add(&out, s + (is_key ? 1 : 0), is_key ? n - 2 : n);
        else
            (void)buf_addc(&out, *s);
        s += n ? n : 1;
    }
    return buf_take_whole(&out);
}

/* Without what stands around the key and '='. NULL: there is no '='. */
static char *hydra_trimmed_key(const char *override)
{
    const char *equals = strchr(override, '=');
    override += strspn(override, BLANKS);
    size_t n = equals && equals > override ? (size_t)(equals - override) : 0;
    while (n && strchr(BLANKS, override[n - 1]))
        n--;
    return n ? xasprintf("%.*s=", (int)n, override) : NULL;
}

char *hydra_nearest(const char *override)
{
    _cleanup_(freep) char *key = hydra_trimmed_key(override);
    if (!key)
        return NULL;
    const char *value = strchr(override, '=') + 1;
    value += strspn(value, BLANKS);
    char *near = hydra_take_if_fine(xasprintf("%s%s", key, value));
    if (!near && *value == '[')
        near = hydra_take_if_fine(xasprintf("%s%s]", key, value));
    if (!near && *value == '{')
        near = hydra_take_if_fine(xasprintf("%s%s}", key, value));
    if (!near && strchr("[{", *value))
        near = hydra_take_if_fine(hydra_bare_keys(key, value));
    if (!near && strchr(value, ','))
        near = hydra_take_if_fine(xasprintf("%s[%s]", key, value));
    return near ? near : hydra_take_if_fine(hydra_quote_value(key, value));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* clean.c - one pass over the bytes that only knows "inside a string or not";
 * what else is wrong is left for the JSON reader to refuse. */
#include "ray/clean.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/str.h"

#define REPLACEMENT "\\ufffd"

struct clean {
    const unsigned char *s;
    size_t len;
    size_t at;
    size_t values;   /* separators seen so far: about as many values */
    struct buf *out; /* its `failed` tells of overflow */
};

/* The value of "\uXXXX" at offset i, -1 if that is not what stands there. */
static int unicode_escape_at(const struct clean *c, size_t i)
{
    if (i + 6 > c->len || c->s[i] != '\\' || c->s[i + 1] != 'u')
        return -1;
    int v = 0;
    for (size_t k = i + 2; k < i + 6; k++) {
        unsigned char d = c->s[k];
        int digit = d >= '0' && d <= '9'   ? d - '0'
                    : d >= 'a' && d <= 'f' ? d - 'a' + 10
                    : d >= 'A' && d <= 'F' ? d - 'A' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        v = v * 16 + digit;
    }
    return v;
}

static void ray_clean_copy(struct clean *c, size_t n)
{
    if (n > c->len - c->at)
        n = c->len - c->at;
    (void)buf_add(c->out, c->s + c->at, n); /* overflow: out->failed */
    c->at += n;
}

static void ray_clean_replace(struct clean *c, size_t n, const char *with)
{
    (void)buf_adds(c->out, with); /* overflow: out->failed */
    c->at += n;
}

static void clean_escape(struct clean *c)
{
    int v = unicode_escape_at(c, c->at);
    if (v < 0) {
        /* Not "\uXXXX": keep the backslash with what it escapes, above all a quote. */
        bool plain = c->at + 1 < c->len && c->s[c->at + 1] < 0x80 && c->s[c->at + 1] >= 0x20;
        ray_clean_copy(c, plain ? 2 : 1);
        return;
    }
    int next = v >= 0xd800 && v <= 0xdbff ? unicode_escape_at(c, c->at + 6) : -1;
    if (next >= 0xdc00 && next <= 0xdfff)
        ray_clean_copy(c, 12);
    else if (v == 0 || (v >= 0xd800 && v <= 0xdfff))
        ray_clean_replace(c, 6, REPLACEMENT);
    else
        ray_clean_copy(c, 6);
}

/* at stands behind the opening quote; leaves it behind the closing one. */
static void clean_string(struct clean *c)
{
    while (c->at < c->len && !c->out->failed) {
        unsigned char b = c->s[c->at];
        size_t n = str_utf8_length(c->s + c->at, c->len - c->at);
        if (b == '\\') {
            clean_escape(c);
        } else if (b == '"') {
            ray_clean_copy(c, 1);
            return;
        } else if (b < 0x20) {
            ray_clean_replace(c, 1, " ");
        } else if (n) {
            ray_clean_copy(c, n);
        } else {
            ray_clean_replace(c, 1, REPLACEMENT);
        }
    }
}

static bool at_word(const struct clean *c, const char *word)
{
    size_t n = strlen(word);
    return c->len - c->at >= n && memcmp(c->s + c->at, word, n) == 0;
}

static void clean_outside(struct clean *c)
{
    if (at_word(c, "\"")) {
        ray_clean_copy(c, 1);
        clean_string(c);
    } else if (at_word(c, "NaN")) {
        ray_clean_replace(c, 3, "null");
    } else if (at_word(c, "-Infinity")) {
        ray_clean_replace(c, 9, "null");
    } else if (at_word(c, "Infinity")) {
        ray_clean_replace(c, 8, "null");
    } else {
        c->values += strchr("{[,:", c->s[c->at]) != NULL;
        ray_clean_copy(c, 1);
    }
}

int clean_json(const char *text, size_t len, size_t max_values, struct buf *out)
{
    struct clean c = {.s = (const unsigned char *)text, .len = len, .out = out};
    while (c.at < c.len && !out->failed) {
        clean_outside(&c);
        if (c.values > max_values)
            return -E2BIG;
    }
    return out->failed ? -EMSGSIZE : 0;
}

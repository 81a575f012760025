/* SPDX-License-Identifier: Apache-2.0 */
/* quoted.c - decodes YAML scalars in single and double quotes; see quoted.h.
 *
 * libfyaml scans them correctly, but fy_token_get_text() of 0.7.12 gives wrong text for several
 * escapes in a row ('''' in single quotes, a backslash at the end of a line), cuts the tail off
 * instead, and leaks once there are more than a few dozen.
 *
 * Blanks are held back until it is known what follows: before a line break they are no part of
 * the text. Escaped ones always are. */
#include "base/doc/quoted.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

struct quoted {
    const char *s;
    size_t n;
    size_t at;
    size_t blanks; /* how many bytes before `at` are blanks that are held back */
    struct buf *out;
};

/* What a letter after the backslash stands for, and how many hex digits others ask for. */
static const struct {
    char letter;
    char digits;
    char len;
    char text[4];
} escapes[] = {
    {'0', 0, 1, {0}},
    {'a', 0, 1, "\a"},
    {'b', 0, 1, "\b"},
    {'t', 0, 1, "\t"},
    {'\t', 0, 1, "\t"},
    {'n', 0, 1, "\n"},
    {'v', 0, 1, "\v"},
    {'f', 0, 1, "\f"},
    {'r', 0, 1, "\r"},
    {'e', 0, 1, "\x1b"},
    {' ', 0, 1, " "},
    {'"', 0, 1, "\""},
    {'/', 0, 1, "/"},
    {'\\', 0, 1, "\\"},
    {'N', 0, 2, "\xc2\x85"},
    {'_', 0, 2, "\xc2\xa0"},
    {'L', 0, 3, "\xe2\x80\xa8"},
    {'P', 0, 3, "\xe2\x80\xa9"},
    {'x', 2, 0, {0}},
    {'u', 4, 0, {0}},
    {'U', 8, 0, {0}},
};

static size_t break_length(const struct quoted *q)
{
    if (q->at == q->n)
        return 0;
    if (q->s[q->at] == '\r')
        return q->at + 1 < q->n && q->s[q->at + 1] == '\n' ? 2 : 1;
    return q->s[q->at] == '\n';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Give what was held back, as text goes on. */
static void keep_blanks(struct quoted *q)
{
    (void)buf_add(q->out, q->s + q->at - q->blanks, q->blanks); /* overflow: out->failed */
    q->blanks = 0;
}

/* At a line break: one alone becomes a blank (nothing when it was escaped), of several all but
 * the first stay. */
static void quoted_fold(struct quoted *q, bool escaped)
{
    size_t breaks = 0;
    q->blanks = 0;
    for (size_t len; (len = break_length(q)) > 0; breaks++) {
        q->at += len;
        while (q->at < q->n && is_blank(q->s[q->at]))
            q->at++;
    }
    if (breaks == 1 && !escaped)
        (void)buf_addc(q->out, ' '); /* overflow: out->failed, and so below */
    for (size_t i = 1; i < breaks; i++)
        (void)buf_addc(q->out, '\n');
}

static int quoted_hex_digit(char c)
{
    const char digits[] = "0123456789abcdefABCDEF", *p = c ? strchr(digits, c) : NULL;
    if (!p)
        return -EINVAL;
    return (int)(p - digits) - (p - digits >= 16 ? 6 : 0);
}

static int quoted_read_hex(struct quoted *q, int digits, uint32_t *ret)
{
    uint32_t v = 0;
    for (int i = 0; i < digits; i++) {
        int d = q->at < q->n ? quoted_hex_digit(q->s[q->at++]) : -EINVAL;
        if (d < 0)
            return -EINVAL;
        v = v << 4 | (uint32_t)d;
    }
    *ret = v;
    return 0;
}

/* After \x, \u or \U. A high surrogate must be followed by \u and a low one, as JSON writes
 * characters beyond U+FFFF. */
static int add_numbered(struct quoted *q, int digits)
{
    uint32_t c, low;
    if (quoted_read_hex(q, digits, &c) < 0)
        return -EINVAL;
    if (c >= 0xd800 && c < 0xdc00) {
        if (q->n - q->at < 6 || q->s[q->at] != '\\' || q->s[q->at + 1] != 'u')
            return -EINVAL;
        q->at += 2;
        if (quoted_read_hex(q, 4, &low) < 0 || low < 0xdc00 || low > 0xdfff)
            return -EINVAL;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    } else if ((c >= 0xdc00 && c < 0xe000) || c > 0x10ffff) {
        return -EINVAL;
    }
    (void)buf_add_utf8(q->out, c); /* overflow: out->failed */
    return 0;
}

/* Behind a backslash. */
static int quoted_add_escape(struct quoted *q)
{
    if (break_length(q)) {
        quoted_fold(q, true);
        return 0;
    }
    if (q->at == q->n)
        return -EINVAL;
    char letter = q->s[q->at++];
    for (size_t i = 0; i < array_len(escapes); i++) {
        if (escapes[i].letter != letter)
            continue;
        if (escapes[i].digits)
            return add_numbered(q, escapes[i].digits);
        (void)buf_add(q->out, escapes[i].text, (size_t)escapes[i].len); /* overflow: as above */
        return 0;
    }
    return -EINVAL;
}

static int decode_one(struct quoted *q, char quote)
{
    char c = q->s[q->at];
    if (is_blank(c)) {
        q->at++;
        q->blanks++;
        return 0;
    }
    if (break_length(q)) {
        quoted_fold(q, false);
        return 0;
    }
    keep_blanks(q);
    q->at++;
    if (quote == '"' && c == '\\')
        return quoted_add_escape(q);
    if (c == quote && (q->at == q->n || q->s[q->at++] != quote || quote == '"'))
        return -EINVAL;
    (void)buf_addc(q->out, c); /* overflow: seen at the end */
    return 0;
}

int quoted_decode(const char *raw, size_t n, char quote, struct buf *out)
{
    struct quoted q = {.s = raw, .n = n, .out = out};
    while (q.at < n)
        if (decode_one(&q, quote) < 0)
            return -EINVAL;
    keep_blanks(&q);
    return out->failed ? -EMSGSIZE : 0;
}

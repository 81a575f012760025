/* SPDX-License-Identifier: Apache-2.0 */
/* metric_json.c - see metric_json.h. It goes once over the text, forward, and recurses only as
 * deep as METRIC_JSON_DEPTH. */
#define _GNU_SOURCE
#include "core/metric/metric_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/str.h"

enum { NUMBER_MAX = 512, NAME_MAX_BYTES = 1024 };

struct json_scan {
    const char *p, *end;
    struct buf name; /* "outer/inner" of the member that is read */
    metric_json_fn each;
    void *arg;
};

static void skip_blanks(struct json_scan *s)
{
    while (s->p < s->end && strchr(" \t\r\n", *s->p) && *s->p)
        s->p++;
}

static bool is_next(struct json_scan *s, char c)
{
    skip_blanks(s);
    return s->p < s->end && *s->p == c;
}

static bool take(struct json_scan *s, char c)
{
    bool is = is_next(s, c);
    s->p += is;
    return is;
}

/* ---- keys ---- */

static bool read_hex4(const char *p, const char *end, unsigned *ret)
{
    unsigned v = 0;
    if (end - p < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        const char *digits = "0123456789abcdef", *at = memchr(digits, p[i] | 0x20, 16);
        if (!at || (p[i] < '0'))
            return false;
        v = v * 16 + (unsigned)(at - digits);
    }
    *ret = v;
    return true;
}

/* Behind "\u": one character, of two halves where the second one follows. */
static void add_escaped(struct json_scan *s, struct buf *out)
{
    unsigned c = 0, low = 0;
    if (!read_hex4(s->p, s->end, &c)) {
        (void)buf_addc(out, 'u');
        return;
    }
    s->p += 4;
    bool is_half = c >= 0xd800 && c < 0xe000;
    if (c >= 0xd800 && c < 0xdc00 && s->end - s->p >= 6 && s->p[0] == '\\' && s->p[1] == 'u' &&
        read_hex4(s->p + 2, s->end, &low) && low >= 0xdc00 && low < 0xe000) {
        s->p += 6;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        is_half = false;
    }
    /* overflow: a name that long is left out */
    (void)buf_add_utf8(out, is_half ? 0xfffd : c < ' ' ? ' ' : c);
}

/* From behind the quote to behind the closing one; out may be NULL. */
static bool read_text(struct json_scan *s, struct buf *out)
{
    while (s->p < s->end && *s->p != '"') {
        char c = *s->p++;
        if (c == '\\' && s->p < s->end) {
            c = *s->p++;
            if (c == 'u' && out) {
                add_escaped(s, out);
                continue;
            }
            c = strchr("bfnrt", c) ? ' ' : c;
        }
        if (out)
            (void)buf_addc(out, c); /* overflow: a name that long is left out */
    }
    if (s->p >= s->end)
        return false;
    s->p++;
    return true;
}

/* ---- values ---- */

/* To the comma or bracket that ends the value which begins here, over texts and what it nests. */
static bool skip_value(struct json_scan *s)
{
    size_t depth = 0;
    for (; s->p < s->end; s->p++) {
        switch (*s->p) { /* most bytes of a record come by here: no call for each */
        case '"':
            s->p++;
            if (!read_text(s, NULL))
                return false;
            s->p--;
            break;
        case '{':
        case '[':
        case '(':
            depth++;
            break;
        case ')':
            depth -= depth > 0;
            break;
        case '}':
        case ']':
            if (!depth)
                return true;
            depth--;
            break;
        case ',':
            if (!depth)
                return true;
            break;
        default:
            break;
        }
    }
    return false;
}

static bool is_number(const char *text, size_t n)
{
    size_t from = *text == '-' || *text == '+';
    return n > from && strspn(text + from, "0123456789.eE+-") == n - from &&
           strchr("0123456789.", text[from]);
}

static bool read_word(const char *text, size_t n, double *ret)
{
    static const struct {
        const char *word;
        double value;
    } words[] = {{"true", 1},
                 {"false", 0},
                 {"null", NAN},
                 {"nan", NAN},
                 {"-nan", NAN},
                 {"infinity", INFINITY},
                 {"-infinity", -INFINITY},
                 {"inf", INFINITY},
                 {"-inf", -INFINITY}};
    for (size_t i = 0; i < array_len(words); i++)
        if (!strcasecmp(text, words[i].word)) {
            *ret = words[i].value;
            return true;
        }
    if (!is_number(text, n))
        return false;
    char *end = NULL;
    *ret = strtod(text, &end); /* what is too large is infinite */
    return *end == 0;
}

static void tell(struct json_scan *s, struct metric_json_value v)
{
    v.name = buf_str(&s->name);
    v.n = s->name.len;
    v.is_unread = v.is_unread || s->name.failed;
    s->each(&v, s->arg);
}

static bool read_object(struct json_scan *s, int depth);

/* On from a comma within what is no JSON to one before a key, or to the object's end. */
static bool skip_to_key(struct json_scan *s)
{
    while (s->p < s->end && *s->p == ',') {
        struct json_scan ahead = {.p = s->p + 1, .end = s->end};
        if (is_next(&ahead, '"') || is_next(&ahead, '}'))
            break;
        s->p++;
        if (!skip_value(s))
            return false;
    }
    return true;
}

static bool read_scalar(struct json_scan *s, int depth)
{
    char text[NUMBER_MAX];
    const char *begin = s->p;
    if (!skip_value(s))
        return false;
    size_t n = (size_t)(s->p - begin);
    while (n && strchr(" \t\r\n", begin[n - 1]) && begin[n - 1])
        n--;
    struct metric_json_value v = {.depth = depth, .is_unread = true};
    if (n && n < sizeof(text)) {
        memcpy(text, begin, n);
        text[n] = 0;
        v.is_unread = !read_word(text, n, &v.value);
    }
    tell(s, v);
    return !v.is_unread || skip_to_key(s);
}

static bool read_value(struct json_scan *s, int depth)
{
    skip_blanks(s);
    if (s->p >= s->end)
        return false;
    if (*s->p == '"' || *s->p == '[')
        return skip_value(s);
    if (*s->p != '{')
        return read_scalar(s, depth);
    if (depth >= METRIC_JSON_DEPTH) {
        tell(s, (struct metric_json_value){.depth = depth, .is_unread = true});
        return skip_value(s);
    }
    tell(s, (struct metric_json_value){.depth = depth, .is_object = true});
    return read_object(s, depth + 1);
}

static bool read_member(struct json_scan *s, int depth)
{
    size_t outer = s->name.len;
    bool failed = s->name.failed;
    if (!take(s, '"'))
        return false;
    if (outer)
        (void)buf_addc(&s->name, '/'); /* overflow: a name that long is left out */
    if (!read_text(s, &s->name) || !take(s, ':') || !read_value(s, depth))
        return false;
    s->name.len = outer;
    s->name.failed = failed;
    return true;
}

static bool read_object(struct json_scan *s, int depth)
{
    if (!take(s, '{'))
        return false;
    if (take(s, '}'))
        return true;
    do {
        if (is_next(s, '}')) /* a comma behind the last one, as programs write it by hand */
            break;
        if (!read_member(s, depth))
            return false;
        skip_blanks(s);
    } while (take(s, ','));
    return take(s, '}');
}

size_t metric_json_read(const char *text, size_t n, metric_json_fn each, void *arg)
{
    struct json_scan s = {
        .p = text, .end = text + n, .name = BUF_INIT(NAME_MAX_BYTES), .each = each, .arg = arg};
    bool is_whole = read_object(&s, 0);
    buf_release(&s.name);
    return is_whole ? (size_t)(s.p - text) : 0;
}

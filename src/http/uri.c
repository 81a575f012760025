/* SPDX-License-Identifier: Apache-2.0 */
/* uri.c - decodes and checks request targets; see uri.h. Everything works on NUL-terminated text
 * that the caller has already bounded; decoding never makes it longer, so that it can be done in
 * place. */
#include "http/uri.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/message.h"
#include "base/str.h"

bool uri_is_clean(const char *s)
{
    for (; *s; s++)
        if (*s <= ' ' || *s >= 0x7f || *s == '#')
            return false;
    return true;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static bool uri_is_plain_text(const char *s)
{
    const unsigned char *p = (const unsigned char *)s;
    while (*p) {
        size_t n = str_utf8_length(p, strnlen((const char *)p, 4));
        if (!n || *p < 0x20 || *p == 0x7f)
            return false;
        p += n;
    }
    return true;
}

int uri_decode(char *s, bool is_query, struct err *err)
{
    char *to = s;
    for (const char *p = s; *p; p++) {
        if (*p == '+' && is_query) {
            *to++ = ' ';
            continue;
        }
        if (*p != '%') {
            *to++ = *p;
            continue;
        }
        int high = hex_value(p[1]);
        int low = high < 0 ? -1 : hex_value(p[2]);
        if (low < 0)
            return message_refuse(err, ERR_BAD_REQUEST, "bad_escape",
                                  MESSAGE_ARGS(MESSAGE_STR("text", p)));
        if (!high && !low)
            return message_refuse(err, ERR_BAD_REQUEST, "address_nul", MESSAGE_NO_ARGS);
        *to++ = (char)(high << 4 | low);
        p += 2;
    }
    *to = 0;
    if (!uri_is_plain_text(s))
        return message_refuse(err, ERR_BAD_REQUEST, "address_control", MESSAGE_NO_ARGS);
    return 0;
}

int uri_split_query(char *s, struct uri_pair *ret, size_t max, struct err *err)
{
    size_t n = 0;
    for (char *next; s && *s; s = next) {
        next = strchr(s, '&');
        if (next)
            *next++ = 0;
        if (!*s)
            continue;
        if (n == max)
            return message_refuse(err, ERR_BAD_REQUEST, "too_many_queries",
                                  MESSAGE_ARGS(MESSAGE_NUM("most", max)));
        char *value = strchr(s, '=');
        if (value)
            *value++ = 0;
        int r = uri_decode(s, true, err);
        if (r == 0 && value)
            r = uri_decode(value, true, err);
        if (r < 0)
            return r;
        ret[n++] = (struct uri_pair){.name = s, .value = value ? value : ""};
    }
    return (int)n;
}

static const char *skip_space(const char *s)
{
    return s + strspn(s, " \t");
}

/* The part of an Accept list up to ',' refuses itself by q=0 (0, 0.0, 0.000). */
static bool has_zero_quality(const char *s, const char *end)
{
    while (s < end && (s = memchr(s, ';', (size_t)(end - s)))) {
        s = skip_space(s + 1);
        if (strncasecmp(s, "q=", 2) == 0)
            return strtod(s + 2, NULL) <= 0;
    }
    return false;
}

bool accept_allows(const char *header, const char *media_type)
{
    size_t slash = strcspn(media_type, "/") + 1;
    int best = -1; /* how exactly the best part names the type: 0 all, 1 its family, 2 itself */
    bool allowed = false;
    for (const char *s = header; *s;) {
        s = skip_space(s);
        const char *end = s + strcspn(s, ",");
        size_t n = strcspn(s, ";, \t");
        int rank = -1;
        if (n == 3 && !strncmp(s, "*/*", 3))
            rank = 0;
        else if (n == slash + 1 && s[slash] == '*' && !strncasecmp(s, media_type, slash))
            rank = 1;
        else if (n == strlen(media_type) && !strncasecmp(s, media_type, n))
            rank = 2;
        if (rank > best) {
            best = rank;
            allowed = !has_zero_quality(s, end);
        }
        s = *end ? end + 1 : end;
    }
    return allowed;
}

bool etag_list_has(const char *header, const char *etag)
{
    const char *s = skip_space(header);
    if (*s == '*')
        return true;
    size_t n = strlen(etag);
    while ((s = strchr(s, '"'))) {
        const char *end = strchr(++s, '"');
        if (!end)
            return false;
        if ((size_t)(end - s) == n && !memcmp(s, etag, n))
            return true;
        s = end + 1;
    }
    return false;
}

/* Digits only; a number that does not fit is the largest one. */
static const char *uri_take_number(const char *s, uint64_t *ret)
{
    uint64_t n = 0;
    for (; *s >= '0' && *s <= '9'; s++) {
        unsigned digit = (unsigned)(*s - '0');
        n = n > (UINT64_MAX - digit) / 10 ? UINT64_MAX : n * 10 + digit;
    }
    *ret = n;
    return s;
}

static int last_bytes(uint64_t size, uint64_t wanted, uint64_t *ret_from, uint64_t *ret_n)
{
    if (!size || !wanted)
        return ERR_RANGE;
    *ret_n = wanted < size ? wanted : size;
    *ret_from = size - *ret_n;
    return 1;
}

int range_parse(const char *header, uint64_t size, uint64_t *ret_from, uint64_t *ret_n)
{
    uint64_t from = 0, to = 0;
    if (strncasecmp(header, "bytes=", 6) != 0)
        return 0;
    const char *first = skip_space(header + 6);
    const char *dash = uri_take_number(first, &from);
    if (*dash != '-')
        return 0;
    const char *end = uri_take_number(dash + 1, &to);
    bool has_from = dash > first, has_to = end > dash + 1;
    if (*skip_space(end) || (!has_from && !has_to))
        return 0;
    if (!has_from)
        return last_bytes(size, to, ret_from, ret_n);
    if (has_to && to < from)
        return 0;
    if (from >= size)
        return ERR_RANGE;
    *ret_from = from;
    *ret_n = has_to && to < size ? to - from + 1 : size - from;
    return 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* buf.c - growing bytes with a ceiling; see buf.h.
 * Invariant: len <= max, and data[len] == 0 whenever data is not NULL. */
#include "base/buf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

void buf_init(struct buf *b, size_t max)
{
    *b = BUF_INIT(max);
}

void buf_release(struct buf *b)
{
    free(b->data);
    *b = BUF_INIT(b->max);
}

void buf_reset(struct buf *b)
{
    b->len = 0;
    b->failed = false;
    if (b->data)
        b->data[0] = 0;
}

int buf_grow(struct buf *b, size_t n)
{
    if (b->failed || n > b->max || b->len > b->max - n) {
        b->failed = true;
        return -EMSGSIZE;
    }
    size_t need = b->len + n + 1;
    if (need <= b->cap)
        return 0;
    size_t cap = b->cap ? b->cap : 64;
    while (cap < need)
        cap *= 2;
    b->data = xrealloc(b->data, cap, 1);
    b->cap = cap;
    return 0;
}

int buf_add(struct buf *b, const void *p, size_t n)
{
    char *room = buf_room(b, n);
    if (!room)
        return -EMSGSIZE;
    if (n)
        memcpy(room, p, n);
    buf_wrote(b, n);
    return 0;
}

int buf_adds(struct buf *b, const char *s)
{
    return buf_add(b, s, strlen(s));
}

void buf_add_escaped(struct buf *b, const char *text, const char *open, enum buf_hex hex)
{
    const char *digits = hex == BUF_HEX_UPPER ? "0123456789ABCDEF" : "0123456789abcdef";
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     strchr(open, c);
        const char escaped[] = {'%', digits[c >> 4], digits[c & 15]};
        (void)buf_add(b, plain ? text : escaped, plain ? 1 : sizeof(escaped)); /* keeps `failed` */
    }
}

void buf_add_url(struct buf *b, const char *text)
{
    buf_add_escaped(b, text, "-._~", BUF_HEX_UPPER);
}

void buf_add_csv(struct buf *b, const char *text)
{
    /* Overflow: b->failed, here and below. */
    (void)buf_adds(b, text_is_formula(text) ? "\"'" : "\"");
    for (; *text; text++) {
        if (*text == '"')
            (void)buf_addc(b, '"');
        (void)buf_addc(b, *text);
    }
    (void)buf_addc(b, '"');
}

int buf_add_utf8(struct buf *b, uint32_t c)
{
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    char text[4];
    size_t len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--, c >>= 6)
        text[i] = (char)(0x80 | (c & 0x3f));
    text[0] = (char)(lead[len] | c);
    return buf_add(b, text, len);
}

/* Decimal digits from the right; room for the sign and 19 of them. */
int buf_add_int(struct buf *b, int64_t value)
{
    char text[24], *p = text + sizeof(text);
    uint64_t u = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do
        *--p = (char)('0' + u % 10);
    while (u /= 10);
    if (value < 0)
        *--p = '-';
    return buf_add(b, p, (size_t)(text + sizeof(text) - p));
}

int buf_vaddf(struct buf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    /* Most of what is written fits what is there: print at once, measure on the way. */
    size_t room = b->data && !b->failed ? b->cap - b->len : 0;
    int n = vsnprintf(room ? b->data + b->len : NULL, room, fmt, ap);
    int r = n < 0 ? -EMSGSIZE : buf_grow(b, (size_t)n);
    if (r == 0) {
        if ((size_t)n >= room)
            text_vprintf_to(b->data + b->len, (size_t)n + 1, fmt, again); /* measured above */
        b->len += (size_t)n;
    } else if (room) {
        b->data[b->len] = 0; /* as it was */
    }
    va_end(again);
    return r;
}

int buf_addf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int r = buf_vaddf(b, fmt, ap);
    va_end(ap);
    return r;
}

void buf_consume(struct buf *b, size_t n)
{
    if (!n)
        return;
    memmove(b->data, b->data + n, b->len - n + 1);
    b->len -= n;
}

const char *buf_str(const struct buf *b)
{
    return b->data ? b->data : "";
}

char *buf_take(struct buf *b)
{
    char *s = b->data ? b->data : xstrdup("");
    *b = BUF_INIT(b->max);
    return s;
}

char *buf_take_whole(struct buf *b)
{
    if (!b->failed)
        return buf_take(b);
    buf_release(b);
    return NULL;
}

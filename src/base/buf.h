/* SPDX-License-Identifier: Apache-2.0 */
/* buf.h - bytes that grow up to a ceiling chosen by their owner.
 *
 * Everything that a peer or a file can size lives in one. An append that would
 * pass the ceiling returns -EMSGSIZE, leaves the buffer as it was and sets
 * `failed`, which stays until buf_reset(): a writer may append blindly and look
 * once at the end. data is always NUL-terminated once anything was appended. */
#pragma once
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

struct buf {
    char *data; /* NULL while nothing was ever appended: use buf_str() */
    size_t len;
    size_t cap;
    size_t max; /* ceiling of len, in bytes */
    bool failed;
};

#define BUF_INIT(ceiling) ((struct buf){.max = (ceiling)})

void buf_init(struct buf *b, size_t max);
void buf_release(struct buf *b); /* frees; usable again with the same ceiling */
void buf_reset(struct buf *b);   /* len = 0, failed = false, keeps the memory */

/* 0 or -EMSGSIZE. */
int buf_add(struct buf *b, const void *p, size_t n);
int buf_adds(struct buf *b, const char *s);
/* Text with all bytes but letters, digits and those of `open` as %XX. Past the ceiling b->failed is
 * set. */
enum buf_hex { BUF_HEX_UPPER, BUF_HEX_LOWER };
void buf_add_escaped(struct buf *b, const char *text, const char *open, enum buf_hex hex);
/* Text as one segment of a URL's path, or a value of its query: all but letters, digits and "-._~"
 * as %XX (RFC 3986). Past the ceiling b->failed is set. */
void buf_add_url(struct buf *b, const char *text);
/* As a field of CSV, in quotes; what a table would take for a formula has ' before it. Past the
 * ceiling b->failed is set. */
void buf_add_csv(struct buf *b, const char *text);
static inline int buf_addc(struct buf *b, char c);
/* A character up to U+10FFFF as UTF-8. */
int buf_add_utf8(struct buf *b, uint32_t c);
/* Room for n bytes at the end, or NULL as where buf_add() fails. What is written there counts once
 * buf_wrote() says how many bytes it is: at most n. */
static inline char *buf_room(struct buf *b, size_t n);
static inline void buf_wrote(struct buf *b, size_t n);
int buf_add_int(struct buf *b, int64_t value); /* decimal; cheaper than buf_addf() */
int buf_addf(struct buf *b, const char *fmt, ...) printf_like(2, 3);
int buf_vaddf(struct buf *b, const char *fmt, va_list ap) printf_like(2, 0);

/* Drop the first n (<= len) bytes. */
void buf_consume(struct buf *b, size_t n);

/* The text so far, "" when empty. Borrowed until the next append. */
const char *buf_str(const struct buf *b);
/* The heap string moves to the caller ("" when empty); the buffer is empty again. */
char *buf_take(struct buf *b);
/* The same of a whole text: NULL if anything did not fit, and the buffer is empty all the same. */
char *buf_take_whole(struct buf *b);

/* Makes room for n bytes more; 0 or -EMSGSIZE. For the functions below. */
int buf_grow(struct buf *b, size_t n);

static inline char *buf_room(struct buf *b, size_t n)
{
    bool fits = n < b->cap - b->len && n <= b->max - b->len && !b->failed;
    return fits || buf_grow(b, n) == 0 ? b->data + b->len : NULL;
}

static inline void buf_wrote(struct buf *b, size_t n)
{
    b->len += n;
    b->data[b->len] = 0;
}

static inline int buf_addc(struct buf *b, char c)
{
    char *p = buf_room(b, 1);
    if (!p)
        return -EMSGSIZE;
    *p = c;
    buf_wrote(b, 1);
    return 0;
}

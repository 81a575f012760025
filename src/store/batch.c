/* SPDX-License-Identifier: Apache-2.0 */
/* batch.c - one growing block; an item is its kind, then 8 bytes (a number or a
 * length), then the bytes of a text or blob. Nothing is aligned: everything is
 * copied in and out.
 *
 * There is no ceiling here: what a peer can size was bounded before it came, and
 * while commits fail argusd refuses new work. */
#include "store/batch.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH_KEEP_BYTES = 1 << 20, BATCH_FIRST_BYTES = 1 << 14 };

void batch_release(struct batch *b)
{
    free(b->data);
    *b = (struct batch){0};
}

void batch_reset(struct batch *b)
{
    if (b->cap > BATCH_KEEP_BYTES)
        batch_release(b);
    b->len = 0;
}

void batch_swap(struct batch *a, struct batch *b)
{
    struct batch t = *a;
    *a = *b;
    *b = t;
}

static void batch_grow(struct batch *b, size_t n)
{
    size_t cap = b->cap ? b->cap : BATCH_FIRST_BYTES;
    while (cap - b->len < n)
        cap *= 2;
    b->data = xrealloc(b->data, cap, 1);
    b->cap = cap;
}

/* Room for n bytes at the end, which are counted already. */
static char *batch_room(struct batch *b, size_t n)
{
    if (b->cap - b->len < n)
        batch_grow(b, n);
    b->len += n;
    return b->data + b->len - n;
}

void batch_append(struct batch *dst, struct batch *src)
{
    if (!dst->len)
        batch_swap(dst, src);
    else if (src->len)
        memcpy(batch_room(dst, src->len), src->data, src->len);
    if (src->number > dst->number)
        dst->number = src->number;
    batch_reset(src);
}

static char *head(struct batch *b, enum batch_kind kind, const void *word, size_t n)
{
    char *p = batch_room(b, 1 + sizeof(uint64_t) + n);
    *p = (char)kind;
    memcpy(p + 1, word, sizeof(uint64_t));
    return p + 1 + sizeof(uint64_t);
}

void batch_begin(struct batch *b, unsigned statement)
{
    int64_t v = statement;
    (void)head(b, BATCH_BEGIN, &v, 0);
}

void batch_int(struct batch *b, int64_t v)
{
    (void)head(b, BATCH_INT, &v, 0);
}

void batch_real(struct batch *b, double v)
{
    (void)head(b, BATCH_REAL, &v, 0);
}

void batch_null(struct batch *b)
{
    (void)head(b, BATCH_NULL, &(uint64_t){0}, 0);
}

void batch_text(struct batch *b, const char *s)
{
    if (!s) {
        batch_null(b);
        return;
    }
    uint64_t n = strlen(s);
    memcpy(head(b, BATCH_TEXT, &n, n), s, n);
}

void batch_blob(struct batch *b, const void *p, size_t n)
{
    uint64_t len = n;
    memcpy(head(b, BATCH_BLOB, &len, n), p, n);
}

int batch_next(const struct batch *b, size_t *pos, struct batch_item *ret)
{
    const char *p = b->data + *pos;
    if (*pos == b->len)
        return 0;
    *ret = (struct batch_item){.kind = (enum batch_kind) * p};
    memcpy(&ret->i, p + 1, sizeof(ret->i));
    memcpy(&ret->r, p + 1, sizeof(ret->r));
    *pos += 1 + sizeof(uint64_t);
    if (ret->kind == BATCH_TEXT || ret->kind == BATCH_BLOB) {
        ret->p = b->data + *pos;
        ret->n = (size_t)ret->i;
        *pos += ret->n;
    }
    return 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* strv.c - lists of strings and of pairs; see strv.h.
 * Lists are short (arguments, environment), so look-ups are linear. */
#define _GNU_SOURCE
#include "base/strv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

static void strv_take(struct strv *sv, char *s)
{
    if (sv->n + 2 > sv->cap) {
        sv->cap = sv->cap ? sv->cap * 2 : 8;
        sv->v = xrealloc(sv->v, sv->cap, sizeof(*sv->v));
    }
    sv->v[sv->n++] = s;
    sv->v[sv->n] = NULL;
}

void strv_release(struct strv *sv)
{
    for (size_t i = 0; i < sv->n; i++)
        free(sv->v[i]);
    free(sv->v);
    *sv = (struct strv){0};
}

void strv_add(struct strv *sv, const char *s)
{
    strv_take(sv, xstrdup(s));
}

void strv_addf(struct strv *sv, const char *fmt, ...)
{
    char *s = NULL;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&s, fmt, ap) < 0)
        abort(); /* memory: as xmalloc */
    va_end(ap);
    strv_take(sv, s);
}

void strv_copy(struct strv *dst, const struct strv *src)
{
    strv_release(dst);
    for (size_t i = 0; i < src->n; i++)
        strv_add(dst, src->v[i]);
}

char *strv_join(const struct strv *sv, const char *between)
{
    struct buf out = BUF_INIT(SIZE_MAX / 2); /* as large as the list that is there already */
    for (size_t i = 0; i < sv->n; i++)
        (void)buf_addf(&out, "%s%s", i ? between : "", sv->v[i]);
    return buf_take(&out);
}

static int strv_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void strv_sort_once(struct strv *sv)
{
    size_t n = 0;
    xsort(sv->v, sv->n, sizeof(*sv->v), strv_compare);
    for (size_t i = 0; i < sv->n; i++) {
        if (n && !strcmp(sv->v[n - 1], sv->v[i]))
            free(sv->v[i]);
        else
            sv->v[n++] = sv->v[i];
    }
    if (sv->v)
        sv->v[n] = NULL;
    sv->n = n;
}

bool strv_has(const struct strv *sv, const char *s)
{
    for (size_t i = 0; i < sv->n; i++)
        if (!strcmp(sv->v[i], s))
            return true;
    return false;
}

void pairs_release(struct pairs *p)
{
    for (size_t i = 0; i < p->n; i++) {
        free(p->v[i].key);
        free(p->v[i].value);
    }
    free(p->v);
    *p = (struct pairs){0};
}

void pairs_wipe(struct pairs *p)
{
    for (size_t i = 0; i < p->n; i++)
        explicit_bzero(p->v[i].value, strlen(p->v[i].value));
    pairs_release(p);
}

void pairs_set(struct pairs *p, const char *key, const char *value)
{
    for (size_t i = 0; i < p->n; i++)
        if (!strcmp(p->v[i].key, key)) {
            set_str(&p->v[i].value, value);
            return;
        }
    if (p->n == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 8;
        p->v = xrealloc(p->v, p->cap, sizeof(*p->v));
    }
    p->v[p->n++] = (struct pair){.key = xstrdup(key), .value = xstrdup(value)};
}

const char *pairs_find(const struct pairs *p, const char *key)
{
    for (size_t i = 0; i < p->n; i++)
        if (!strcmp(p->v[i].key, key))
            return p->v[i].value;
    return NULL;
}

void pairs_copy(struct pairs *dst, const struct pairs *src)
{
    pairs_release(dst);
    for (size_t i = 0; i < src->n; i++)
        pairs_set(dst, src->v[i].key, src->v[i].value);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* sched_table.c - rows with a list of free ones, and open addressing; see sched_table.h.
 * The free list is LIFO, so that the same calls give the same numbers. */
#include "core/sched/sched_table.h"

#include <stdlib.h>
#include <string.h>

void rows_init(struct rows *r, size_t size)
{
    *r = (struct rows){.size = size, .n = 1};
}

void rows_release(struct rows *r)
{
    free(r->v);
    r->v = NULL;
}

static void *copy_of(const void *p, size_t n, size_t size)
{
    void *v = xmalloc(n * size + 1);
    if (n)
        memcpy(v, p, n * size);
    return v;
}

uint32_t rows_take(struct rows *r)
{
    uint32_t i = r->freed;
    if (i) {
        r->freed = *(uint32_t *)rows_at(r, i);
    } else {
        if (r->n >= r->cap) {
            r->cap = r->cap ? r->cap * 2 : 16;
            r->v = xrealloc(r->v, r->cap, r->size);
        }
        i = r->n++;
    }
    memset(rows_at(r, i), 0, r->size);
    *(uint32_t *)rows_at(r, i) = ROW_USED;
    return i;
}

void rows_give(struct rows *r, uint32_t i)
{
    *(uint32_t *)rows_at(r, i) = r->freed;
    r->freed = i;
}

void rows_copy(struct rows *dst, const struct rows *src)
{
    *dst = *src;
    if (!src->v)
        return;
    dst->cap = src->n;
    dst->v = copy_of(src->v, src->n, src->size);
}

void index_release(struct index *ix)
{
    free(ix->cells);
    ix->cells = NULL;
}

void index_copy(struct index *dst, const struct index *src)
{
    *dst = *src;
    if (src->cells)
        dst->cells = copy_of(src->cells, src->cap, sizeof(*src->cells));
}

uint32_t index_find(const struct index *ix,
                    const struct sched *s,
                    uint64_t hash,
                    index_is_f is,
                    const void *key)
{
    if (!ix->n)
        return 0;
    uint32_t at = (uint32_t)hash & (ix->cap - 1);
    for (; ix->cells[at].i; at = (at + 1) & (ix->cap - 1))
        if (ix->cells[at].hash == (uint32_t)hash && is(s, ix->cells[at].i, key))
            return ix->cells[at].i;
    return 0;
}

static void sched_table_put(struct index *ix, struct index_cell c)
{
    uint32_t at = c.hash & (ix->cap - 1);
    while (ix->cells[at].i)
        at = (at + 1) & (ix->cap - 1);
    ix->cells[at] = c;
}

void index_add(struct index *ix, uint64_t hash, uint32_t i)
{
    if ((ix->n + 1) * 4 > ix->cap * 3) {
        struct index_cell *old = ix->cells;
        uint32_t n = ix->cap;
        ix->cap = n ? n * 2 : 16;
        ix->cells = xcalloc(ix->cap, sizeof(*ix->cells));
        for (uint32_t k = 0; k < n; k++)
            if (old[k].i)
                sched_table_put(ix, old[k]);
        free(old);
    }
    sched_table_put(ix, (struct index_cell){.i = i, .hash = (uint32_t)hash});
    ix->n++;
}

/* Close the hole at `at`: move back what its chain may reach. */
static void close_hole(struct index *ix, uint32_t at)
{
    uint32_t mask = ix->cap - 1;
    for (uint32_t k = (at + 1) & mask; ix->cells[k].i; k = (k + 1) & mask) {
        uint32_t home = ix->cells[k].hash & mask;
        if (((k - home) & mask) >= ((k - at) & mask)) {
            ix->cells[at] = ix->cells[k];
            at = k;
        }
    }
    ix->cells[at] = (struct index_cell){0};
}

void index_remove(struct index *ix, uint64_t hash, uint32_t i)
{
    uint32_t at = (uint32_t)hash & (ix->cap - 1);
    while (ix->cells[at].i != i)
        at = (at + 1) & (ix->cap - 1);
    close_hole(ix, at);
    ix->n--;
}

void numbers_add(struct numbers *l, uint32_t i)
{
    if (l->n >= l->cap) {
        l->cap = l->cap ? l->cap * 2 : 8;
        l->v = xrealloc(l->v, l->cap, sizeof(*l->v));
    }
    l->v[l->n++] = i;
}

void numbers_copy(struct numbers *dst, const struct numbers *src)
{
    *dst = (struct numbers){.n = src->n, .cap = src->n};
    if (src->n)
        dst->v = copy_of(src->v, src->n, sizeof(*src->v));
}

void numbers_release(struct numbers *l)
{
    free(l->v);
    *l = (struct numbers){0};
}

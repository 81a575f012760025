/* SPDX-License-Identifier: Apache-2.0 */
/* heap.c - the binary heap of heap.h: v[0] is the earliest, the children of v[i] are v[2i+1] and
 * v[2i+2], and each item knows its own place, so that any of them can be moved or taken out. */
#include "base/order/heap.h"

#include <stdlib.h>

#include "base/mem.h"

void heap_release(struct heap *h)
{
    free(h->v);
    *h = (struct heap){0};
}

static void heap_put(struct heap *h, size_t i, struct heap_item *item)
{
    h->v[i] = item;
    item->pos = i + 1;
}

/* Up or down from place i, until its parent is no later and its children are no earlier. */
static void heap_settle(struct heap *h, size_t i, struct heap_item *item)
{
    for (size_t up; i > 0 && h->v[up = (i - 1) / 2]->at > item->at; i = up)
        heap_put(h, i, h->v[up]);
    for (size_t down; (down = 2 * i + 1) < h->n; i = down) {
        if (down + 1 < h->n && h->v[down + 1]->at < h->v[down]->at)
            down++;
        if (h->v[down]->at >= item->at)
            break;
        heap_put(h, i, h->v[down]);
    }
    heap_put(h, i, item);
}

void heap_set(struct heap *h, struct heap_item *item, usec_t at)
{
    item->at = at;
    if (item->pos) {
        heap_settle(h, item->pos - 1, item);
        return;
    }
    if (h->n == h->cap) {
        h->cap = h->cap ? h->cap * 2 : 64;
        h->v = xrealloc(h->v, h->cap, sizeof(struct heap_item *));
    }
    heap_settle(h, h->n++, item);
}

void heap_remove(struct heap *h, struct heap_item *item)
{
    if (!item->pos)
        return;
    size_t i = item->pos - 1;
    struct heap_item *last = h->v[--h->n];
    item->pos = 0;
    if (last != item)
        heap_settle(h, i, last);
}

struct heap_item *heap_due(const struct heap *h, usec_t now)
{
    return h->n && h->v[0]->at <= now ? h->v[0] : NULL;
}

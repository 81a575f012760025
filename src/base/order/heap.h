/* SPDX-License-Identifier: Apache-2.0 */
/* heap.h - what is due when: a binary heap of times whose items live inside what is due.
 *
 * An item is in one heap at most, and its memory is the caller's: take it out before it is
 * freed. Zeroed memory is an item that is in no heap, and an empty heap. */
#pragma once
#include <stddef.h>

#include "base/clock.h"

struct heap_item {
    usec_t at;
    size_t pos; /* from 1; 0: it is in no heap */
};

struct heap {
    struct heap_item **v;
    size_t n, cap;
};

void heap_release(struct heap *h);
/* Adds the item, or moves it to its new time. */
void heap_set(struct heap *h, struct heap_item *item, usec_t at);
/* One that is in no heap stays so. */
void heap_remove(struct heap *h, struct heap_item *item);
/* The earliest, if it is due by now, else NULL. Borrowed; it stays in the heap. */
struct heap_item *heap_due(const struct heap *h, usec_t now);

/* SPDX-License-Identifier: Apache-2.0 */
/* metric_order.c - see metric_order.h. A new name moves the places behind it, two bytes each:
 * names in the worst order cost a record of METRIC_VALUES_MAX values 4 MB of that. */
#include "core/metric/metric_order.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void metric_order_release(struct metric_order *o)
{
    free(o->places);
    *o = (struct metric_order){0};
}

static int compare_name(const char *have, const char *name, size_t len)
{
    int c = strncmp(have, name, len);
    return c ? c : strnlen(have, len + 1) > len;
}

static const char *name_at(const void *array, size_t size, size_t place)
{
    const char *name;
    memcpy(&name, (const char *)array + place * size, sizeof(name));
    return name;
}

bool metric_order_find(const struct metric_order *o,
                       const void *array,
                       size_t size,
                       const char *name,
                       size_t len,
                       size_t *ret_rank)
{
    size_t low = 0, high = o->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int c = compare_name(name_at(array, size, o->places[mid]), name, len);
        if (!c) {
            *ret_rank = mid;
            return true;
        }
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    *ret_rank = low;
    return false;
}

size_t metric_order_place(const struct metric_order *o, size_t rank)
{
    assert(rank < o->n);
    return o->places[rank];
}

void metric_order_insert(struct metric_order *o, size_t rank, size_t place)
{
    assert(place <= UINT16_MAX && rank <= o->n);
    if (o->n == o->room) {
        o->room = o->room ? 2 * o->room : 32;
        o->places = xrealloc(o->places, o->room, sizeof(*o->places));
    }
    memmove(&o->places[rank + 1], &o->places[rank], (o->n - rank) * sizeof(*o->places));
    o->places[rank] = (uint16_t)place;
    o->n++;
}

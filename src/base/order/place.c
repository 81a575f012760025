/* SPDX-License-Identifier: Apache-2.0 */
/* place.c - one binary search for all sorted arrays; see place.h. */
#include "base/order/place.h"

size_t place_of(const void *key,
                const void *v,
                size_t n,
                size_t size,
                int (*compare)(const void *key, const void *element))
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (compare(key, (const char *)v + mid * size) > 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

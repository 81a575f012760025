/* SPDX-License-Identifier: Apache-2.0 */
/* place.h - where a key stands, or would stand, in a sorted array. Pure. */
#pragma once
#include <stddef.h>

/* The first element that does not come before the key, n if all do. compare(key, element) as with
 * bsearch(), which says nothing of a key that is not there. v may be NULL when n is 0. */
size_t place_of(const void *key,
                const void *v,
                size_t n,
                size_t size,
                int (*compare)(const void *key, const void *element));

/* SPDX-License-Identifier: Apache-2.0 */
/* metric_order.h - the places of an array in the order of the names there: a name is found among
 * thousands in a dozen comparisons, whatever order the names came in.
 *
 * The array is the owner's. Its members begin with their name (char *), keep their place, and have
 * each name once. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct metric_order {
    uint16_t *places;
    size_t n, room;
};

void metric_order_release(struct metric_order *o);
/* The rank of this name of len bytes. True: metric_order_place() tells where it is; false: it would
 * stand there. size: bytes of a member. */
bool metric_order_find(const struct metric_order *o,
                       const void *array,
                       size_t size,
                       const char *name,
                       size_t len,
                       size_t *ret_rank);
/* The place of what metric_order_find() found at this rank. */
size_t metric_order_place(const struct metric_order *o, size_t rank);
/* The name of a new place, with the rank that metric_order_find() told. */
void metric_order_insert(struct metric_order *o, size_t rank, size_t place);

/* SPDX-License-Identifier: Apache-2.0 */
/* rdma.h - what the InfiniBand and RoCE ports of a machine have counted, and the rate between two
 * counts. Pure.
 *
 * The kernel counts what a port has received and sent since its driver was loaded, in words of 4
 * bytes. A rate is told of two counts of the same ports alone: where a port came or went, a counter
 * fell (its device was reset) or stopped at the end of 32 bits, or a port would have been faster
 * than any is, nothing is told, and the next count begins anew. Nothing is guessed for one port of
 * several, since a sum without it would look like less traffic. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

enum { RDMA_PORTS_MAX = 128 }; /* of one machine; of one that has more nothing is told */

struct rdma_port {
    uint32_t mark;           /* str_mark() of its name */
    uint64_t received, sent; /* words of 4 bytes */
};
struct rdma_counts {
    usec_t up; /* when they were read, on the machine's own clock since its boot */
    size_t n;
    struct rdma_port v[];
};

/* Bytes per second of all ports together. */
struct rdma_rate {
    double received, sent;
};

/* Adds a port to *counts, which is made by the first one and is yours to free(). What is beyond
 * RDMA_PORTS_MAX + 1 is not kept. */
void rdma_add(struct rdma_counts **counts, const char *port, uint64_t received, uint64_t sent);
/* NULL of NULL. */
struct rdma_counts *rdma_copy(const struct rdma_counts *counts);
/* False: nothing can be told. Either may be NULL: no port was there. */
bool rdma_rate_of(const struct rdma_counts *was,
                  const struct rdma_counts *now,
                  struct rdma_rate *ret);

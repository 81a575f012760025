/* SPDX-License-Identifier: Apache-2.0 */
/* rdma.c - rates of two counts of RDMA ports; see rdma.h. Differences are taken in whole words and
 * become bytes afterwards, so that no counter is too large to be told. */
#include "core/figure/rdma.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"

static const usec_t SPAN_MIN = USEC_SEC / 2; /* the clock of a machine is read in 10 ms */
static const usec_t SPAN_MAX = 5 * USEC_MIN; /* a mean over longer is not what it does now */
static const double PORT_MAX = 1e12;         /* bytes per second: ten times the fastest there is */
static const double WORD_BYTES = 4;

static size_t rdma_size(size_t ports)
{
    return sizeof(struct rdma_counts) + ports * sizeof(struct rdma_port);
}

void rdma_add(struct rdma_counts **counts, const char *port, uint64_t received, uint64_t sent)
{
    size_t n = *counts ? (*counts)->n : 0;
    if (n > RDMA_PORTS_MAX)
        return;
    struct rdma_counts *c = xrealloc(*counts, 1, rdma_size(n + 1));
    if (!n)
        *c = (struct rdma_counts){0};
    c->v[n] =
        (struct rdma_port){.mark = str_mark(port, SIZE_MAX), .received = received, .sent = sent};
    c->n = n + 1;
    *counts = c;
}

struct rdma_counts *rdma_copy(const struct rdma_counts *counts)
{
    if (!counts)
        return NULL;
    struct rdma_counts *c = xmalloc(rdma_size(counts->n));
    memcpy(c, counts, rdma_size(counts->n));
    return c;
}

/* Bytes per second of one counter, added to *sum. Older ports stop at the end of 32 bits. */
static bool rdma_add_rate(uint64_t was, uint64_t now, double seconds, double *sum)
{
    if (now < was || now == UINT32_MAX)
        return false;
    double rate = (double)(now - was) * WORD_BYTES / seconds;
    *sum += rate;
    return rate <= PORT_MAX;
}

bool rdma_rate_of(const struct rdma_counts *was,
                  const struct rdma_counts *now,
                  struct rdma_rate *ret)
{
    struct rdma_rate sum = {0};
    if (!was || !now || was->n != now->n || now->n > RDMA_PORTS_MAX)
        return false;
    if (now->up < was->up + SPAN_MIN || now->up > was->up + SPAN_MAX)
        return false;
    double seconds = (double)(now->up - was->up) / USEC_SEC;
    for (size_t i = 0; i < now->n; i++) {
        const struct rdma_port *a = &was->v[i], *b = &now->v[i];
        if (a->mark != b->mark ||
            !rdma_add_rate(a->received, b->received, seconds, &sum.received) ||
            !rdma_add_rate(a->sent, b->sent, seconds, &sum.sent))
            return false;
    }
    *ret = sum;
    return true;
}

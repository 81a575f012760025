/* SPDX-License-Identifier: Apache-2.0 */
/* tailmark.c - see tailmark.h.
 *
 * The bytes lie in order, the newest last; what is too much for them goes at the front. A read that
 * begins behind the mark's first byte is compared from there on. */
#include "argusd/logs/tailmark.h"

#include <string.h>

void tailmark_add(struct tailmark *m, uint64_t at, const char *bytes, size_t n)
{
    if (at != m->end)
        m->n = 0;
    m->end = at + n;
    if (n > TAILMARK_BYTES) {
        bytes += n - TAILMARK_BYTES;
        n = TAILMARK_BYTES;
    }
    size_t keep = m->n + n > TAILMARK_BYTES ? TAILMARK_BYTES - n : m->n;
    memmove(m->bytes, m->bytes + m->n - keep, keep);
    memcpy(m->bytes + keep, bytes, n);
    m->n = keep + n;
}

enum tailmark_sight tailmark_compare(const struct tailmark *m,
                                     uint64_t at,
                                     const char *bytes,
                                     size_t n,
                                     uint64_t end)
{
    uint64_t first = m->end - m->n;
    if (at >= m->end && end >= m->end)
        return TAILMARK_SAME; /* those bytes were dropped */
    if (at < first || (!n && m->n))
        return TAILMARK_OTHER; /* it is shorter than what is known */
    size_t skip = (size_t)(at - first), known = m->n - skip;
    if (memcmp(m->bytes + skip, bytes, n < known ? n : known) != 0)
        return TAILMARK_OTHER;
    return end < m->end ? TAILMARK_CUT : TAILMARK_SAME;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* finding_piece.c - where the pieces of a log begin and end; see finding_piece.h. */
#include "core/finding/read/finding_piece.h"

#include <string.h>

#include "core/finding/finding.h"

uint64_t piece_lines(const char *p, size_t n)
{
    enum { MOST = 255 * 16 }; /* so many sums fit in bytes */
    typedef unsigned char sums __attribute__((vector_size(16)));
    uint64_t lines = 0;
    while (n >= 16) {
        size_t some = (n < MOST ? n : MOST) / 16 * 16;
        sums sum = {0}, bytes;
        for (size_t i = 0; i < some; i += 16) {
            memcpy(&bytes, p + i, 16);
            sum -= (sums)(bytes == '\n');
        }
        for (size_t i = 0; i < 16; i++)
            lines += sum[i];
        p += some;
        n -= some;
    }
    for (size_t i = 0; i < n; i++)
        lines += p[i] == '\n';
    return lines;
}

size_t piece_end(const char *p, size_t n)
{
    const char *nl = memchr(p, '\n', n);
    size_t end = nl ? (size_t)(nl - p) : n;
    const char *cr = memchr(p, '\r', end);
    return cr ? (size_t)(cr - p) : end;
}

size_t piece_start(const char *p, size_t at)
{
    const char *nl = memrchr(p, '\n', at);
    size_t from = nl ? (size_t)(nl - p) + 1 : 0;
    const char *cr = memrchr(p + from, '\r', at - from);
    from = cr ? (size_t)(cr - p) + 1 : from;
    return at - (at - from) % FINDING_LINE_MAX;
}

size_t piece_whole(const char *p, size_t n)
{
    const char *nl = memrchr(p, '\n', n);
    size_t from = nl ? (size_t)(nl - p) + 1 : 0;
    const char *cr = memrchr(p + from, '\r', n - from);
    return cr ? (size_t)(cr - p) + 1 : from;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* finding_mute.c - a table of hashes of lines without their digits, those that matched nothing;
 * see finding_mute.h. */
#include "core/finding/read/finding_mute.h"

#include <assert.h>
#include <string.h>

static uint64_t finding_mute_mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0x9E3779B97F4A7C15U;
    return h ^ h >> 29;
}

uint64_t mute_key(const char *line, size_t n, const uint64_t *found, size_t n_found)
{
    char shape[MUTE_LINE_MAX + sizeof(uint64_t)];
    uint64_t h = n, word;
    assert(n <= MUTE_LINE_MAX);
    for (size_t i = 0; i < n; i++)
        shape[i] = (unsigned char)(line[i] - '0') < 10 ? '0' : line[i];
    memset(shape + n, 0, sizeof(word));
    for (size_t i = 0; i < n; i += sizeof(word)) {
        memcpy(&word, shape + i, sizeof(word));
        h = finding_mute_mix(h, word);
    }
    for (size_t i = 0; i < n_found; i++)
        if (found[i])
            h = finding_mute_mix(h, found[i] + i);
    return h ? h : 1; /* 0: nothing is kept there */
}

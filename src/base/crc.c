/* SPDX-License-Identifier: Apache-2.0 */
/* crc.c - eight bytes a round by eight tables, made at the first call; see crc.h. */
#include "base/crc.h"

#include <pthread.h>

enum { SLICES = 8, POLYNOMIAL_BITS = 8 };
static const uint32_t POLYNOMIAL = 0xedb88320U;

static uint32_t table[SLICES][256];
static pthread_once_t made = PTHREAD_ONCE_INIT;

static void make(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < POLYNOMIAL_BITS; k++)
            c = (c >> 1) ^ (c & 1 ? POLYNOMIAL : 0);
        table[0][i] = c;
    }
    for (int s = 1; s < SLICES; s++)
        for (uint32_t i = 0; i < 256; i++)
            table[s][i] = (table[s - 1][i] >> 8) ^ table[0][table[s - 1][i] & 0xff];
}

uint32_t crc32_add(uint32_t crc, const void *p, size_t n)
{
    const unsigned char *b = p;
    (void)pthread_once(&made, make); /* fails only for a broken argument */
    crc = ~crc;
    for (; n >= SLICES; n -= SLICES, b += SLICES) {
        uint32_t lo = crc ^ ((uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 |
                             (uint32_t)b[3] << 24);
        crc = table[7][lo & 0xff] ^ table[6][lo >> 8 & 0xff] ^ table[5][lo >> 16 & 0xff] ^
              table[4][lo >> 24] ^ table[3][b[4]] ^ table[2][b[5]] ^ table[1][b[6]] ^
              table[0][b[7]];
    }
    for (; n; n--, b++)
        crc = (crc >> 8) ^ table[0][(crc ^ *b) & 0xff];
    return ~crc;
}

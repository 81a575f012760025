/* SPDX-License-Identifier: Apache-2.0 */
/* trigrams.c - which triples of bytes a block of a log contains; see trigrams.h.
 *
 * A byte is one of 64 kinds: letters without case, digits, what is frequent in logs, and the rest
 * by their low bits, among the others. So a set is exact up to that, fits into the processor's
 * nearest memory and takes a few instructions a byte. The filter is Bloom's, with two bits each. */
#include "fsroot/logs/trigrams.h"

#include <string.h>

enum { KIND_BITS = 6, NUMBER_MASK = (1 << (3 * KIND_BITS)) - 1 };

#define K8(a, b, c, d, e, f, g, h) a, b, c, d, e, f, g, h
/* By 8: controls, punctuation and digits (0 to 9 are kinds 26 to 35), letters, and above 127 the
 * low bits. */
static const uint8_t kinds[256] = {
    K8(62, 62, 62, 62, 62, 62, 62, 62), K8(62, 36, 63, 62, 62, 63, 62, 62),
    K8(62, 62, 62, 62, 62, 62, 62, 62), K8(62, 62, 62, 37, 62, 62, 62, 62),
    K8(36, 61, 38, 39, 61, 40, 61, 41), K8(42, 43, 44, 45, 46, 47, 48, 49),
    K8(26, 27, 28, 29, 30, 31, 32, 33), K8(34, 35, 50, 51, 52, 53, 54, 61),
    K8(55, 0, 1, 2, 3, 4, 5, 6),        K8(7, 8, 9, 10, 11, 12, 13, 14),
    K8(15, 16, 17, 18, 19, 20, 21, 22), K8(23, 24, 25, 56, 61, 57, 61, 58),
    K8(61, 0, 1, 2, 3, 4, 5, 6),        K8(7, 8, 9, 10, 11, 12, 13, 14),
    K8(15, 16, 17, 18, 19, 20, 21, 22), K8(23, 24, 25, 59, 60, 59, 61, 62),
    K8(0, 1, 2, 3, 4, 5, 6, 7),         K8(8, 9, 10, 11, 12, 13, 14, 15),
    K8(16, 17, 18, 19, 20, 21, 22, 23), K8(24, 25, 26, 27, 28, 29, 30, 31),
    K8(32, 33, 34, 35, 36, 37, 38, 39), K8(40, 41, 42, 43, 44, 45, 46, 47),
    K8(48, 49, 50, 51, 52, 53, 54, 55), K8(56, 57, 58, 59, 60, 61, 62, 63),
    K8(0, 1, 2, 3, 4, 5, 6, 7),         K8(8, 9, 10, 11, 12, 13, 14, 15),
    K8(16, 17, 18, 19, 20, 21, 22, 23), K8(24, 25, 26, 27, 28, 29, 30, 31),
    K8(32, 33, 34, 35, 36, 37, 38, 39), K8(40, 41, 42, 43, 44, 45, 46, 47),
    K8(48, 49, 50, 51, 52, 53, 54, 55), K8(56, 57, 58, 59, 60, 61, 62, 63),
};

static uint32_t next(uint32_t last, char c)
{
    return ((last << KIND_BITS) | kinds[(unsigned char)c]) & NUMBER_MASK;
}

void trigrams_clear(struct trigrams *t)
{
    memset(t, 0, sizeof(*t));
}

/* The bytes so far, the newest lowest: what has left the lower bits is not masked off before it is
 * used, which keeps the chain from byte to byte short. */
static inline uint64_t shift_in(uint64_t last, char c)
{
    return (last << KIND_BITS) | kinds[(unsigned char)c];
}

static inline void trigrams_set(struct trigrams *t, uint64_t last)
{
    t->bits[(last & NUMBER_MASK) >> 6] |= (uint64_t)1 << (last & 63);
}

/* From two places at once, since each byte waits for the one before it. The first two bytes of all
 * make numbers with zeros before them, which a text may have. */
void trigrams_add(struct trigrams *t, const char *p, size_t n)
{
    size_t half = n / 2, i = 0;
    uint64_t one = t->last, two = 0;
    if (half >= 2) {
        two = shift_in(shift_in(0, p[half - 2]), p[half - 1]);
        for (; i < half; i++) {
            one = shift_in(one, p[i]);
            trigrams_set(t, one);
            two = shift_in(two, p[half + i]);
            trigrams_set(t, two);
        }
        one = two;
        i = 2 * half;
    }
    for (; i < n; i++) {
        one = shift_in(one, p[i]);
        trigrams_set(t, one);
    }
    t->last = (uint32_t)(one & NUMBER_MASK);
}

void trigrams_join(struct trigrams *t, const struct trigrams *from)
{
    for (size_t i = 0; i < sizeof(t->bits) / sizeof(*t->bits); i++)
        t->bits[i] |= from->bits[i];
}

void trigrams_of(const char *text, size_t n, uint32_t *ret)
{
    uint32_t last = 0;
    for (size_t i = 0; i < n; i++) {
        last = next(last, text[i]);
        if (i >= 2)
            ret[i - 2] = last;
    }
}

static uint32_t trigrams_place(uint32_t trigram, uint32_t by, size_t n)
{
    return (uint32_t)(((uint64_t)(trigram * by) * (n * 8)) >> 32);
}

static const uint32_t BY[] = {0x9e3779b1U, 0x85ebca77U};

void trigrams_to_filter(const struct trigrams *t, uint8_t *filter, size_t n)
{
    for (uint32_t i = 0; i < sizeof(t->bits) / sizeof(*t->bits); i++)
        for (uint64_t bits = t->bits[i]; bits; bits &= bits - 1) {
            uint32_t trigram = i * 64 + (uint32_t)__builtin_ctzll(bits);
            for (size_t k = 0; k < sizeof(BY) / sizeof(*BY); k++) {
                uint32_t at = trigrams_place(trigram, BY[k], n);
                filter[at >> 3] |= (uint8_t)(1U << (at & 7));
            }
        }
}

bool trigrams_filter_has(const uint8_t *filter, size_t n, uint32_t trigram)
{
    for (size_t k = 0; k < sizeof(BY) / sizeof(*BY); k++) {
        uint32_t at = trigrams_place(trigram, BY[k], n);
        if (!(filter[at >> 3] & (1U << (at & 7))))
            return false;
    }
    return true;
}

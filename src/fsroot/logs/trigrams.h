/* SPDX-License-Identifier: Apache-2.0 */
/* trigrams.h - which three bytes in a row a text has, in any case of letters, and a filter that
 * remembers it in little room.
 *
 * Pure. A filter may say that a text has what it has not, never the other way round. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TRIGRAMS_BYTES = 32 << 10 }; /* of a set: its bits are 18-bit numbers, 6 of each byte */

struct trigrams {
    uint64_t bits[TRIGRAMS_BYTES / sizeof(uint64_t)];
    uint32_t last; /* the bytes before the next one */
};

void trigrams_clear(struct trigrams *t);
/* More of the text. */
void trigrams_add(struct trigrams *t, const char *p, size_t n);
/* All of from. */
void trigrams_join(struct trigrams *t, const struct trigrams *from);

/* The trigrams of a text of n >= 3 bytes: n - 2 numbers. */
void trigrams_of(const char *text, size_t n, uint32_t *ret);

/* Into a filter of n zeroed bytes. */
void trigrams_to_filter(const struct trigrams *t, uint8_t *filter, size_t n);
bool trigrams_filter_has(const uint8_t *filter, size_t n, uint32_t trigram);

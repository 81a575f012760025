/* SPDX-License-Identifier: Apache-2.0 */
/* finding_mute.h - lines that no rule matched, so that their like need not be read again: most
 * lines of a log that hold a rule's text in vain differ from an earlier one in digits only.
 *
 * Two lines are alike if they are the same but for digits and hold the same texts of rules. Few
 * are kept, a newer one in the place of an older. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MUTE_LINE_MAX = 512, MUTE_KEPT = 1024 };

struct mute {
    uint64_t kept[MUTE_KEPT];
};

/* The key of a line of MUTE_LINE_MAX bytes at most, and of the bits of the texts in it. */
uint64_t mute_key(const char *line, size_t n, const uint64_t *found, size_t n_found);

static inline bool mute_has(const struct mute *m, uint64_t key)
{
    return m->kept[key % MUTE_KEPT] == key;
}

static inline void mute_add(struct mute *m, uint64_t key)
{
    m->kept[key % MUTE_KEPT] = key;
}

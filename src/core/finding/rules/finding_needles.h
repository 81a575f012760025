/* SPDX-License-Identifier: Apache-2.0 */
/* finding_needles.h - many short texts looked for at once, in any case of ASCII letters.
 *
 * Made for bytes of which hardly any match: every second position is looked up in a table of
 * the needles' four-byte pieces, so most bytes are never touched by anything else. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NEEDLE_MIN = 5, NEEDLE_MAX = 60 };

struct needles;

struct needles *needles_new(void);
void needles_free(struct needles *n); /* NULL is fine */
/* Adds a text of NEEDLE_MIN to NEEDLE_MAX bytes, copied; a longer one is cut. Returns its number,
 * from 0; the same text gets the same number. */
unsigned needles_add(struct needles *n, const char *text, size_t len);
unsigned needles_count(const struct needles *n);
/* How seldom logs have a text of NEEDLE_MIN bytes or more, roughly; more is rarer. */
unsigned needle_rarity(const char *text, size_t len);
/* After the last one, before the first look. */
void needles_build(struct needles *n);

/* A byte of a needle, and which. */
struct needle_hit {
    size_t at;
    unsigned needle;
};

/* To be freed by whoever has it: v. */
struct needle_hits {
    struct needle_hit *v;
    size_t n, cap;
};

/* The needles of a stretch of text that begins at from, by place; those that reach into it may be
 * among them, so may ones that begin before it. Returns where the next stretch begins: len is the
 * end. */
size_t needles_look(const struct needles *n,
                    const char *text,
                    size_t from,
                    size_t len,
                    struct needle_hits *ret);
/* The place of a needle with none before it, give or take its length; len if there is none. */
size_t needles_find(const struct needles *n, const char *text, size_t len);
/* Set a bit in found for every needle of text, at from or behind it. */
void needles_all(const struct needles *n,
                 const char *text,
                 size_t from,
                 size_t len,
                 uint64_t *found);
static inline size_t needles_words(const struct needles *n)
{
    return (needles_count(n) + 63) / 64;
}

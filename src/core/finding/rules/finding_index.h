/* SPDX-License-Identifier: Apache-2.0 */
/* finding_index.h - which alternatives of rules may match a line, told by the texts that it holds.
 *
 * Every alternative of a pattern has a text without which it cannot match, and some more that it
 * needs besides. Immutable once built, and shared between threads. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/finding/rules/finding_needles.h"

struct finding_index;
struct finding_rule;

struct finding_index *finding_index_new(void);
void finding_index_free(struct finding_index *ix); /* NULL is fine */
/* The alternatives of a rule, whose branches are borrowed from now on. */
void finding_index_add(struct finding_index *ix, const struct finding_rule *r);
/* After the last one, before the first look. */
void finding_index_build(struct finding_index *ix);

/* Room that a look needs, in words of 64 bits. */
size_t finding_index_words(const struct finding_index *ix);
/* As needles_look(), of the texts that some rule needs. */
size_t finding_index_look(const struct finding_index *ix,
                          const char *text,
                          size_t from,
                          size_t len,
                          struct needle_hits *ret);
/* Set the bits of those in text, at from or behind it. */
void finding_index_all(const struct finding_index *ix,
                       const char *text,
                       size_t from,
                       size_t len,
                       uint64_t *found);
/* Set the bit of each branch that may match text, which is in lower case and has those of found;
 * false: none may. *ret_blind: all that were asked see no difference between digits. */
bool finding_index_mark(const struct finding_index *ix,
                        const char *text,
                        size_t len,
                        const uint64_t *found,
                        uint64_t *may,
                        bool *ret_blind);

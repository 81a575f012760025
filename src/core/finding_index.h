/* SPDX-License-Identifier: Apache-2.0 */
/* finding_index.h - which alternatives of rules may match a line, told by the texts that it holds.
 *
 * Every alternative of a pattern has a text without which it cannot match, and some more that it
 * needs besides. Immutable once built, and shared between threads. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
/* The place of a text that some rule needs with none before it, give or take its length; len if
 * there is none. */
size_t finding_index_find(const struct finding_index *ix, const char *text, size_t len);
/* Set the bit of each branch that may match text, which is in lower case; false: none may. found
 * has finding_index_words() for this to use. */
bool finding_index_mark(const struct finding_index *ix,
                        const char *text,
                        size_t len,
                        uint64_t *found,
                        uint64_t *may);

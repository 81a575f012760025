/* SPDX-License-Identifier: Apache-2.0 */
/* answer.h - inside of this layer: the KEY=VALUE lines that a script of ours printed. Pure.
 *
 * Whatever came is cut and masked here: a key has capitals, digits and '_', a value is printable
 * and at most ANSWER_VALUE_MAX - 1 bytes. Other lines are skipped. Words of a value are read from
 * its left. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"

enum { ANSWER_KEY_MAX = 24, ANSWER_VALUE_MAX = 600 };

struct answer {
    const char *p, *end; /* what is left; borrowed */
    char key[ANSWER_KEY_MAX], value[ANSWER_VALUE_MAX];
};

struct answer answer_of(const char *text, size_t len);
/* The next line; false at the end. */
bool answer_next(struct answer *a);
bool answer_is(const struct answer *a, const char *key);

/* The next word of *rest into ret, cut to size; "" when there is none. *rest moves behind it and
 * the blanks that follow. */
void answer_word(const char **rest, char *ret, size_t size);
/* The next word as a number within [0, max], dflt if it is none. */
uint64_t answer_number(const char **rest, uint64_t max, uint64_t dflt);
/* Copies the rest of a line, cut to size. */
void answer_text(const char *rest, char *ret, size_t size);

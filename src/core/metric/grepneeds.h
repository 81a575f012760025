/* SPDX-License-Identifier: Apache-2.0 */
/* grepneeds.h - texts without which a line cannot match a regular expression.
 *
 * Pure. A pattern is a few alternatives; each line that matches holds all texts of one of them, in
 * any case of letters. What is not understood is left out, and a pattern of which nothing certain
 * can be said needs nothing: the answer is safe, at worst useless. */
#pragma once
#include <stddef.h>

#include "base/strv.h"

enum { GREPNEEDS_LEAST = 3 }; /* bytes of a text that counts */

/* n == 0: any line may match. */
struct grepneeds {
    struct strv *v; /* of each alternative */
    size_t n;
};

/* pattern: a pattern that loggrep_new() accepts. */
void grepneeds_read(const char *pattern, struct grepneeds *ret);
void grepneeds_release(struct grepneeds *n);

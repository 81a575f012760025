/* SPDX-License-Identifier: Apache-2.0 */
/* finding_pattern.h - what every match of a PCRE2 pattern must contain.
 *
 * A set of texts of which any matching line has at least one (in any case of letters), so that
 * lines without one need not be tried. */
#pragma once
#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/strv.h"

enum { PATTERN_CLAUSE_MIN = 3 };

/* One alternative of a pattern, and what each of its matches has. */
struct pattern_branch {
    char *text;          /* a pattern of its own */
    struct strv needles; /* one of these; none: not known */
    struct strv clauses; /* of each clause, which "" ends, one; in lower case */
    unsigned char *lens; /* of the clauses */
    bool blind;          /* to it all digits are the same */
};

/* The alternatives of a valid pattern, *ret_n of them. */
struct pattern_branch *pattern_branches(const char *pattern, size_t *ret_n);
/* The whole of a pattern as its only alternative, of which nothing is known. */
struct pattern_branch *pattern_whole(const char *pattern, size_t *ret_n);
/* Whether what a part of a pattern means may depend on what stands before it. */
enum pattern_weave {
    PATTERN_PLAIN,
    PATTERN_REFERS,  /* to groups */
    PATTERN_OPTIONS, /* are set half way */
    PATTERN_QUOTES,  /* \Q: what stands behind it is not understood here */
};
enum pattern_weave pattern_weave(const char *pattern);
void pattern_branches_free(struct pattern_branch *v, size_t n);
/* True if text, n bytes in lower case, has what a match of the branch has. */
bool pattern_branch_fits(const struct pattern_branch *b, const char *text, size_t n);

/* ERR_BAD_SPEC if no set of texts of NEEDLE_MIN bytes or more can be read off the pattern, which
 * is taken to be a valid one. */
must_check int pattern_needles(const char *pattern, struct strv *ret, struct err *err);

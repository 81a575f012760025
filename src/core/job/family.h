/* SPDX-License-Identifier: Apache-2.0 */
/* family.h - jobs that came of one another, as a tree: who is whose child, and in which order they
 * are read. What is said of a job may be wrong: no list of parents leads round in a circle, and no
 * depth is too deep. Pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/json.h"

/* What a job is to the one that it came of. */
enum family_how {
    FAMILY_NONE,
    FAMILY_RETRY,  /* the same spec once more, perhaps with a fix */
    FAMILY_FORK,   /* its spec was written by the other's */
    FAMILY_RESUME, /* it goes on from the other's checkpoint */
    FAMILY_EVAL,   /* it judges the other's checkpoint */
    FAMILY_EXPORT, /* it makes a model of the other's checkpoint */
    FAMILY_HOWS
};
/* "retry", "fork" …; "" for none. For FIELD_ENUM: ends with NULL. */
extern const char *const family_how_words[FAMILY_HOWS + 1];
enum family_how family_how_from_string(const char *word); /* FAMILY_NONE for another word, NULL */

enum { FAMILY_NOTE_MAX = 500 }; /* bytes */
/* One line of text for people: UTF-8, without control characters, not too long. */
bool family_is_note(const char *text);
/* *ret: the note that is given, borrowed; NULL: there is none, or there is to be none (NULL, "").
 * ERR_BAD_REQUEST with a sentence. */
must_check int family_check_note(const char *given, const char **ret, struct err *err);
/* The same of what stands in a body, which may be null, or no text at all. given may be NULL. */
must_check int family_read_note(const json_t *given, const char **ret, struct err *err);

/* Borrowed. parent NULL, or the id of none of them: it came of nobody here. */
struct family_member {
    const char *id, *parent;
};
#define FAMILY_NOBODY ((size_t)-1)
struct family_place {
    size_t member, parent; /* of the list; FAMILY_NOBODY: it begins a tree */
    int depth;             /* 0: it begins a tree */
};
/* ret has room for n and gets each of them once, each behind its parent and all that came of one
 * child before the next child; children in the order of the list. Of several with one id the first
 * is it. Where parents lead round in a circle, the first of the circle begins a tree. */
void family_order(const struct family_member *v, size_t n, struct family_place *ret);

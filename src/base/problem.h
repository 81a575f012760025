/* SPDX-License-Identifier: Apache-2.0 */
/* problem.h - everything that is wrong with one input, told at once.
 *
 * Checkers append and go on. An error makes the input unusable, a warning does
 * not. Each has the field (dotted), the place and, where there is one, the fix. */
#pragma once
#include <stdbool.h>

#include "base/buf.h"
#include "base/field.h"
#include "base/json.h"

enum problem_level { PROBLEM_ERROR, PROBLEM_WARNING };

struct problem {
    int level;   /* enum problem_level */
    char *field; /* "restart.max"; "" for the whole input */
    char *text;  /* one sentence */
    char *hint;  /* the fix, or NULL */
    int line;    /* from 1; 0 = not known */
    int column;
};

enum { PROBLEMS_MAX = 100 }; /* more are counted and not kept: `dropped` */

struct problems {
    struct problem *v;
    size_t n;
    size_t dropped;
    size_t errors;
};

void problems_release(struct problems *ps);

/* hint may be NULL; everything is copied. */
void problems_add(struct problems *ps,
                  enum problem_level level,
                  const char *field,
                  int line,
                  int column,
                  const char *hint,
                  const char *fmt,
                  ...) printf_like(7, 8);

/* Appends one line per problem: "file:line:column: error: 'field': sentence (hint)". */
void problems_to_text(const struct problems *ps, const char *file, struct buf *out);
/* The members of one, as people and programs see it. */
extern const struct field_table problem_table;
/* Writes the problems as an array under key. */
void problems_to_json(const struct problems *ps, struct jout *j, const char *key);

/* SPDX-License-Identifier: Apache-2.0 */
/* problem.h - everything that is wrong with one input, told at once.
 *
 * Checkers append and go on. An error makes the input unusable, a warning does not. Each has the
 * field (dotted), the place, and a code of the catalogue with its arguments (message.h): the
 * sentence and the fix are made of them where somebody reads, in that person's language. */
#pragma once
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/field.h"
#include "base/json.h"
#include "base/message.h"

enum problem_level { PROBLEM_ERROR, PROBLEM_WARNING };

struct problem {
    int level;   /* enum problem_level */
    char *field; /* "restart.max"; "" for the whole input */
    char *code;  /* NULL: text is a sentence that somebody else made */
    char *text;  /* the arguments of the code, a JSON object */
    char *hint;  /* how to mend it, of a sentence; a code has its fix in the catalogue */
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

/* Everything is copied, here and below. */
void problems_add(struct problems *ps,
                  enum problem_level level,
                  const char *field,
                  int line,
                  int column,
                  const char *code,
                  const struct message_arg *args);
/* What a parser says: its code and arguments, or its sentence where it has no code. */
void problems_add_err(struct problems *ps,
                      enum problem_level level,
                      const char *field,
                      int line,
                      int column,
                      const struct err *err);
/* A sentence from outside this program. hint may be NULL. */
void problems_add_said(struct problems *ps,
                       enum problem_level level,
                       const char *field,
                       int line,
                       int column,
                       const char *hint,
                       const char *text);
/* A problem of another list, at another place. */
void problems_add_copy(struct problems *ps,
                       const struct problem *p,
                       const char *field,
                       int line,
                       int column);
/* The problem as an error: its code and arguments, its sentence in English. Returns code. */
int problem_to_err(const struct problem *p, int code, struct err *err);
/* The first problem of a file, with its place there. Returns code. */
int problems_to_err(const struct problems *ps, const char *file, int code, struct err *err);
/* The first error; NULL: there is none. */
const struct problem *problems_first(const struct problems *ps);

/* Appends one line per problem: "file:line:column: error: 'field': sentence (hint)". */
void problems_to_text(const struct problems *ps,
                      const char *file,
                      enum message_language language,
                      struct buf *out);

/* One as people and programs see it. */
struct problem_page {
    int level, line, column;
    const char *field, *code;
    char *args, *detail, *hint;
};
extern const struct field_table problem_table;
struct problem_page problem_say(const struct problem *p, enum message_language language);
void problem_page_release(struct problem_page *page);
/* The pages, of problem_table; release with problem_pages_release(). */
struct field_list problem_pages(const struct problems *ps, enum message_language language);
void problem_pages_release(struct field_list *pages);
/* Writes the pages as an array under key. */
void problems_to_json(const struct problems *ps,
                      enum message_language language,
                      struct jout *j,
                      const char *key);
/* The same array as a text of its own; heap. "[]" also where it would be too long. */
char *problems_say(const struct problems *ps, enum message_language language);

/* For the store: codes and arguments without the sentences. Heap. */
char *problems_to_stored(const struct problems *ps);
/* What problems_to_stored() made, or a version before it that kept sentences, as a JSON array of
 * pages. Heap. NULL is "[]", as is a text that cannot be read. */
char *problems_stored_say(const char *stored, enum message_language language);

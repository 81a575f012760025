/* SPDX-License-Identifier: Apache-2.0 */
/* strv.h - a list of strings, and a list of name=value pairs: argv and environment.
 * Both own copies of what they are given; zeroed memory is an empty list. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"

struct strv {
    char **v; /* n strings, then NULL; NULL while empty */
    size_t n;
    size_t cap;
};

void strv_release(struct strv *sv);
void strv_add(struct strv *sv, const char *s); /* copied */
void strv_addf(struct strv *sv, const char *fmt, ...) printf_like(2, 3);
void strv_copy(struct strv *dst, const struct strv *src); /* dst is emptied first */
bool strv_has(const struct strv *sv, const char *s);
char *strv_join(const struct strv *sv, const char *between); /* yours */
void strv_sort_once(struct strv *sv); /* by bytes; of equal ones the first stays */

struct pair {
    char *key;
    char *value;
};

struct pairs {
    struct pair *v;
    size_t n;
    size_t cap;
};

void pairs_release(struct pairs *p);
void pairs_wipe(struct pairs *p); /* the same; the values are overwritten first */
/* Adds, or replaces the value of a key that is there. Copied. */
void pairs_set(struct pairs *p, const char *key, const char *value);
/* Borrowed, NULL if there is none. */
const char *pairs_find(const struct pairs *p, const char *key);
void pairs_copy(struct pairs *dst, const struct pairs *src); /* dst is emptied first */

/* SPDX-License-Identifier: Apache-2.0 */
/* str.h - small questions about text, and the quoting of one word for a shell.
 * Nothing here allocates but what says so. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* "10.0.0.1:80", "[fd00::1]:80": an address and its port as a URL has them. Heap. */
char *str_with_port(const char *address, int port);
bool str_eq(const char *a, const char *b); /* NULL equals only NULL */
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);
/* FNV-1a of the first `most` bytes at the most: for tables and phases, not against an attacker. */
uint32_t str_mark(const char *s, size_t most);
static inline const char *str_or(const char *s, const char *other)
{
    return s ? s : other;
}

/* The whole text as a number; -EINVAL with a sentence otherwise, or when outside [min, max]. */
must_check int str_to_int(const char *s, int64_t min, int64_t max, int64_t *ret, struct err *err);
must_check int str_to_real(const char *s, double *ret, struct err *err);
/* "512MiB 40GB 100": bytes. */
must_check int size_from_string(const char *s, uint64_t *ret_bytes, struct err *err);

/* The entry of names (n entries) nearest to s by edit distance, or NULL when none is near enough
 * to be a plausible correction. Borrowed from names. */
const char *str_nearest(const char *s, const char *const *names, size_t n);

/* Shell-style pattern: * ? and nothing else; anchored. */
bool str_glob(const char *pattern, const char *s);

/* The items of a comma-separated list, one after the other: const char *it, *list = "a,b"; size_t
 * n; while ((it = str_item(&list, &n))) … Borrowed, not terminated. NULL at the end; NULL has none.
 */
const char *str_item(const char **list, size_t *ret_len);
bool str_list_has(const char *list, const char *item); /* NULL has none */
/* Every item of `some` is one of `list`. */
bool str_list_has_all(const char *list, const char *some);

/* Append s so that a POSIX shell reads back exactly these bytes as one word. */
int str_shell_quote(struct buf *out, const char *s);

/* Append text with ${NAME} replaced by what look_up returns (borrowed); a NULL
 * answer is -EINVAL naming the variable. "$NAME" and "$" stay as they are. */
typedef const char *(*str_look_up_f)(const char *name, void *arg);
must_check int str_expand(struct buf *out,
                          const char *text,
                          str_look_up_f look_up,
                          void *arg,
                          struct err *err);

/* True if the name of an environment variable or key says that its value is a
 * secret (…TOKEN, …KEY, …SECRET, …PASSWORD, …CREDENTIAL…, PASS, AUTH). */
bool str_is_secret_name(const char *name);

/* Lower-case hex of n bytes; out holds 2n + 1. Returns out. */
char *str_hex(const unsigned char *bytes, size_t n, char *out);

/* Length of the valid UTF-8 sequence at p (n > 0 bytes left), 0 if there is none. */
size_t str_utf8_length(const void *p, size_t n);

/* How many bytes of s, most at the most, end no character of UTF-8 in its middle. Of what is no
 * UTF-8 there: most. */
size_t str_cut(const char *s, size_t most);

/* A control character of ASCII or of Latin-1 (C1, "\xc2\x9b" begins what moves a terminal) is in
 * it: no name of anything has one. */
bool str_has_control(const char *s);

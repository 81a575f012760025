/* SPDX-License-Identifier: Apache-2.0 */
/* loggrep.h - the lines of a log that match a regular expression (PCRE2, bytes).
 *
 * Pure. What a pattern may cost is bounded: a line on which it takes too long does not match.
 * Whoever has no time without end says in loggrep_until() when it is over. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

enum { LOGGREP_PATTERN_MAX = 1000 };

struct loggrep;

/* ERR_BAD_REQUEST with one sentence. The pattern is copied. For one thread at a time. */
must_check int loggrep_new(const char *pattern, struct loggrep **ret, struct err *err);
void loggrep_free(struct loggrep *g); /* NULL is fine */

/* is_late is asked now and then in the middle of a match; once it is true, a match that has not
 * been found soon counts as none. Borrowed with arg; NULL: there is time. */
typedef bool (*loggrep_late_f)(void *arg);
void loggrep_until(struct loggrep *g, loggrep_late_f is_late, void *arg);

/* line: without its end. */
bool loggrep_matches(struct loggrep *g, const char *line, size_t n);

/* offset: of the line's first byte in text. False: that is enough. */
typedef bool (*loggrep_hit_f)(size_t offset, const char *line, size_t n, void *arg);
/* Each line of text that matches; one without an end at its end counts as well. How far it came:
 * n, or behind the line where on_hit had enough; when it is late, the line that has to be judged
 * next, which is never the first. */
size_t loggrep_scan(struct loggrep *g, const char *text, size_t n, loggrep_hit_f on_hit, void *arg);

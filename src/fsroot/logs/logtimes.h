/* SPDX-License-Identifier: Apache-2.0 */
/* logtimes.h - when which part of a log was written: <log>.times, beside it.
 *
 * A row of marks, each of which says that all bytes before an offset, which begins a line, had been
 * written by a time. They are made at most every few seconds, and only while the log grows. The
 * clock is the writer's. What has no mark yet, or a torn one, counts as new. Blocking. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

struct logtimes;

/* log: path of its first file, copied. The file is made with its first mark. */
struct logtimes *logtimes_new(const char *log);
void logtimes_free(struct logtimes *t); /* NULL is fine */

/* n more bytes of the log were written just now. */
void logtimes_add(struct logtimes *t, const char *p, size_t n, usec_t wall);
/* Nothing was: to be called now and then. */
void logtimes_idle(struct logtimes *t, usec_t wall);
/* Nothing more will be. */
void logtimes_finish(struct logtimes *t);

/* For a log's name in the attempt's directory, such as ATTEMPT_LOG: the last known offset before
 * which no byte was written after `since`; 0: not known. */
uint64_t logtimes_find(const char *root,
                       const char *job,
                       int attempt,
                       const char *name,
                       usec_t since);

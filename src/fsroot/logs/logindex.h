/* SPDX-License-Identifier: Apache-2.0 */
/* logindex.h - which parts of a log need not be read for a pattern, by the index beside it
 * (logindex_file.h).
 *
 * What it cannot vouch for is to be read: a log without an index, with one of another log, longer
 * than its index, or of which files have gone; records that are torn or missing. The files are
 * outside bytes. Blocking. */
#pragma once
#include <stdint.h>

#include "base/err.h"
#include "core/metric/grepneeds.h"

/* The texts that are searched for, as numbers. */
struct logindex_ask;
/* NULL: an index cannot help. */
struct logindex_ask *logindex_ask_new(const struct grepneeds *needs);
void logindex_ask_free(struct logindex_ask *a); /* NULL is fine */

/* The index of one log. */
struct logindex;

/* name: of the log, in the attempt's directory, such as ATTEMPT_LOG. NULL: there is none that
 * is of use. ask is borrowed. */
struct logindex *logindex_open(const char *root,
                               const char *job,
                               int attempt,
                               const char *name,
                               const struct logindex_ask *ask);
void logindex_close(struct logindex *x); /* NULL is fine */

/* From `offset` on, which is not before an earlier one: the next bytes [*ret_begin, *ret_end) to
 * read; those before them hold no line that matches. *ret_end is the end of a line, or UINT64_MAX.
 * No bytes: it has looked long enough; read some from there, as far as you like, and ask again. */
void logindex_next(struct logindex *x, uint64_t offset, uint64_t *ret_begin, uint64_t *ret_end);

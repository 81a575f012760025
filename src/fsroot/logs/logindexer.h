/* SPDX-License-Identifier: Apache-2.0 */
/* logindexer.h - writes the index beside a log (logindex_file.h) while the log is written.
 *
 * It is told all bytes of the log in their order. Nothing depends on it: what it could not write,
 * or had no time to look at, is read by whoever searches. It takes about 80 KiB, and one write of
 * 4 KiB for each block of the log. Blocking. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

struct logindexer;

/* log: path of its first file, copied. The index is made with its first record. */
struct logindexer *logindexer_new(const char *log);
void logindexer_free(struct logindexer *x); /* NULL is fine */

/* n bytes that stand at `offset` of the log now. is_late: there is no time for the block that
 * begins with them. */
void logindexer_add(struct logindexer *x,
                    uint64_t offset,
                    const char *p,
                    size_t n,
                    usec_t wall,
                    bool is_late);
/* The log is at its end. */
void logindexer_finish(struct logindexer *x, usec_t wall);

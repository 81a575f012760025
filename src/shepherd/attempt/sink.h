/* SPDX-License-Identifier: Apache-2.0 */
/* sink.h - driver.log: where the output of the command goes, byte for byte.
 *
 * A log that outgrows its ceiling goes on in a second file, and so on: driver.log.<offset>, where
 * offset is the place in the whole log at which that file begins. When all of them together reach
 * theirs, the oldest but the first is removed, and a small file in front of what follows says so.
 * Beside it an index is written for those who search in it (fsroot/logs/logindexer.h), and when
 * what was written (fsroot/logs/logtimes.h). What already has the name of a next file and is not
 * ours is renamed to <name>.found. Every call may block for as long as the file system does. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

struct sink;

/* Create the log, which is the one act that only one shepherd of an attempt can
 * do. -EEXIST: another one did. path is copied. */
must_check int sink_open(const char *path, struct sink **ret, struct err *err);
/* sink_open() for a descriptor, which is taken; without an index and times. */
struct sink *sink_new(int fd, const char *path);
void sink_free(struct sink *s); /* closes; NULL is fine */

/* Ceilings of one file and of all together; 0: none. `total` holds four files at least. */
void sink_limit(struct sink *s, uint64_t segment, uint64_t total);

/* Writes all n bytes, or returns a negative errno after *ret_done of them: the rest may be given
 * again later, and a file that was replaced meanwhile is then opened anew. */
must_check int sink_write(struct sink *s, const char *p, size_t n, size_t *ret_done);
/* More comes than can be written: the index leaves out what comes now. */
void sink_hurry(struct sink *s, bool is_late);
/* Sends what was written to the file's server, so that others can read it. */
void sink_flush(struct sink *s);
/* All output is on disk when this returns 0; -EIO: some earlier output may not be. */
must_check int sink_finish(struct sink *s, struct err *err);

/* On such a file system every reader is on this machine and sees a write at once. */
bool sink_is_local(int fd);
const char *sink_path(const struct sink *s);
uint64_t sink_bytes(const struct sink *s);   /* where the whole log ends */
uint64_t sink_removed(const struct sink *s); /* of those, in files that were removed */

/* SPDX-License-Identifier: Apache-2.0 */
/* sink.h - driver.log: where the output of the command goes, byte for byte.
 *
 * A log that cannot be written never stops the command: its bytes are counted as
 * dropped, a line at that place says how many, and writing is tried again each
 * second. Only this module touches the file, so that a spool can come in between. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

struct sink;

/* Create the log, which is the one act that only one shepherd of an attempt can
 * do. -EEXIST: another one did. path is copied. */
must_check int sink_open(const char *path, struct sink **ret, struct err *err);
/* The same around a descriptor, which is taken. */
struct sink *sink_new(int fd, const char *path);
void sink_free(struct sink *s); /* closes; NULL is fine */

/* Never fails; blocks as long as one write does. Returns 1 when dropping has just
 * begun (tell somebody), else 0. */
int sink_add(struct sink *s, const char *p, size_t n, usec_t mono);
/* Sends what was written to the file's server, so that others can read it. */
void sink_flush(struct sink *s);
/* All of it is on disk when this returns 0. */
must_check int sink_finish(struct sink *s, struct err *err);

const char *sink_path(const struct sink *s);
uint64_t sink_bytes(const struct sink *s);   /* size of the log */
uint64_t sink_dropped(const struct sink *s); /* output that is not in it */
/* The last reason for dropping, "" if there never was one. */
const char *sink_trouble(const struct sink *s);

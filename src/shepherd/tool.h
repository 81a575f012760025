/* SPDX-License-Identifier: Apache-2.0 */
/* tool.h - asks another program of this machine, with a deadline, and leaves notes for others.
 *
 * What is said is shown to nobody before it went through the veil. */
#pragma once
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "shepherd/veil.h"

/* Append what the program says on its standard output; with_errors: on both. Over when it ends, at
 * the ceiling of out, or when limit has passed, and then it is killed; one that even then stays is
 * left. 0: it ended well; -ENOENT: there is no such program; -ETIME; else -EIO. */
must_check int tool_run(const char *const *argv,
                        bool with_errors,
                        usec_t limit,
                        struct buf *out,
                        struct err *err);

/* Replace the file dir/name (directories are made). veil NULL: nothing is secret. */
must_check int tool_note(const char *dir,
                         const char *name,
                         struct veil *veil,
                         const struct buf *text,
                         struct err *err);

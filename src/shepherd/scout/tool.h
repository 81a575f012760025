/* SPDX-License-Identifier: Apache-2.0 */
/* tool.h - asks another program of this machine, with a deadline, and leaves notes for others.
 *
 * Its output is shown only after it went through the veil. */
#pragma once
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "shepherd/host/veil.h"

/* Appends the program's standard output; with_errors: its standard error, too. Ends when the
 * program ends, when out is full, or when limit has passed; the program is then killed, and left
 * alone if even that does not end it. 0: it succeeded; -ENOENT: there is no such program;
 * -ETIME; else -EIO. */
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

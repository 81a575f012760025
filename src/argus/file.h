/* SPDX-License-Identifier: Apache-2.0 */
/* file.h - the two things that the client does with files: read one whole, and
 * write one that nobody else may read. */
#pragma once
#include "base/buf.h"
#include "base/err.h"

/* Append the file ("-" is stdin) to out, up to out's ceiling. A negative errno or
 * ERR_TOO_LARGE, with the path in the sentence. */
must_check int file_read(const char *path, struct buf *out, struct err *err);

/* Replace the file at once or not at all; mode 0600, missing directories are made 0700. */
must_check int file_write_private(const char *path, const char *data, size_t len, struct err *err);

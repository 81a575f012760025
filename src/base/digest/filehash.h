/* SPDX-License-Identifier: Apache-2.0 */
/* filehash.h - the SHA-256 of one file, read in pieces. Blocking. */
#pragma once
#include <stdint.h>

#include "base/digest/hash.h"
#include "base/err.h"

/* And the size of the regular file name below fd; a link is not followed. -EINVAL or -ELOOP: it is
 * something else. */
must_check int filehash_at(int fd,
                           const char *name,
                           unsigned char ret_hash[static HASH_BYTES],
                           uint64_t *ret_size,
                           struct err *err);

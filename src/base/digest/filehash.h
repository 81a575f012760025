/* SPDX-License-Identifier: Apache-2.0 */
/* filehash.h - the SHA-256 of one file whose size is known, read in pieces. Blocking. */
#pragma once
#include <stdint.h>

#include "base/digest/hash.h"
#include "base/err.h"

/* Hashes the regular file name below fd; a link is not followed. size: what it has by another
 * account: no more is ever read, however far somebody makes the file reach. -EINVAL or -ELOOP: it
 * is something else; -EMSGSIZE: it has another size. */
must_check int filehash_at(int fd,
                           const char *name,
                           uint64_t size,
                           unsigned char ret_hash[static HASH_BYTES],
                           struct err *err);

/* SPDX-License-Identifier: Apache-2.0 */
/* seal.h - bytes that only the holder of one key can read: as text for the store, or as a file.
 *
 * libsodium's secretbox with a fresh nonce each. The place where a text is kept is sealed with
 * it: moved to another place it does not open. A file of any size is sealed by libsodium's
 * secretstream (XChaCha20-Poly1305) in pieces of 64 KiB behind a line that says so: a piece that
 * was changed, moved, left out or cut off is found. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum { SEAL_KEY_BYTES = 32 };

/* "argus-sealed:1:" and base64url. Heap, yours. */
char *seal_close(const unsigned char key[static SEAL_KEY_BYTES],
                 const char *place,
                 const void *p,
                 size_t n);
/* Appends what was sealed. -EBADMSG: by another key, for another place, or damaged. */
must_check int seal_open(const unsigned char key[static SEAL_KEY_BYTES],
                         const char *place,
                         const char *sealed,
                         struct buf *out,
                         struct err *err);
bool seal_is_sealed(const char *text);
void seal_forget(void *p, size_t n); /* overwrite; p may be NULL when n is 0 */

/* ---- files; all blocks ---- */

/* Seals all that is in `from`, from where it stands, into `to`. *stop not 0: -ECANCELED; it may be
 * NULL. *ret_bytes: what was written. A negative errno with a sentence. */
must_check int sealfile_close(const unsigned char key[static SEAL_KEY_BYTES],
                              const char *place,
                              int from,
                              int to,
                              const volatile int *stop,
                              uint64_t *ret_bytes,
                              struct err *err);
/* The other way round; to: -1, it is only read. -EBADMSG: another key, another place, damaged or
 * cut; what was written so far is then of no use. -EFBIG: more than `most` bytes come out. */
must_check int sealfile_open(const unsigned char key[static SEAL_KEY_BYTES],
                             const char *place,
                             int from,
                             int to,
                             uint64_t most,
                             struct err *err);

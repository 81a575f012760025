/* SPDX-License-Identifier: Apache-2.0 */
/* seal.h - bytes that only the holder of one key can read, as text for the store.
 *
 * libsodium's secretbox with a fresh nonce each. The place where a text is kept is sealed with
 * it: moved to another place it does not open. */
#pragma once
#include <stdbool.h>

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

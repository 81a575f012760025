/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h - SHA-256 and random bytes, by libsodium; base64url without padding. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

enum { HASH_BYTES = 32, HASH_HEX = 65 };

/* Must be called once before the others; aborts when the system has no randomness. */
void hash_init(void);
void hash_sha256(const void *p, size_t n, unsigned char ret[static HASH_BYTES]);
const char *hash_sha256_hex(const void *p, size_t n, char ret[static HASH_HEX]);
/* Constant-time: 0 when equal. */
int hash_compare(const void *a, const void *b, size_t n);
void random_bytes(void *p, size_t n);

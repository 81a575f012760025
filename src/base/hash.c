/* SPDX-License-Identifier: Apache-2.0 */
/* hash.c - thin names for libsodium's hash, comparison and randomness; see hash.h. */
#include "base/hash.h"

#include <sodium.h>
#include <stdlib.h>

#include "base/str.h"

_Static_assert(HASH_BYTES == crypto_hash_sha256_BYTES, "SHA-256 has 32 bytes");

void hash_init(void)
{
    if (sodium_init() < 0)
        abort(); /* no randomness: nothing that needs a token may go on */
}

void hash_sha256(const void *p, size_t n, unsigned char ret[static HASH_BYTES])
{
    (void)crypto_hash_sha256(ret, p, n); /* always 0 */
}

const char *hash_sha256_hex(const void *p, size_t n, char ret[static HASH_HEX])
{
    unsigned char digest[HASH_BYTES];
    hash_sha256(p, n, digest);
    return str_hex(digest, sizeof(digest), ret);
}

int hash_compare(const void *a, const void *b, size_t n)
{
    return sodium_memcmp(a, b, n);
}

void random_bytes(void *p, size_t n)
{
    randombytes_buf(p, n);
}

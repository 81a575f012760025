/* SPDX-License-Identifier: Apache-2.0 */
/* hash.c - thin names for libsodium's hash, comparison and randomness; see hash.h. */
#include "base/digest/hash.h"

#include <assert.h>
#include <endian.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/hash_blocks.h"
#include "base/str.h"

static_assert(HASH_BYTES == crypto_hash_sha256_BYTES, "SHA-256 has 32 bytes");

void hash_init(void)
{
    if (sodium_init() < 0)
        abort(); /* no randomness: nothing that needs a token may go on */
}

void hash_sha256(const void *p, size_t n, unsigned char ret[static HASH_BYTES])
{
    struct hash_running h;
    hash_begin(&h);
    hash_add(&h, p, n); /* faster than libsodium's own on processors that know SHA-256 */
    hash_end(&h, ret);
}

const char *hash_sha256_hex(const void *p, size_t n, char ret[static HASH_HEX])
{
    unsigned char digest[HASH_BYTES];
    hash_sha256(p, n, digest);
    return str_hex(digest, sizeof(digest), ret);
}

static_assert(sizeof(struct hash_running) >= sizeof(crypto_hash_sha256_state), "it fits");
static_assert(_Alignof(struct hash_running) >= _Alignof(crypto_hash_sha256_state), "it fits");

bool hash_is_hex(const char *text)
{
    return strlen(text) == HASH_HEX - 1 && strspn(text, "0123456789abcdef") == HASH_HEX - 1;
}

void hash_begin(struct hash_running *h)
{
    (void)crypto_hash_sha256_init((crypto_hash_sha256_state *)(void *)h); /* always 0 */
}

/* What fills whole blocks goes by the processor's own instructions, the edges by libsodium: the
 * state is libsodium's all the time. */
void hash_add(struct hash_running *h, const void *p, size_t n)
{
    crypto_hash_sha256_state *s = (crypto_hash_sha256_state *)(void *)h;
    const unsigned char *at = p;
    size_t held = (size_t)(s->count >> 3) % HASH_BLOCK;
    size_t edge = held ? HASH_BLOCK - held : 0;
    if (n >= edge + HASH_BLOCK) {
        size_t blocks = (n - edge) / HASH_BLOCK;
        (void)crypto_hash_sha256_update(s, at, edge); /* always 0, as below */
        if (hash_blocks(s->state, at + edge, blocks)) {
            s->count += (uint64_t)blocks * HASH_BLOCK * 8;
            edge += blocks * HASH_BLOCK;
        }
        at += edge;
        n -= edge;
    }
    (void)crypto_hash_sha256_update(s, at, n);
}

/* The last bytes, a one, zeroes and the number of bits: one block or two. */
static size_t hash_pad(const crypto_hash_sha256_state *s, unsigned char ret[static 2 * HASH_BLOCK])
{
    size_t held = (size_t)(s->count >> 3) % HASH_BLOCK;
    size_t blocks = held + 1 + sizeof(s->count) > HASH_BLOCK ? 2 : 1;
    uint64_t bits = htobe64(s->count);
    memcpy(ret, s->buf, held);
    ret[held] = 0x80;
    memset(ret + held + 1, 0, blocks * HASH_BLOCK - held - 1);
    memcpy(ret + blocks * HASH_BLOCK - sizeof(bits), &bits, sizeof(bits));
    return blocks;
}

void hash_end(struct hash_running *h, unsigned char ret[static HASH_BYTES])
{
    crypto_hash_sha256_state *s = (crypto_hash_sha256_state *)(void *)h;
    unsigned char last[2 * HASH_BLOCK];
    if (!hash_blocks(s->state, last, hash_pad(s, last))) {
        (void)crypto_hash_sha256_final(s, ret); /* always 0 */
        return;
    }
    for (size_t i = 0; i < array_len(s->state); i++) {
        uint32_t word = htobe32(s->state[i]);
        memcpy(ret + i * sizeof(word), &word, sizeof(word));
    }
    sodium_memzero(last, sizeof(last));
    sodium_memzero(s, sizeof(*s));
}

const char *hash_so_far_hex(const struct hash_running *h, char ret[static HASH_HEX])
{
    unsigned char digest[HASH_BYTES];
    struct hash_running copy = *h;
    hash_end(&copy, digest);
    return str_hex(digest, sizeof(digest), ret);
}

uint64_t hash_keyed(const unsigned char seed[static 16], const void *p, size_t n)
{
    uint64_t h;
    static_assert(sizeof(h) == crypto_shorthash_BYTES, "SipHash has 8 bytes");
    (void)crypto_shorthash((unsigned char *)&h, p, n, seed); /* always 0 */
    return h;
}

int hash_compare(const void *a, const void *b, size_t n)
{
    return sodium_memcmp(a, b, n);
}

void random_bytes(void *p, size_t n)
{
    randombytes_buf(p, n);
}

char *random_hex_to(char *ret, size_t n)
{
    unsigned char bytes[HASH_BYTES];
    assert(n <= sizeof(bytes));
    random_bytes(bytes, n);
    (void)str_hex(bytes, n, ret);
    sodium_memzero(bytes, sizeof(bytes)); /* those of a key stay nowhere else */
    return ret;
}

void hash_hmac(const void *key,
               size_t key_n,
               const void *p,
               size_t n,
               unsigned char ret[static HASH_BYTES])
{
    crypto_auth_hmacsha256_state s;
    (void)crypto_auth_hmacsha256_init(&s, key, key_n); /* always 0, as below */
    (void)crypto_auth_hmacsha256_update(&s, p, n);
    (void)crypto_auth_hmacsha256_final(&s, ret);
    sodium_memzero(&s, sizeof(s));
}

char *hash_base64(const void *p, size_t n)
{
    size_t room = sodium_base64_ENCODED_LEN(n, sodium_base64_VARIANT_ORIGINAL);
    char *text = xmalloc(room);
    return sodium_bin2base64(text, room, p, n, sodium_base64_VARIANT_ORIGINAL);
}

unsigned char *hash_from_base64(const char *text, size_t *ret_n)
{
    size_t len = strlen(text);
    unsigned char *p = xmalloc(len + 1);
    if (sodium_base642bin(p, len + 1, text, len, NULL, ret_n, NULL,
                          sodium_base64_VARIANT_ORIGINAL) == 0)
        return p;
    free(p);
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h - SHA-256 and random bytes, by libsodium; base64url without padding. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/text.h"

enum { HASH_BYTES = 32, HASH_HEX = 65 };

/* Must be called once before the others; aborts when the system has no randomness. */
void hash_init(void);
void hash_sha256(const void *p, size_t n, unsigned char ret[static HASH_BYTES]);
const char *hash_sha256_hex(const void *p, size_t n, char ret[static HASH_HEX]);
/* The text is a SHA-256 as hash_sha256_hex() writes it: 64 digits, lower case. */
bool hash_is_hex(const char *text);
/* hash_hex() for bytes that come in pieces: begin, add any number of times, end. The state may
 * be copied, kept in a file, and continued on a machine of the same kind. */
struct hash_running {
    uint64_t opaque[13];
};
void hash_begin(struct hash_running *h);
void hash_add(struct hash_running *h, const void *p, size_t n);
void hash_end(struct hash_running *h, unsigned char ret[static HASH_BYTES]);
/* The hash of all bytes so far; h can be continued. */
const char *hash_so_far_hex(const struct hash_running *h, char ret[static HASH_HEX]);
/* For tables: keys that a peer chooses cannot be made to collide on purpose (SipHash). */
uint64_t hash_keyed(const unsigned char seed[static 16], const void *p, size_t n);
/* Constant-time: 0 when equal. */
int hash_compare(const void *a, const void *b, size_t n);
void random_bytes(void *p, size_t n);
/* Random bytes in lower-case hex: an id, or a key. random_hex() takes as many as the array has room
 * for; random_hex_to() writes n of them, HASH_BYTES at most, where 2n + 1 characters fit. Both
 * return the text. */
#define random_hex(array) random_hex_to((array), (TEXT_SIZE(array) - 1) / 2)
char *random_hex_to(char *ret, size_t n);
/* HMAC-SHA-256 with a key of any length. */
void hash_hmac(const void *key,
               size_t key_n,
               const void *p,
               size_t n,
               unsigned char ret[static HASH_BYTES]);
/* Base64 with padding, as HTTP has it. Heap. */
char *hash_base64(const void *p, size_t n);
/* Heap, *ret_n bytes; NULL: it is no base64. */
unsigned char *hash_from_base64(const char *text, size_t *ret_n);

/* SPDX-License-Identifier: Apache-2.0 */
/* hash_blocks.c - SHA-256 with the processor's own instructions; see hash_blocks.h. libsodium
 * computes SHA-256 in plain C, at a fifth of the speed at which a network brings the bytes of an
 * upload; x86 has had instructions for it since 2016. The order of the words in the two
 * registers is that of the instructions: ABEF and CDGH. */
#include "base/digest/hash_blocks.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/* Asking the processor takes a trap in a virtual machine, longer than a small file is hashed: gcc's
 * library asks once. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
static bool has_instructions(void)
{
    return __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.1") &&
           __builtin_cpu_supports("sha");
}
#else
static bool has_instructions(void)
{
    unsigned a, b, c, d;
    const unsigned ssse3 = 1U << 9, sse41 = 1U << 19, sha = 1U << 29;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & ssse3) || !(c & sse41))
        return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & sha);
}
#endif

#define BY_INSTRUCTIONS __attribute__((target("sha,sse4.1,ssse3")))

BY_INSTRUCTIONS static inline __m128i hash_blocks_load(const void *p)
{
    return _mm_loadu_si128((const __m128i_u *)p);
}

/* 64 rounds, four at a time; the message is stretched as they go. */
BY_INSTRUCTIONS static void one_block(__m128i *abef, __m128i *cdgh, const unsigned char *p)
{
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i x = *abef, y = *cdgh, m[4];
    for (int i = 0; i < 4; i++)
        m[i] = _mm_shuffle_epi8(hash_blocks_load(p + (ptrdiff_t)16 * i), big_endian);
    for (int i = 0; i < 16; i++) {
        __m128i k = _mm_add_epi32(m[i & 3], hash_blocks_load(&constants[4 * i]));
        y = _mm_sha256rnds2_epu32(y, x, k);
        x = _mm_sha256rnds2_epu32(x, y, _mm_shuffle_epi32(k, 0x0e));
        if (i >= 12)
            continue;
        __m128i w = _mm_sha256msg1_epu32(m[i & 3], m[(i + 1) & 3]);
        w = _mm_add_epi32(w, _mm_alignr_epi8(m[(i + 3) & 3], m[(i + 2) & 3], 4));
        m[i & 3] = _mm_sha256msg2_epu32(w, m[(i + 3) & 3]);
    }
    *abef = _mm_add_epi32(*abef, x);
    *cdgh = _mm_add_epi32(*cdgh, y);
}

BY_INSTRUCTIONS static void all_blocks(uint32_t state[static 8], const unsigned char *p, size_t n)
{
    __m128i low = _mm_shuffle_epi32(hash_blocks_load(&state[0]), 0xb1);
    __m128i high = _mm_shuffle_epi32(hash_blocks_load(&state[4]), 0x1b);
    __m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xf0);
    for (; n; n--, p += HASH_BLOCK)
        one_block(&abef, &cdgh, p);
    low = _mm_shuffle_epi32(abef, 0x1b);
    high = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i_u *)&state[0], _mm_blend_epi16(low, high, 0xf0));
    _mm_storeu_si128((__m128i_u *)&state[4], _mm_alignr_epi8(high, low, 8));
}

bool hash_blocks(uint32_t state[static 8], const unsigned char *p, size_t blocks)
{
    if (!has_instructions())
        return false;
    all_blocks(state, p, blocks);
    return true;
}
#else
bool hash_blocks(uint32_t state[static 8], const unsigned char *p, size_t blocks)
{
    (void)state, (void)p, (void)blocks;
    return false;
}
#endif

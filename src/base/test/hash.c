/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 at once and in pieces; random bytes in hex. */
#include <stdlib.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/str.h"
#include "base/unit.h"

static void test_known(void **state)
{
    char hex[HASH_HEX];
    (void)state;
    assert_string_equal(hash_sha256_hex("abc", 3, hex),
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_string_equal(hash_sha256_hex("", 0, hex),
                        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_true(hash_is_hex(hex));
    hex[3] = 'E';
    assert_false(hash_is_hex(hex)); /* upper case */
    assert_false(hash_is_hex(""));
    assert_false(hash_is_hex("e3b0c4"));
}

static void test_pieces(void **state)
{
    unsigned char text[300], whole[HASH_BYTES], parts[HASH_BYTES];
    (void)state;
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (unsigned char)(i * 7);
    hash_sha256(text, sizeof(text), whole);
    for (size_t cut = 0; cut <= sizeof(text); cut += 13) {
        struct hash_running h;
        hash_begin(&h);
        hash_add(&h, text, cut);
        hash_add(&h, text + cut, sizeof(text) - cut);
        hash_end(&h, parts);
        assert_memory_equal(parts, whole, HASH_BYTES);
    }
}

/* Large pieces go another way than small ones: all of them must meet. */
static void test_large_pieces(void **state)
{
    enum { ALL = 200000 };
    unsigned char *text = xmalloc(ALL), whole[HASH_BYTES], parts[HASH_BYTES];
    char hex[HASH_HEX], so_far[HASH_HEX];
    uint64_t random = 88172645463325252;
    (void)state;
    for (size_t i = 0; i < ALL; i++)
        text[i] = (unsigned char)(i * 31 + (i >> 8));
    for (int round = 0; round < 200; round++) {
        struct hash_running h;
        size_t size = (size_t)round < 130 ? (size_t)round : ALL - (size_t)round;
        hash_begin(&h);
        for (size_t at = 0; at < size;) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            size_t n = (size_t)(random % (random & 1 ? 200 : 40000));
            n = n < size - at ? n : size - at;
            hash_add(&h, text + at, n);
            at += n;
        }
        hash_sha256(text, size, whole);
        assert_string_equal(hash_so_far_hex(&h, so_far), str_hex(whole, HASH_BYTES, hex));
        hash_end(&h, parts);
        assert_memory_equal(parts, whole, HASH_BYTES);
    }
    free(text);
}

/* It is as long as was asked for, not a byte more is written, and each time it is another one. */
static void test_random_hex(void **state)
{
    (void)state;
    for (size_t n = 0; n <= HASH_BYTES; n++) {
        char one[HASH_HEX + 1], other[HASH_HEX];
        one[2 * n + 1] = '!';
        assert_ptr_equal(random_hex_to(one, n), one);
        assert_int_equal(strlen(one), 2 * n);
        assert_int_equal(strspn(one, "0123456789abcdef"), 2 * n);
        assert_int_equal(one[2 * n + 1], '!');
        if (n >= 8)
            assert_string_not_equal(one, random_hex_to(other, n));
    }
    char id[2 * 6 + 1], even[2 * 6 + 2];
    assert_int_equal(strlen(random_hex(id)), 12);
    assert_int_equal(strlen(random_hex(even)), 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_known), cmocka_unit_test(test_pieces),
                                       cmocka_unit_test(test_large_pieces),
                                       cmocka_unit_test(test_random_hex)};
    hash_init();
    return cmocka_run_group_tests_name("base/hash", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A random walk of the map against a plain array. */
#include "base/map.h"

#include <stdio.h>

#include "base/digest/hash.h"
#include "base/str.h"
#include "base/unit.h"

static void test_random_walk(void **state)
{
    (void)state;
    enum { KEYS = 500 };
    static int values[KEYS];
    static void *model[KEYS];
    const unsigned char seed[16] = {1, 2, 3};
    struct map *m = map_new(seed);
    unsigned rng = 12345;
    size_t count = 0;
    for (int step = 0; step < 50000; step++) {
        rng = rng * 1664525 + 1013904223;
        unsigned k = (rng >> 8) % KEYS;
        char key[16];
        (void)snprintf(key, sizeof(key), "k%u", k);
        assert_ptr_equal(map_find(m, key), model[k]);
        if (rng >> 31) {
            assert_ptr_equal(map_set(m, key, &values[k]), model[k]);
            count += !model[k];
            model[k] = &values[k];
        } else {
            assert_ptr_equal(map_remove(m, key), model[k]);
            count -= !!model[k];
            model[k] = NULL;
        }
        assert_int_equal(map_count(m), count);
    }
    size_t pos = 0, seen = 0;
    const char *key;
    void *v;
    while ((v = map_next(m, &pos, &key))) {
        int64_t i;
        assert_int_equal(str_to_int(key + 1, 0, array_len(model) - 1, &i, NULL), 0);
        assert_ptr_equal(v, model[i]);
        seen++;
    }
    assert_int_equal(seen, count);
    map_free(m);
}

static void test_hash_known_answer(void **state)
{
    (void)state;
    char hex[HASH_HEX];
    hash_init();
    assert_string_equal(hash_sha256_hex("abc", 3, hex),
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_int_equal(hash_compare("abc", "abc", 3), 0);
    /* The vector of SipHash's own paper: 15 bytes 00 01 …, key 00 … 0f. */
    unsigned char bytes[16];
    for (int i = 0; i < 16; i++)
        bytes[i] = (unsigned char)i;
    assert_true(hash_keyed(bytes, bytes, 15) == 0xa129ca6149be45e5);
    assert_int_not_equal(hash_compare("abc", "abd", 3), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_walk),
                                       cmocka_unit_test(test_hash_known_answer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

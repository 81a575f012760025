/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of crc.h. */
#include "base/digest/crc.h"

#include <string.h>

#include "base/unit.h"

static void known_sums(void **state)
{
    (void)state;
    static const char text[] = "The quick brown fox jumps over the lazy dog";
    assert_int_equal(crc32_add(0, "123456789", 9), 0xcbf43926U);
    assert_int_equal(crc32_add(0, text, strlen(text)), 0x414fa339U);
    assert_int_equal(crc32_add(0, "", 0), 0);
}

static void pieces_are_the_whole(void **state)
{
    (void)state;
    unsigned char bytes[100];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)(i * 7);
    uint32_t whole = crc32_add(0, bytes, sizeof(bytes));
    for (size_t cut = 0; cut <= sizeof(bytes); cut++)
        assert_int_equal(crc32_add(crc32_add(0, bytes, cut), bytes + cut, sizeof(bytes) - cut),
                         whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_sums),
        cmocka_unit_test(pieces_are_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

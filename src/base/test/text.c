/* SPDX-License-Identifier: Apache-2.0 */
/* A text fits, fills its array or is cut, and the array always ends with a zero byte. */
#include "base/text.h"

#include "base/unit.h"

static void test_copy(void **state)
{
    (void)state;
    char a[5];
    text_copy(a, "");
    assert_string_equal(a, "");
    text_copy(a, "four");
    assert_string_equal(a, "four");
    text_copy(a, "abcdef");
    assert_string_equal(a, "abcd");
}

static void test_one_byte_holds_the_end_only(void **state)
{
    (void)state;
    char one[1];
    text_copy(one, "x");
    assert_string_equal(one, "");
    text_printf(one, "%d", 5);
    assert_string_equal(one, "");
}

static void test_printf(void **state)
{
    (void)state;
    struct {
        char text[6];
        char after;
    } s = {.after = 'z'};
    text_printf(s.text, "%d-%s", 12, "ab");
    assert_string_equal(s.text, "12-ab");
    text_printf(s.text, "%d-%s", 12, "abcdef");
    assert_string_equal(s.text, "12-ab");
    assert_int_equal(s.after, 'z');
}

static void test_a_pointer_comes_with_its_size(void **state)
{
    (void)state;
    char room[8];
    text_copy_to(room, 4, "abcdef");
    assert_string_equal(room, "abc");
    text_printf_to(room, 3, "%s", "abcdef");
    assert_string_equal(room, "ab");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_one_byte_holds_the_end_only),
        cmocka_unit_test(test_printf),
        cmocka_unit_test(test_a_pointer_comes_with_its_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

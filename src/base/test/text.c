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

static void test_units_of_bytes(void **state)
{
    static const struct {
        double bytes, n;
        const char *unit;
    } rows[] = {{0, 0, "B"},
                {1023, 1023, "B"},
                {1024, 1, "KiB"},
                {-1536, -1.5, "KiB"},
                {3 * 1024.0 * 1024 * 1024, 3, "GiB"},
                {2048 * 1125899906842624.0, 2048, "PiB"}}; /* there is none above */
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        double n = rows[i].bytes;
        assert_string_equal(text_bytes_unit(&n), rows[i].unit);
        assert_true(n == rows[i].n);
    }
}

static void test_formulas(void **state)
{
    static const char *const yes[] = {"=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"},
                             *const no[] = {"", "actor/pg_loss", "a=b", "2-4", "'=1"};
    (void)state;
    for (size_t i = 0; i < array_len(yes); i++)
        assert_true(text_is_formula(yes[i]));
    for (size_t i = 0; i < array_len(no); i++)
        assert_false(text_is_formula(no[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copy),           cmocka_unit_test(test_one_byte_holds_the_end_only),
        cmocka_unit_test(test_printf),         cmocka_unit_test(test_a_pointer_comes_with_its_size),
        cmocka_unit_test(test_units_of_bytes), cmocka_unit_test(test_formulas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

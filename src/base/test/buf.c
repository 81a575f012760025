/* SPDX-License-Identifier: Apache-2.0 */
/* Ceiling, growth and taking of struct buf. */
#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>

#include "base/unit.h"

static void test_ceiling_refuses_and_keeps(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(5);
    assert_int_equal(buf_adds(&b, "abc"), 0);
    assert_int_equal(buf_adds(&b, "def"), -EMSGSIZE);
    assert_string_equal(buf_str(&b), "abc");
    assert_true(b.failed);
    assert_int_equal(buf_adds(&b, "d"), -EMSGSIZE); /* stays failed */
    buf_reset(&b);
    assert_int_equal(buf_addf(&b, "%d%s", 12, "345"), 0);
    assert_string_equal(buf_str(&b), "12345");
    assert_int_equal(buf_addf(&b, "x"), -EMSGSIZE);
    buf_release(&b);
}

static void test_take_and_consume(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(1000);
    assert_string_equal(buf_str(&b), "");
    for (int i = 0; i < 100; i++)
        assert_int_equal(buf_addf(&b, "%02d", i), 0);
    buf_consume(&b, 196);
    assert_string_equal(buf_str(&b), "9899");
    char *s = buf_take(&b);
    assert_string_equal(s, "9899");
    assert_int_equal(b.len, 0);
    free(s);
    s = buf_take(&b);
    assert_string_equal(s, "");
    free(s);
}

static void test_a_whole_text_or_none(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(4);
    assert_int_equal(buf_adds(&b, "abc"), 0);
    char *s = buf_take_whole(&b);
    assert_string_equal(s, "abc");
    free(s);
    assert_int_equal(buf_adds(&b, "abc"), 0);
    assert_int_equal(buf_adds(&b, "de"), -EMSGSIZE);
    assert_null(buf_take_whole(&b));
    assert_int_equal(b.len, 0);
}

static void test_numbers_and_room(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(24);
    assert_int_equal(buf_add_int(&b, INT64_MIN), 0);
    assert_string_equal(buf_str(&b), "-9223372036854775808");
    assert_int_equal(buf_add_int(&b, 0), 0);
    assert_int_equal(buf_addc(&b, ','), 0);
    char *p = buf_room(&b, 2);
    assert_non_null(p);
    p[0] = 'o';
    p[1] = 'k';
    buf_wrote(&b, 2);
    assert_string_equal(buf_str(&b), "-92233720368547758080,ok");
    assert_null(buf_room(&b, 1));
    assert_int_equal(buf_addc(&b, '!'), -EMSGSIZE);
    assert_string_equal(buf_str(&b), "-92233720368547758080,ok");
    buf_release(&b);
}

static void test_escaping(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(64);
    buf_add_url(&b, "aZ0-._~/ %\xc3\xbc");
    assert_string_equal(buf_str(&b), "aZ0-._~%2F%20%25%C3%BC");
    buf_reset(&b);
    buf_add_escaped(&b, "a/b c~", "/", BUF_HEX_LOWER);
    assert_string_equal(buf_str(&b), "a/b%20c%7e");
    assert_false(b.failed);
    for (int i = 0; i < 30; i++)
        buf_add_url(&b, "//");
    assert_true(b.failed);
    buf_release(&b);
}

static void test_fields_of_csv(void **state)
{
    struct buf b = BUF_INIT(64), small = BUF_INIT(6);
    (void)state;
    buf_add_csv(&b, "");
    buf_add_csv(&b, "a\"b,c");
    buf_add_csv(&b, "=1");
    assert_string_equal(buf_str(&b), "\"\"\"a\"\"b,c\"\"'=1\"");
    buf_add_csv(&small, "far too long");
    assert_true(small.failed);
    buf_release(&b);
    buf_release(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ceiling_refuses_and_keeps),
                                       cmocka_unit_test(test_take_and_consume),
                                       cmocka_unit_test(test_a_whole_text_or_none),
                                       cmocka_unit_test(test_numbers_and_room),
                                       cmocka_unit_test(test_escaping),
                                       cmocka_unit_test(test_fields_of_csv)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

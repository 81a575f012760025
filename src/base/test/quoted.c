/* SPDX-License-Identifier: Apache-2.0 */
/* Escapes and folding of YAML scalars in quotes, the cases that libfyaml gets wrong among them. */
#include "base/doc/quoted.h"

#include <errno.h>
#include <string.h>

#include "base/unit.h"

static void check(const char *raw, char quote, const char *expected)
{
    struct buf out = BUF_INIT(1000);
    assert_int_equal(quoted_decode(raw, strlen(raw), quote, &out), 0);
    assert_string_equal(buf_str(&out), expected);
    buf_release(&out);
}

static void refuse(const char *raw, char quote)
{
    struct buf out = BUF_INIT(1000);
    assert_int_equal(quoted_decode(raw, strlen(raw), quote, &out), -EINVAL);
    buf_release(&out);
}

static void test_single(void **state)
{
    (void)state;
    check("", '\'', "");
    check("it''s", '\'', "it's");
    check(" ''''b", '\'', " ''b");
    check("''''''", '\'', "'''");
    check("\\n \"x\" ", '\'', "\\n \"x\" ");
    refuse("a'b", '\'');
}

static void test_folding(void **state)
{
    (void)state;
    check("one  \n  two", '\'', "one two");
    check("one\r\ntwo\rthree", '\'', "one two three");
    check("one \n\n \t\n two", '"', "one\n\ntwo");
    check(" ''''b\n\n  ", '\'', " ''b\n");
    check("one \\\n  two", '"', "one two");
    check("one\\\n  \\ two\\\n\n three", '"', "one two\nthree");
    check("a\\t \n b", '"', "a\t b");
}

static void test_escapes(void **state)
{
    (void)state;
    check("\\a\\b\\t\\n\\v\\f\\r\\e\\ \\\"\\/\\\\", '"', "\a\b\t\n\v\f\r\x1b \"/\\");
    check("\\N\\_\\L\\P", '"', "\xc2\x85\xc2\xa0\xe2\x80\xa8\xe2\x80\xa9");
    check("\\x41\\u00e9\\u4e2D\\U0001F600", '"', "A\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80");
    check("\\ud83d\\ude00", '"', "\xf0\x9f\x98\x80");
    struct buf out = BUF_INIT(10);
    assert_int_equal(quoted_decode("a\\0b", 4, '"', &out), 0);
    assert_int_equal(out.len, 3);
    assert_memory_equal(out.data, "a\0b", 3);
    buf_release(&out);
}

static void test_refusals(void **state)
{
    (void)state;
    static const char *const raw[] = {
        "\\",      "\\q",         "\\x4", "\\xg0", "\\u12", "\\ud83d", "\\ud83dx", "\\ud83d\\u0041",
        "\\udc00", "\\U00110000", "a\"b",
    };
    for (size_t i = 0; i < array_len(raw); i++)
        refuse(raw[i], '"');
    struct buf out = BUF_INIT(2);
    assert_int_equal(quoted_decode("abc", 3, '"', &out), -EMSGSIZE);
    buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single),
        cmocka_unit_test(test_folding),
        cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

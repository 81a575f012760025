/* SPDX-License-Identifier: Apache-2.0 */
/* What Python and drivers put into JSON becomes JSON; good JSON stays as it is. */
#include "ray/clean.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/unit.h"

static void check(const char *in, size_t len, const char *want)
{
    struct buf out = BUF_INIT(4096);
    assert_int_equal(clean_json(in, len, 1000, &out), 0);
    assert_string_equal(buf_str(&out), want);
    buf_release(&out);
}

static void test_good_json_is_unchanged(void **state)
{
    (void)state;
    static const char *const good[] = {
        "{\"a\": [1, -2.5e3, true, null, \"x\\\"y\\\\\", \"\\u00e9\\ud83d\\ude00\"]}",
        "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \x7f\"",
        "",
        "  [ ]\n",
    };
    for (size_t i = 0; i < array_len(good); i++)
        check(good[i], strlen(good[i]), good[i]);
}

static void test_bad_bytes_are_replaced(void **state)
{
    (void)state;
    static const struct {
        const char *in, *want;
    } rows[] = {
        {"\"a\xff\xfe\"", "\"a\\ufffd\\ufffd\""},
        {"\"\xc3\"", "\"\\ufffd\""},            /* cut short by the quote */
        {"\"\xc0\xaf\"", "\"\\ufffd\\ufffd\""}, /* overlong */
        {"\"\xe0\x80\xaf\"", "\"\\ufffd\\ufffd\\ufffd\""},
        {"\"\xed\xa0\x80\"", "\"\\ufffd\\ufffd\\ufffd\""}, /* a surrogate as UTF-8 */
        {"\"\xf4\x90\x80\x80\"", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""},
        {"\"\\udcff\"", "\"\\ufffd\""}, /* Python's surrogateescape */
        {"\"\\ud800x\"", "\"\\ufffdx\""},
        {"\"\\ud800\\ud800\\udc00\"", "\"\\ufffd\\ud800\\udc00\""},
        {"\"a\\u0000b\"", "\"a\\ufffdb\""},
        {"\"a\tb\nc\"", "\"a b c\""},
        {"[NaN, Infinity, -Infinity, \"NaN\"]", "[null, null, null, \"NaN\"]"},
        {"\"\\\"NaN\"", "\"\\\"NaN\""},  /* the escaped quote ends nothing */
        {"\"\\\xff\"", "\"\\\\ufffd\""}, /* left for the reader to refuse */
        {"\"\\u12", "\"\\u12"},
    };
    for (size_t i = 0; i < array_len(rows); i++)
        check(rows[i].in, strlen(rows[i].in), rows[i].want);
}

static void test_ceilings(void **state)
{
    (void)state;
    struct buf out = BUF_INIT(4);
    assert_int_equal(clean_json("[1,2,3]", 7, 1000, &out), -EMSGSIZE);
    buf_release(&out);
    out = BUF_INIT(4096);
    assert_int_equal(clean_json("[1,2,3]", 7, 2, &out), -E2BIG);
    buf_release(&out);
    out = BUF_INIT(4096);
    assert_int_equal(clean_json("[\",,,,,,\"]", 10, 1, &out), 0); /* inside a string: text */
    buf_release(&out);
}

/* Whatever the bytes: what comes out of a string is always something that a reader
 * takes, unless an escape itself is wrong. */
static void test_every_byte_in_a_string_is_readable(void **state)
{
    (void)state;
    for (unsigned a = 1; a < 256; a++)
        for (unsigned b = 1; b < 256; b++) {
            if (a == '\\' || b == '\\' || a == '"' || b == '"')
                continue;
            char in[8] = {'[', '"', (char)a, (char)b, '"', ']'};
            struct buf out = BUF_INIT(64);
            assert_int_equal(clean_json(in, 6, 10, &out), 0);
            json_t *v = json_loadb(out.data, out.len, 0, NULL);
            assert_non_null(v);
            json_decref(v);
            buf_release(&out);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_json_is_unchanged),
        cmocka_unit_test(test_bad_bytes_are_replaced),
        cmocka_unit_test(test_ceilings),
        cmocka_unit_test(test_every_byte_in_a_string_is_readable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* uri.c - tests of decoding, queries, Accept and ETag lists. */
#include <stdio.h>
#include <string.h>

#include "base/unit.h"
#include "http/uri.h"

static int decode(const char *in, bool is_query, char *out, size_t size)
{
    struct err err = {0};
    (void)snprintf(out, size, "%s", in);
    int r = uri_decode(out, is_query, &err);
    assert_true(r == 0 || err.text[0]);
    return r;
}

static void test_decode(void **state)
{
    static const struct {
        const char *in, *out;
    } good[] = {{"", ""},
                {"a", "a"},
                {"%41", "A"},
                {"a%2fb", "a/b"},
                {"%25", "%"},
                {"a+b", "a+b"},
                {"%e4%B8%ad", "\xe4\xb8\xad"},
                {"%7E", "~"},
                {"%F0%9F%98%80", "\xf0\x9f\x98\x80"}};
    static const char *const bad[] = {"%",   "%4",     "%4g",          "%g4",       "%00",
                                      "%0a", "%7f",    "%c0%af",       "%e0%80%af", "%ed%a0%80",
                                      "%ff", "%e4%b8", "%f4%90%80%80", "x%c3",      "%80"};
    char text[64];
    (void)state;
    for (size_t i = 0; i < array_len(good); i++) {
        assert_int_equal(decode(good[i].in, false, text, sizeof(text)), 0);
        assert_string_equal(text, good[i].out);
    }
    for (size_t i = 0; i < array_len(bad); i++)
        assert_int_equal(decode(bad[i], false, text, sizeof(text)), ERR_BAD_REQUEST);
    assert_int_equal(decode("a+b%2B", true, text, sizeof(text)), 0);
    assert_string_equal(text, "a b+");
}

static void test_query(void **state)
{
    char text[] = "a=1&&b=%3d%26&c&a=2&=x";
    struct uri_pair q[8];
    (void)state;
    assert_int_equal(uri_split_query(text, q, 8, NULL), 5);
    assert_string_equal(q[0].name, "a");
    assert_string_equal(q[0].value, "1");
    assert_string_equal(q[1].value, "=&");
    assert_string_equal(q[2].name, "c");
    assert_string_equal(q[2].value, "");
    assert_string_equal(q[3].value, "2");
    assert_string_equal(q[4].name, "");
    char many[] = "a&b&c";
    assert_int_equal(uri_split_query(many, q, 2, NULL), ERR_BAD_REQUEST);
    char bad[] = "a=%zz";
    assert_int_equal(uri_split_query(bad, q, 8, NULL), ERR_BAD_REQUEST);
    assert_int_equal(uri_split_query(NULL, q, 8, NULL), 0);
}

static void test_clean(void **state)
{
    (void)state;
    assert_true(uri_is_clean("/v1/jobs?x=%20"));
    assert_false(uri_is_clean("/a b"));
    assert_false(uri_is_clean("/a#b"));
    assert_false(uri_is_clean("/\x01"));
    assert_false(uri_is_clean("/\xc3\xa4"));
}

static void test_accept(void **state)
{
    (void)state;
    assert_true(accept_allows("*/*", "text/event-stream"));
    assert_true(accept_allows("text/*;q=0.5, application/json", "text/event-stream"));
    assert_true(accept_allows("Text/Event-Stream", "text/event-stream"));
    assert_false(accept_allows("application/json", "text/event-stream"));
    assert_false(accept_allows("text/event-stream;q=0, */*", "text/event-stream"));
    assert_false(accept_allows("text/event-stream; q=0.0", "text/event-stream"));
    assert_true(accept_allows("*/*;q=0, text/*", "text/plain"));
    assert_false(accept_allows("", "text/plain"));
    assert_false(accept_allows(",,;q", "text/plain"));
}

static void test_etags(void **state)
{
    (void)state;
    assert_true(etag_list_has("\"a\"", "a"));
    assert_true(etag_list_has("W/\"b\", \"a\"", "a"));
    assert_true(etag_list_has("W/\"a\"", "a"));
    assert_true(etag_list_has(" *", "a"));
    assert_false(etag_list_has("\"ab\"", "a"));
    assert_false(etag_list_has("a", "a"));
    assert_false(etag_list_has("\"a", "a"));
}

static void test_ranges(void **state)
{
    static const struct {
        const char *header;
        uint64_t size;
        int r;
        uint64_t from, n;
    } rows[] = {
        {"bytes=0-", 10, 1, 0, 10},
        {"bytes=3-", 10, 1, 3, 7},
        {"bytes=3-5", 10, 1, 3, 3},
        {"bytes= 3-5 ", 10, 1, 3, 3},
        {"Bytes=9-9", 10, 1, 9, 1},
        {"bytes=3-99", 10, 1, 3, 7},
        {"bytes=3-99999999999999999999999", 10, 1, 3, 7},
        {"bytes=-3", 10, 1, 7, 3},
        {"bytes=-30", 10, 1, 0, 10},
        {"bytes=10-", 10, ERR_RANGE, 0, 0},
        {"bytes=99999999999999999999-", 10, ERR_RANGE, 0, 0},
        {"bytes=-0", 10, ERR_RANGE, 0, 0},
        {"bytes=0-", 0, ERR_RANGE, 0, 0},
        {"bytes=-1", 0, ERR_RANGE, 0, 0},
        {"bytes=5-3", 10, 0, 0, 0},
        {"bytes=-", 10, 0, 0, 0},
        {"bytes=", 10, 0, 0, 0},
        {"bytes=0-1,3-4", 10, 0, 0, 0},
        {"bytes=a-b", 10, 0, 0, 0},
        {"bytes=+1-2", 10, 0, 0, 0},
        {"lines=1-2", 10, 0, 0, 0},
        {"", 10, 0, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        uint64_t from = 0, n = 0;
        assert_int_equal(range_parse(rows[i].header, rows[i].size, &from, &n), rows[i].r);
        assert_int_equal(from, rows[i].from);
        assert_int_equal(n, rows[i].n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode), cmocka_unit_test(test_query), cmocka_unit_test(test_clean),
        cmocka_unit_test(test_accept), cmocka_unit_test(test_etags), cmocka_unit_test(test_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Typed reading of outside JSON, and the writer against jansson as its judge. */
#include "base/json.h"

#include <math.h>
#include <string.h>

#include "base/unit.h"

static void test_reading_never_trusts_a_type(void **state)
{
    (void)state;
    static const char text[] = "{\"a\":\"12\",\"b\":7,\"c\":1.5,\"d\":true,\"e\":[],\"f\":{}}";
    json_t *v = NULL;
    assert_int_equal(json_parse(text, strlen(text), 1000, &v, NULL), 0);
    assert_int_equal(json_get_int(v, "a", -1), 12);
    assert_int_equal(json_get_int(v, "b", -1), 7);
    assert_int_equal(json_get_int(v, "d", -1), -1);
    assert_true(fabs(json_get_real(v, "c", 0) - 1.5) < 1e-9);
    assert_string_equal(json_get_str(v, "b", "none"), "none");
    assert_true(json_get_bool(v, "d", false));
    assert_null(json_get_object(v, "e"));
    assert_non_null(json_get_array(v, "e"));
    assert_null(json_get_array(v, "zz"));
    json_decref(v);
    struct err err = {0};
    assert_int_equal(json_parse(text, strlen(text), 10, &v, &err), ERR_TOO_LARGE);
    assert_int_equal(json_parse("{\"a\":1,\n]", 9, 100, &v, &err), ERR_BAD_REQUEST);
    assert_non_null(strstr(err.text, "2:"));
    assert_int_equal(json_parse("1", 2, 100, &v, &err), ERR_BAD_REQUEST); /* its NUL too */
    assert_int_equal(json_parse("{\"a\":1,\"a\":2}", 13, 100, &v, &err), ERR_BAD_REQUEST);
}

static void test_writer_is_read_back(void **state)
{
    (void)state;
    struct buf out = BUF_INIT(10000);
    struct jout j = jout_begin(&out);
    char nasty[260];
    for (int c = 1; c < 128; c++)
        nasty[c - 1] = (char)c;
    memcpy(nasty + 127, "\xe4\xbd\xa0\xf0\x9f\x98\x80", 8);
    jout_open(&j, NULL, '{');
    jout_str(&j, "nasty", nasty);
    jout_str(&j, "broken", "a\xff\xc0z\xed\xa0\x80");
    jout_str(&j, "none", NULL);
    jout_open(&j, "list", '[');
    jout_int(&j, NULL, -5);
    jout_real(&j, NULL, NAN);
    jout_bool(&j, NULL, true);
    jout_close(&j, ']');
    jout_time(&j, "at", 1795257300123000);
    jout_time(&j, "never", 0);
    jout_close(&j, '}');
    json_t *v = NULL;
    struct err err = {0};
    assert_int_equal(json_parse(out.data, out.len, 10000, &v, &err), 0);
    assert_string_equal(json_get_str(v, "nasty", ""), nasty);
    assert_string_equal(json_get_str(v, "broken", ""),
                        "a\xef\xbf\xbd\xef\xbf\xbdz\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    assert_true(json_is_null(json_object_get(v, "none")));
    assert_int_equal(json_array_size(json_object_get(v, "list")), 3);
    assert_string_equal(json_get_str(v, "at", ""), "2026-11-21T10:35:00.123Z");
    assert_true(json_is_null(json_object_get(v, "never")));
    json_decref(v);
    buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reading_never_trusts_a_type),
                                       cmocka_unit_test(test_writer_is_read_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Relative and absolute times, in both languages. */
#include "argus/show/when.h"

#include <stdlib.h>
#include <time.h>

#include "base/unit.h"

#define NOW ((usec_t)1800000000 * USEC_SEC)

static void test_point(void **state)
{
    (void)state;
    char text[WHEN_TEXT_MAX];
    struct when w = {.now = NOW};
    assert_string_equal(when_point(&w, 0, text), "-");
    assert_string_equal(when_point(&w, NOW, text), "0s ago");
    assert_string_equal(when_point(&w, NOW - 59 * USEC_SEC, text), "59s ago");
    assert_string_equal(when_point(&w, NOW - 119 * USEC_MIN, text), "1h ago");
    assert_string_equal(when_point(&w, NOW - 49 * USEC_HOUR, text), "2d ago");
    assert_string_equal(when_point(&w, NOW + 3 * USEC_HOUR, text), "in 3h");
    w.lang = MESSAGE_CHINESE;
    assert_string_equal(when_point(&w, NOW - 3 * USEC_MIN, text), "3m前");
    w.utc = true;
    assert_string_equal(when_point(&w, NOW, text), "2027-01-15T08:00:00Z");
}

static void test_here(void **state)
{
    (void)state;
    char text[WHEN_TEXT_MAX];
    struct when w = {.now = NOW + 3 * USEC_MIN};
    assert_int_equal(setenv("TZ", "CST-8", 1), 0);
    tzset();
    assert_string_equal(when_here(&w, 0, text), "-");
    assert_string_equal(when_here(&w, NOW, text), "3m ago (2027-01-15 16:00:00 +0800)");
    w.utc = true;
    assert_string_equal(when_here(&w, NOW, text), "2027-01-15T08:00:00Z");
}

static void test_lasted(void **state)
{
    (void)state;
    char text[WHEN_TEXT_MAX];
    struct when w = {.now = NOW};
    assert_string_equal(when_lasted(&w, 0, NOW, text), "-");
    assert_string_equal(when_lasted(&w, NOW - 250 * USEC_SEC, 0, text), "4m10s");
    assert_string_equal(when_lasted(&w, NOW - USEC_HOUR, NOW - USEC_MIN, text), "59m");
    assert_string_equal(when_lasted(&w, NOW + USEC_HOUR, 0, text), "0s"); /* clocks differ */
}

static void test_get(void **state)
{
    (void)state;
    json_t *v = json_pack("{s:s, s:s, s:i, s:n}", "good", "2027-01-15T08:00:00.500Z", "bad", "soon",
                          "number", 5, "null");
    assert_int_equal(when_get(v, "good"), NOW + USEC_SEC / 2);
    assert_int_equal(when_get(v, "bad"), 0);
    assert_int_equal(when_get(v, "number"), 0);
    assert_int_equal(when_get(v, "null"), 0);
    assert_int_equal(when_get(NULL, "good"), 0);
    json_decref(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_point),
        cmocka_unit_test(test_here),
        cmocka_unit_test(test_lasted),
        cmocka_unit_test(test_get),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

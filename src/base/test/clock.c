/* SPDX-License-Identifier: Apache-2.0 */
/* Times and spans to text and back. */
#include "base/clock.h"

#include <errno.h>

#include "base/unit.h"

static void test_time_round_trip(void **state)
{
    (void)state;
    char text[CLOCK_TEXT_MAX];
    usec_t t = 0;
    assert_string_equal(clock_to_string(1795257300123000, text), "2026-11-21T10:35:00.123Z");
    assert_int_equal(clock_from_string(text, &t, NULL), 0);
    assert_int_equal(t, 1795257300123000);
    assert_int_equal(clock_from_string("2026-11-21T10:35:00Z", &t, NULL), 0);
    assert_int_equal(t, 1795257300000000);
    assert_string_equal(clock_to_string(981173106007000, text), "2001-02-03T04:05:06.007Z");
    assert_string_equal(clock_to_string(0, text), "");
    assert_string_equal(clock_to_string(UINT64_MAX, text), "");
    assert_int_equal(clock_from_string("yesterday", &t, NULL), -EINVAL);
    assert_int_equal(clock_from_string("2026-11-21T10:35:00Zx", &t, NULL), -EINVAL);
}

static void test_spans(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        usec_t span;
        const char *back;
    } good[] = {{"90s", 90 * USEC_SEC, "1m30s"},
                {"30m", 30 * USEC_MIN, "30m"},
                {"12h", 12 * USEC_HOUR, "12h"},
                {"2d", 2 * USEC_DAY, "2d"},
                {"1h30m", 90 * USEC_MIN, "1h30m"},
                {"45", 45 * USEC_SEC, "45s"},
                {"0", 0, "0s"},
                {"1d1s", USEC_DAY + USEC_SEC, "1d"}};
    for (size_t i = 0; i < array_len(good); i++) {
        usec_t span = 1;
        char text[CLOCK_TEXT_MAX];
        assert_int_equal(span_from_string(good[i].text, &span, NULL), 0);
        assert_int_equal(span, good[i].span);
        assert_string_equal(span_to_string(span, text), good[i].back);
    }
    static const char *const bad[] = {
        "", "x", "5x", "-5s", "1h30", "99999999999d", "5s ", " 5s", "99999999999999999999s"};
    for (size_t i = 0; i < array_len(bad); i++) {
        usec_t span = 7;
        assert_int_equal(span_from_string(bad[i], &span, NULL), -EINVAL);
        assert_int_equal(span, 7);
    }
}

static void test_moments(void **state)
{
    (void)state;
    char id[CLOCK_BOOT_ID_MAX], again[CLOCK_BOOT_ID_MAX];
    assert_string_equal(clock_boot_id(id), clock_boot_id(again));
    struct moment a = clock_moment(id), b = clock_moment(id);
    assert_true(a.wall && a.boot && b.boot >= a.boot);
    assert_ptr_equal(a.boot_id, id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_time_round_trip),
                                       cmocka_unit_test(test_spans),
                                       cmocka_unit_test(test_moments)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

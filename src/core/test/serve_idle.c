/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of serve_idle.h: what may be said, when a service sleeps, how long he who wakes it waits.
 */
#include "core/serve/serve_idle.h"

#include <string.h>

#include "base/mem.h"
#include "base/unit.h"

static void test_what_is_said(void **state)
{
    static const struct {
        const char *text;
        usec_t is;
    } good[] = {
        {"off", 0},
        {"0", 0},
        {"0s", 0},
        {"90", 90 * USEC_SEC},
        {"30m", 30 * USEC_MIN},
        {"1h30m", 90 * USEC_MIN},
    };
    static const char *const bad[] = {"", "never", "OFF", "-1", "30 m", "1.5h", "30m off"};
    struct err err = {0};
    (void)state;
    for (size_t i = 0; i < array_len(good); i++) {
        usec_t got = 1;
        assert_int_equal(serve_idle_read(good[i].text, &got, &err), 0);
        assert_true(got == good[i].is);
    }
    for (size_t i = 0; i < array_len(bad); i++) {
        usec_t got = 7;
        assert_int_equal(serve_idle_read(bad[i], &got, &err), ERR_BAD_SPEC);
        assert_string_equal(err.message, "serve_idle");
        assert_true(got == 7);
    }
}

static void test_the_shortest(void **state)
{
    struct err err = {0};
    (void)state;
    assert_int_equal(serve_idle_check(0, USEC_MIN, &err), 0);
    assert_int_equal(serve_idle_check(USEC_MIN, USEC_MIN, &err), 0);
    assert_int_equal(serve_idle_check(59 * USEC_SEC, USEC_MIN, &err), ERR_BAD_SPEC);
    assert_string_equal(err.message, "serve_idle_short");
    assert_non_null(strstr(err.text, "59s"));
    assert_non_null(strstr(err.text, "1m"));
}

static void test_when_it_sleeps(void **state)
{
    struct serve_idle_seen seen = {.idle = USEC_MIN, .answers = true};
    usec_t since = 0, now = 1000 * USEC_SEC;
    (void)state;
    /* From the first look on, and not a moment before its time. */
    assert_false(serve_idle_is_over(&since, &seen, now));
    assert_true(since == now);
    assert_false(serve_idle_is_over(&since, &seen, now + USEC_MIN - 1));
    assert_true(serve_idle_is_over(&since, &seen, now + USEC_MIN));
    /* A request that is under way, however long, is none that ended; its end begins the time. */
    seen.requests = 1;
    assert_false(serve_idle_is_over(&since, &seen, now + 600 * USEC_SEC));
    seen.requests = 0;
    assert_false(serve_idle_is_over(&since, &seen, now + 659 * USEC_SEC));
    assert_true(serve_idle_is_over(&since, &seen, now + 660 * USEC_SEC));
    /* What came between two looks counts. */
    since = now + 659 * USEC_SEC;
    assert_false(serve_idle_is_over(&since, &seen, now + 660 * USEC_SEC));
    /* What is being loaded is not idle, and neither is a service whose next version is. */
    seen.answers = false;
    assert_false(serve_idle_is_over(&since, &seen, now + 2000 * USEC_SEC));
    seen.answers = true;
    assert_false(serve_idle_is_over(&since, &seen, now + 2059 * USEC_SEC));
    seen.is_changing = true;
    assert_false(serve_idle_is_over(&since, &seen, now + 3000 * USEC_SEC));
    seen.is_changing = false;
    assert_true(serve_idle_is_over(&since, &seen, now + 3060 * USEC_SEC));
    /* Never, where it is not asked for; and a request that came after the look's time is no
     * trouble. */
    seen.idle = 0;
    assert_false(serve_idle_is_over(&since, &seen, now + 90000 * USEC_SEC));
    seen.idle = USEC_MIN;
    since = now + 5000 * USEC_SEC;
    assert_false(serve_idle_is_over(&since, &seen, now + 4999 * USEC_SEC));
}

static void test_how_long_it_takes(void **state)
{
    static const struct {
        usec_t took, gone;
        int64_t is;
    } cases[] = {
        {0, 0, SERVE_WAKE_UNKNOWN_S},
        {0, 500 * USEC_SEC, SERVE_WAKE_UNKNOWN_S},
        {40 * USEC_SEC, 0, 40},
        {40 * USEC_SEC, 10 * USEC_SEC + 1, 30},
        {40 * USEC_SEC, 39 * USEC_SEC, SERVE_WAKE_LEAST_S},
        {40 * USEC_SEC, 400 * USEC_SEC, SERVE_WAKE_LEAST_S}, /* longer than the last time */
        {1, 0, SERVE_WAKE_LEAST_S},
    };
    (void)state;
    for (size_t i = 0; i < array_len(cases); i++)
        assert_true(serve_wake_left_s(cases[i].took, cases[i].gone) == cases[i].is);
    assert_true(serve_wake_seconds(1) == 1 && serve_wake_seconds(USEC_SEC + 1) == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_said),
        cmocka_unit_test(test_the_shortest),
        cmocka_unit_test(test_when_it_sleeps),
        cmocka_unit_test(test_how_long_it_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of logtimes.h: nothing that was written since is ever left out, and little else is in. */
#include "fsroot/logs/logtimes.h"

#include <string.h>

#include "base/unit_dir.h"
#include "fsroot/attempt/launch.h"

#define LOG "jobs/j/attempts/1/" ATTEMPT_LOG
#define T0 (1000000 * USEC_SEC)

static uint64_t find(const char *root, usec_t seconds)
{
    return logtimes_find(root, "j", 1, ATTEMPT_LOG, T0 + seconds * USEC_SEC);
}

/* One line of `n` bytes each second for a minute, then an hour of silence, then one more. */
static void test_lines_of_a_minute(void **state)
{
    enum { N = 100 };
    char line[N + 1] = {0};
    struct buf log = BUF_INIT(1 << 20);
    put(*state, LOG, "");
    _cleanup_(freep) char *path = xasprintf("%s/" LOG, (char *)*state);
    struct logtimes *t = logtimes_new(path);
    memset(line, 'x', N);
    line[N - 1] = '\n';
    for (usec_t s = 0; s < 60; s++) {
        logtimes_add(t, line, N, T0 + s * USEC_SEC);
        (void)buf_adds(&log, line);
    }
    for (usec_t s = 60; s < 3600; s++)
        logtimes_idle(t, T0 + s * USEC_SEC);
    logtimes_add(t, line, N / 2, T0 + 3600 * USEC_SEC);
    logtimes_add(t, line + N / 2, N / 2, T0 + 3601 * USEC_SEC);
    (void)buf_adds(&log, line);
    put(*state, LOG, buf_str(&log));
    for (usec_t s = 0; s < 60; s++) { /* the line of second s is there, those long before are not */
        assert_true(find(*state, s) <= (s + 1) * N);
        assert_true(find(*state, s) + 8 * N >= s * N);
    }
    assert_int_equal(find(*state, 70), 60 * N);
    assert_int_equal(find(*state, 3599), 60 * N);
    assert_int_equal(find(*state, 9999), 60 * N); /* the last line is not told yet */
    logtimes_finish(t);
    assert_int_equal(find(*state, 9999), 61 * N);
    assert_int_equal(find(*state, 3600), 60 * N);
    logtimes_free(t);
    buf_release(&log);
}

static void test_what_says_nothing(void **state)
{
    put(*state, LOG, "a\nb\n");
    assert_int_equal(find(*state, 100), 0);
    _cleanup_(freep) char *path = xasprintf("%s/" LOG, (char *)*state);
    struct logtimes *t = logtimes_new(path);
    logtimes_add(t, "a\n", 2, T0);
    logtimes_add(t, "b\nc", 3, T0 - 50 * USEC_SEC); /* the clock was set back */
    logtimes_finish(t);
    logtimes_free(t);
    assert_int_equal(find(*state, 0), 4);
    assert_int_equal(logtimes_find(*state, "j", 1, ATTEMPT_LOG, T0 - 10 * USEC_SEC), 0);
    put(*state, LOG, "a\n"); /* shorter than it was */
    assert_int_equal(find(*state, 10), 0);
    put(*state, LOG ".times", "this is no mark, but long enough for two of them");
    assert_int_equal(find(*state, 10), 0);
}

#define with_root(f) cmocka_unit_test_setup_teardown(f, root_setup, root_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {with_root(test_lines_of_a_minute),
                                       with_root(test_what_says_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

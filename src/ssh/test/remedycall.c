/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of remedycall.c: what it reads out of an answer. The script is tried in
 * tests/daemon/test_remedies.py. */
#include "ssh/remedycall.h"

#include <string.h>

#include "base/unit.h"

static struct remedycall_found found_in(const char *text)
{
    struct remedycall_found f;
    remedycall_read(text, strlen(text), &f);
    return f;
}

static void test_processes(void **state)
{
    (void)state;
    struct remedycall_found f = found_in("PROCESSES=3\nKILLED=1\nLEFT=0\nEND=done\n");
    assert_true(f.is_whole);
    assert_int_equal(f.processes, 3);
    assert_int_equal(f.killed, 1);
    assert_int_equal(f.left, 0);
    assert_int_equal(f.sessions, 0);
}

static void test_directories(void **state)
{
    (void)state;
    struct remedycall_found f =
        found_in("REMOVED=10 /tmp/ray/session_1\nREMOVED=x /tmp/ray/session_2\nEND=done\n");
    assert_true(f.is_whole);
    assert_int_equal(f.sessions, 2);
    assert_int_equal(f.bytes, 10 * 1024);
}

static void test_what_is_cut_off_or_odd(void **state)
{
    (void)state;
    assert_false(found_in("").is_whole);
    struct remedycall_found f = found_in("PROCESSES=3\nKILLED=-4\nLEFT=999999999999\nnoise\n");
    assert_false(f.is_whole);
    assert_int_equal(f.processes, 3);
    assert_int_equal(f.killed, 0);
    assert_int_equal(f.left, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_directories),
        cmocka_unit_test(test_what_is_cut_off_or_odd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

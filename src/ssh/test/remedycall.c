/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of remedycall.c: what it reads out of an answer. The script is tried in
 * tests/daemon/test_remedies.py. */
#include "ssh/remedycall.h"

#include <string.h>

#include "base/message.h"
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

static void take_found(const struct remedycall_found *f, void *arg)
{
    *(struct remedycall_found *)arg = *f;
}

/* Its text is that of a message, as ssh's own, or whoever reads it would be told no reason. */
static void test_a_name_that_cannot_be_used(void **state)
{
    const struct ssh_target t = {0};
    const struct remedycall_want want = {.owner = "../x", .node = "a", .job = "sft-1"};
    struct remedycall_found f = {0};
    char text[400];
    uv_loop_t loop;
    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_non_null(remedycall_new(&loop, &t, &want, USEC_SEC, take_found, &f));
    assert_int_equal(f.trouble, SSH_OK); /* not from inside of the call */
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(f.trouble, SSH_FAILED);
    assert_false(f.is_whole);
    message_to_string(ssh_trouble_to_string(f.trouble), f.text, true, text, sizeof(text));
    assert_non_null(strstr(text, "'../x'"));
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_directories),
        cmocka_unit_test(test_what_is_cut_off_or_odd),
        cmocka_unit_test(test_a_name_that_cannot_be_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

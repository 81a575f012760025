/* SPDX-License-Identifier: Apache-2.0 */
/* Asking a program: what it says, how it fails, and that nobody waits for it for ever. */
#include "shepherd/scout/tool.h"

#include <errno.h>

#include "base/unit.h"

static int run(const char *script, usec_t limit, struct buf *out)
{
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    return tool_run(argv, false, limit, out, NULL);
}

static void test_what_it_says(void **state)
{
    (void)state;
    const char *none[] = {"/no/such/program", NULL};
    _cleanup_(buf_release) struct buf out = BUF_INIT(1000);
    assert_int_equal(run("echo said", USEC_MIN, &out), 0);
    assert_string_equal(buf_str(&out), "said\n");
    assert_int_equal(run("exit 1", USEC_MIN, &out), -EIO);
    assert_int_equal(run("kill -9 $$", USEC_MIN, &out), -EIO);
    assert_int_equal(tool_run(none, false, USEC_MIN, &out, NULL), -ENOENT);
}

static void test_one_that_does_not_end(void **state)
{
    (void)state;
    _cleanup_(buf_release) struct buf out = BUF_INIT(1000), few = BUF_INIT(10);
    assert_int_equal(run("echo a; sleep 1000", USEC_SEC / 10, &out), -ETIME);
    assert_int_equal(run("exec >&-; sleep 1000", USEC_MIN, &out), -ETIME); /* says nothing more */
    assert_int_equal(run("yes", USEC_MIN, &few), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_it_says),
        cmocka_unit_test(test_one_that_does_not_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

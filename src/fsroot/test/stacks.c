/* SPDX-License-Identifier: Apache-2.0 */
/* Asking the nodes of an attempt for stacks. */
#include <errno.h>

#include "base/unit_dir.h"
#include "fsroot/fsroot.h"

static void test_asks_count_up(void **state)
{
    const char *root = *state;
    _cleanup_(freep) char *dir = xasprintf("%s/jobs/j/attempts/1/stacks", root);
    struct err err = {0};
    int n = 0;
    assert_int_equal(fsroot_stacks_ask(root, "j", 1, "{}", &n, &err), 0);
    assert_int_equal(n, 1);
    put(dir, "7.ask", "{}");
    put(dir, "x.ask", "{}");
    put(dir, ".9.ask", "{}");
    assert_int_equal(fsroot_stacks_ask(root, "j", 1, "{}", &n, &err), 0);
    assert_int_equal(n, 8);
    put(dir, "100000.ask", "{}"); /* it counts as none of ours */
    assert_int_equal(fsroot_stacks_ask(root, "j", 1, "{}", &n, &err), 0);
    assert_int_equal(n, 9);
    put(dir, "10000.ask", "{}");
    assert_int_equal(fsroot_stacks_ask(root, "j", 1, "{}", &n, &err), -EMSGSIZE);
    assert_int_equal(fsroot_stacks_ask(root, "../j", 1, "{}", &n, &err), -EINVAL);
}

static void test_answers(void **state)
{
    const char *root = *state;
    _cleanup_(freep) char *scouts = xasprintf("%s/jobs/j/attempts/1/scouts", root);
    _cleanup_(freep) char *at = xasprintf("%s/jobs/j/attempts/1/stacks/3", root);
    _cleanup_(strv_release) struct strv names = {0};
    _cleanup_(buf_release) struct buf text = BUF_INIT(64);
    size_t expected = 77;
    assert_int_equal(fsroot_stacks_answers(root, "j", 1, 3, &names, &expected, NULL), 0);
    assert_int_equal(expected, 0);
    assert_int_equal(names.n, 0);
    assert_int_equal(file_mkdirs(scouts, 0755, NULL), 0);
    assert_int_equal(file_mkdirs(at, 0755, NULL), 0);
    put(scouts, "w1.json", "{}");
    put(scouts, "w2.json", "{}");
    put(at, "w1.json", "{\"pid\":1}");
    put(at, ".w2.json.tmp", "{");
    assert_int_equal(fsroot_stacks_answers(root, "j", 1, 3, &names, &expected, NULL), 0);
    assert_int_equal(expected, 2);
    assert_int_equal(names.n, 1);
    assert_string_equal(names.v[0], "stacks/3/w1.json");
    assert_int_equal(fsroot_stacks_read(root, "j", 1, names.v[0], &text, NULL), 0);
    assert_string_equal(buf_str(&text), "{\"pid\":1}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_asks_count_up, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_answers, root_setup, root_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

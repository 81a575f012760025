/* SPDX-License-Identifier: Apache-2.0 */
/* Asking the nodes of an attempt for stacks. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>

#include "base/test/unit_look.h"
#include "base/unit_dir.h"
#include "fsroot/attempt/stacks.h"

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
    _cleanup_(pairs_release) struct pairs them = {0}, later = {0};
    assert_int_equal(fsroot_stacks_answers(root, "j", 1, 3, &names, NULL), 0);
    assert_int_equal(fsroot_scouts_list(root, "j", 1, &them, NULL), 0);
    assert_int_equal(names.n + them.n, 0);
    put(scouts, "w1.json", "{}");
    put(scouts, "w2.json", "{}");
    put(scouts, "other", "{}");
    put(at, "w1.json", "{\"pid\":1}");
    put(at, ".w2.json.tmp", "{");
    assert_int_equal(fsroot_stacks_answers(root, "j", 1, 3, &names, NULL), 0);
    assert_int_equal(names.n, 1);
    assert_string_equal(names.v[0], "w1");
    assert_int_equal(fsroot_stacks_read(root, "j", 1, 3, "w1", &text, NULL), 0);
    assert_string_equal(buf_str(&text), "{\"pid\":1}");
    assert_int_equal(fsroot_scouts_list(root, "j", 1, &them, NULL), 0);
    assert_int_equal(them.n, 2);
    _cleanup_(freep) char *w2 = xasprintf("%s/w2.json", scouts);
    const struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    assert_int_equal(utimensat(AT_FDCWD, w2, long_ago, 0), 0); /* it was written again */
    assert_int_equal(fsroot_scouts_list(root, "j", 1, &later, NULL), 0);
    assert_string_equal(pairs_find(&them, "w1"), pairs_find(&later, "w1"));
    assert_string_not_equal(pairs_find(&them, "w2"), pairs_find(&later, "w2"));
    assert_int_equal(fsroot_scouts_list(root, "../j", 1, &later, NULL), -EINVAL);
}

static void test_a_failed_look_is_no_missing_scout(void **state)
{
    const char *root = *state;
    _cleanup_(pairs_release) struct pairs them = {0};
    put(root, "jobs/j/attempts/1/scouts/w1.json", "{}");
    for (size_t i = 0; i < array_len(look_errors); i++) {
        look_broken = (struct look_broken){"w1.json", look_errors[i], 0, false};
        assert_int_equal(fsroot_scouts_list(root, "j", 1, &them, NULL), -look_errors[i]);
    }
    look_broken = (struct look_broken){"w1.json", ENOENT, 0, false};
    assert_int_equal(fsroot_scouts_list(root, "j", 1, &them, NULL), 0);
    look_broken = (struct look_broken){0};
    assert_int_equal(them.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_failed_look_is_no_missing_scout, root_setup,
                                        root_teardown),
        cmocka_unit_test_setup_teardown(test_asks_count_up, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_answers, root_setup, root_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Which checkpoints of a job may be gone on from. */
#include <errno.h>

#include "base/unit_dir.h"
#include "fsroot/fsroot.h"

static void check(const char *root, int64_t step, int result, int64_t expected)
{
    int64_t found = -1;
    struct err err = {0};
    assert_int_equal(fsroot_checkpoint_find(root, "j", step, &found, &err), result);
    assert_int_equal(found, result < 0 ? -1 : expected);
    assert_true(result == 0 || *err.text);
}

static void test_steps(void **state)
{
    const char *root = *state;
    _cleanup_(freep) char *dir = xasprintf("%s/jobs/j/checkpoints", root);
    check(root, 0, ERR_NOT_FOUND, 0);
    for (int step = 10; step <= 40; step += 10) {
        _cleanup_(freep) char *one = xasprintf("%s/global_step_%d/actor", dir, step);
        assert_int_equal(file_mkdirs(one, 0755, NULL), 0);
    }
    check(root, 10, ERR_NOT_FOUND, 0); /* no tracker: none was finished */
    put(dir, "latest_checkpointed_iteration.txt", "30");
    check(root, 0, 0, 30);
    check(root, 10, 0, 10);
    check(root, 30, 0, 30);
    check(root, 40, ERR_NOT_FOUND, 0); /* torn */
    check(root, 15, ERR_NOT_FOUND, 0);
    put(dir, "latest_checkpointed_iteration.txt", "25\n");
    check(root, 0, ERR_NOT_FOUND, 0); /* it names what is gone */
    put(dir, "latest_checkpointed_iteration.txt", "");
    check(root, 0, ERR_NOT_FOUND, 0);
    put(dir, "latest_checkpointed_iteration.txt", "many");
    check(root, 10, ERR_NOT_FOUND, 0);
}

static void test_names(void **state)
{
    int64_t found;
    assert_int_equal(fsroot_checkpoint_find(*state, "../j", 0, &found, NULL), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_steps, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_names, root_setup, root_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

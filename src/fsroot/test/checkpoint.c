/* SPDX-License-Identifier: Apache-2.0 */
/* Which checkpoints of a job may be gone on from. */
#include <errno.h>

#include "fsroot/ckpt/checkpoint.h"
#include "fsroot/test/ckpt_make.h"

static void check(const char *root, int64_t step, int result, int64_t expected)
{
    int64_t found = -1;
    struct err err = {0};
    assert_int_equal(fsroot_checkpoint_find(root, "j", NULL, step, &found, &err), result);
    assert_int_equal(found, result < 0 ? -1 : expected);
    assert_true(result == 0 || *err.text);
}

static void test_steps(void **state)
{
    const char *root = *state;
    put(root, "jobs/j/meta.json", "{}");
    check(root, 0, ERR_NOT_FOUND, 0);
    for (int step = 10; step <= 40; step += 10)
        put_checkpoint(root, "j", step, 1);
    check(root, 10, ERR_NOT_FOUND, 0); /* no tracker: none was finished */
    put_tracker(root, "j", "30");
    check(root, 0, 0, 30);
    check(root, 10, 0, 10);
    check(root, 30, 0, 30);
    check(root, 40, ERR_NOT_FOUND, 0); /* torn */
    check(root, 15, ERR_NOT_FOUND, 0);
    put_tracker(root, "j", "25\n"); /* it names what is gone */
    check(root, 0, 0, 20);
    put_tracker(root, "j", ""); /* it was being written */
    check(root, 0, 0, 40);
    put(root, "jobs/j/checkpoints/global_step_40/data.pt", "PK");
    check(root, 40, ERR_NOT_FOUND, 0);
    check(root, 0, 0, 30);
}

static void test_names(void **state)
{
    int64_t found;
    assert_int_equal(fsroot_checkpoint_find(*state, "../j", NULL, 0, &found, NULL), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_steps, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_names, root_setup, root_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

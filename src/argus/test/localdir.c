/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of localdir.h: what is a directory here. */
#include "argus/job/localdir.h"

#include "base/unit.h"

static void knows_what_is_here(void **state)
{
    (void)state;
    assert_true(localdir_is("."));
    assert_true(localdir_is("./code"));
    assert_true(localdir_is("../code"));
    assert_false(localdir_is("mine@1"));
    assert_false(localdir_is("/private/users/alice/code"));
    assert_false(localdir_is("${USER_ROOT}/code"));
    assert_false(localdir_is(".hidden"));
    assert_false(localdir_is(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_what_is_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

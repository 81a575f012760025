/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of localdir.h: what is a directory here, and what its snapshot is called. */
#include "argus/localdir.h"

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

static void is_called(const char *path, const char *name)
{
    char out[LOCALDIR_NAME_MAX + 1];
    assert_string_equal(localdir_name(path, out), name);
}

static void names_are_those_of_snapshots(void **state)
{
    (void)state;
    is_called("/a/code", "code");
    is_called("/a/My Code (2)", "my-code--2-");
    is_called("/a/.verl_x.1", "verl_x.1");
    is_called("/a/\xe4\xbb\xa3\xe7\xa0\x81", "code");
    is_called("/", "code");
    is_called("/a/0123456789012345678901234567890123456789xyz",
              "0123456789012345678901234567890123456789");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_what_is_here),
        cmocka_unit_test(names_are_those_of_snapshots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

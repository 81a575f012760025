/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of code.h: what the text that a job keeps of its snapshots is asked. */
#include "argusd/content/code.h"

#include "base/unit.h"

#define TEXT                                                                                       \
    "[{\"key\":\"code\",\"name\":\"verl@1\",\"common\":true,\"hash\":\"abcd\",\"path\":\"/s/"      \
    "ef01\"},"                                                                                     \
    "{\"key\":\"working_dir\",\"name\":\"my@2\",\"hash\":\"2345\",\"path\":\"/s/2345\"}]"

static void test_which_content_it_has(void **state)
{
    (void)state;
    assert_true(code_has(TEXT, "abcd") && code_has(TEXT, "2345"));
    assert_false(code_has(TEXT, "ef01")); /* of a path, not a hash */
    assert_false(code_has(TEXT, "abc") || code_has(TEXT, "verl@1"));
    assert_false(code_has(NULL, "abcd") || code_has("[]", "abcd") || code_has("{", "abcd"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_which_content_it_has)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

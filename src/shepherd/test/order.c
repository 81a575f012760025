/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of the command: Ray's, ours over it, the prefix in front. */
#include "shepherd/attempt/order.h"

#include <errno.h>
#include <string.h>

#include "base/unit.h"

static void test_environment(void **state)
{
    (void)state;
    const char *const base[] = {
        "RAY_ADDRESS=a:1", "A=ray", "A=again", "EMPTY=", "no variable", "=x", "EQ=a=b", NULL};
    _cleanup_(launch_release) struct launch l = {0};
    _cleanup_(pairs_release) struct pairs env = {0};
    pairs_set(&l.env, "B", "$A \xff");
    order_environment(&l, base, &env);
    assert_int_equal(env.n, 5);
    assert_string_equal(pairs_find(&env, "RAY_ADDRESS"), "a:1");
    assert_string_equal(pairs_find(&env, "A"), "ray");
    assert_string_equal(pairs_find(&env, "EMPTY"), "");
    assert_string_equal(pairs_find(&env, "EQ"), "a=b");
    assert_string_equal(pairs_find(&env, "B"), "$A \xff");
    pairs_set(&l.env, "A", "ours");
    l.pythonpath_prefix = xstrdup("/hook");
    order_environment(&l, base, &env);
    assert_string_equal(pairs_find(&env, "A"), "ours");
    assert_string_equal(pairs_find(&env, "PYTHONPATH"), "/hook");
    pairs_set(&l.env, "PYTHONPATH", "/job");
    order_environment(&l, base, &env);
    assert_string_equal(pairs_find(&env, "PYTHONPATH"), "/hook:/job");
}

static void test_no_directory(void **state)
{
    (void)state;
    struct order o;
    struct err err;
    assert_int_equal(order_read("/no/such/attempt", &o, &err), -ENOENT);
    assert_non_null(strstr(err.text, "/no/such/attempt/launch.json' is not there"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_environment),
                                       cmocka_unit_test(test_no_directory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of argusd/jobs/census.h. */
#include "argusd/jobs/census.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const unsigned char seed[16] = {7};

static void test_words(void **state)
{
    char cluster[] = "default", big[] = "big", small[] = "small", ray[] = "ray", sft[] = "sft";
    const struct job one = {.cluster = cluster, .pool = big, .workload = ray};
    const struct job two = {.cluster = cluster, .pool = small, .workload = sft};
    struct census *c = census_new(seed);
    (void)state;
    assert_true(census_has(c, NULL, NULL, NULL));
    assert_false(census_has(c, "default", NULL, NULL));
    census_add(c, &one);
    census_add(c, &one);
    census_add(c, &two);
    assert_true(census_has(c, "default", "big", "ray"));
    assert_true(census_has(c, NULL, "big", "sft")); /* of two jobs */
    assert_false(census_has(c, NULL, "ray", NULL));
    assert_false(census_has(c, "other", "big", "ray"));
    census_remove(c, &one);
    assert_true(census_has(c, NULL, "big", NULL));
    census_remove(c, &one);
    assert_false(census_has(c, NULL, "big", NULL));
    assert_false(census_has(c, NULL, NULL, "ray"));
    assert_true(census_has(c, "default", "small", "sft"));
    census_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_words)};
    return cmocka_run_group_tests_name("argusd/census", tests, NULL, NULL);
}

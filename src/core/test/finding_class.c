/* SPDX-License-Identifier: Apache-2.0 */
/* The words of the classes, and what follows from them. */
#include "core/spec/finding_class.h"

#include "base/str.h"
#include "base/unit.h"

static void test_words_both_ways(void **state)
{
    (void)state;
    for (int i = 0; i < FINDING_CLASS_COUNT; i++) {
        enum finding_class c = (enum finding_class)i;
        assert_int_equal(finding_class_from_string(finding_class_to_string(c)), i);
        assert_true(*finding_class_meaning(c));
    }
    assert_int_equal(finding_class_from_string(""), -1);
    assert_int_equal(finding_class_from_string("gpu_oo"), -1);
    assert_int_equal(finding_class_from_string(NULL), -1);
}

static size_t count(enum finding_flags flag)
{
    size_t n = 0;
    for (int i = 0; i < FINDING_CLASS_COUNT; i++)
        n += finding_class_is((enum finding_class)i, flag);
    return n;
}

/* A node is blamed for the failure, or the finding names it, never both. */
static void test_what_follows(void **state)
{
    (void)state;
    for (int i = 0; i < FINDING_CLASS_COUNT; i++) {
        enum finding_class c = (enum finding_class)i;
        assert_false(finding_class_is(c, FINDING_BLAMES_NODE) &&
                     finding_class_is(c, FINDING_NAMES_NODE));
        if (finding_class_is(c, FINDING_RESTARTS))
            assert_false(finding_class_is(c, FINDING_NO_RESTART));
    }
    assert_int_equal(count(FINDING_BLAMES_NODE), 13);
    assert_int_equal(count(FINDING_RESTARTS), 5);
    assert_int_equal(count(FINDING_OF_TRIAL), 4);
    assert_int_equal(count(FINDING_IS_DEATH), 6);
    assert_true(finding_class_is(FINDING_PLATFORM, FINDING_IS_INFRA));
    assert_true(finding_class_is(FINDING_TIMEOUT_OR_HANG, FINDING_NAMES_NODE));
    assert_true(finding_class_is(FINDING_NODE_LOST, FINDING_IS_LOSS));
    assert_false(finding_class_is(FINDING_GPU_OOM, FINDING_BLAMES_NODE));
}

static void test_which_tell_something(void **state)
{
    (void)state;
    assert_false(finding_class_tells(FINDING_NONE));
    assert_false(finding_class_tells(FINDING_UNKNOWN));
    assert_true(finding_class_tells(FINDING_ACTOR_DIED));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_both_ways),
        cmocka_unit_test(test_what_follows),
        cmocka_unit_test(test_which_tell_something),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The values of Ray's replies: names of states both ways, named amounts, the
 * record that is only a ghost, copies that own their texts. */
#include "ray/reply.h"

#include <stdio.h>
#include <string.h>

#include "base/unit.h"

static void test_names_both_ways(void **state)
{
    (void)state;
    for (unsigned i = 0; i < RAY_JOB_STATUS_END; i++)
        assert_int_equal(ray_job_status_from_string(ray_job_status_to_string(i)), i);
    for (unsigned i = 0; i < RAY_ACTOR_STATE_END; i++)
        assert_int_equal(ray_actor_state_from_string(ray_actor_state_to_string(i)), i);
    for (unsigned i = 0; i < RAY_GROUP_STATE_END; i++)
        assert_int_equal(ray_group_state_from_string(ray_group_state_to_string(i)), i);
    assert_int_equal(ray_job_status_from_string("running"), RAY_JOB_UNKNOWN);
    assert_int_equal(ray_job_status_from_string(NULL), RAY_JOB_UNKNOWN);
    assert_string_equal(ray_job_status_to_string((enum ray_job_status)99), "UNKNOWN");
}

static void test_only_three_are_terminal(void **state)
{
    (void)state;
    unsigned n = 0;
    for (unsigned i = 0; i < RAY_JOB_STATUS_END; i++)
        n += ray_job_status_is_terminal(i);
    assert_int_equal(n, 3);
    assert_false(ray_job_status_is_terminal(RAY_JOB_UNKNOWN));
    assert_false(ray_job_status_is_terminal(RAY_JOB_PENDING));
    assert_false(ray_job_status_is_terminal(RAY_JOB_RUNNING));
}

static void test_amounts_are_sorted_and_unique(void **state)
{
    (void)state;
    struct ray_amounts a = {0};
    for (int i = 99; i >= 0; i--) {
        char name[16];
        (void)snprintf(name, sizeof(name), "r%02d", i % 50); /* fits */
        ray_amounts_set(&a, name, i);
    }
    assert_int_equal(a.n, 50);
    for (size_t i = 1; i < a.n; i++)
        assert_true(strcmp(a.v[i - 1].name, a.v[i].name) < 0);
    assert_true(ray_amounts_find(&a, "r07") == 7);
    assert_true(ray_amounts_find(&a, "none") == 0);
    ray_amounts_release(&a);
    assert_true(ray_amounts_find(&a, "r07") == 0);
    ray_amounts_release(&a);
}

static void test_ghost(void **state)
{
    (void)state;
    char text[] = "Entrypoint not found.", other[] = "python x.py";
    struct ray_job job = {.status = RAY_JOB_FAILED, .entrypoint = text};
    assert_true(ray_job_is_ghost(&job));
    job.status = RAY_JOB_RUNNING;
    assert_false(ray_job_is_ghost(&job));
    job = (struct ray_job){.status = RAY_JOB_FAILED, .entrypoint = other};
    assert_false(ray_job_is_ghost(&job));
    job.entrypoint = NULL;
    assert_false(ray_job_is_ghost(&job));
}

static void test_version_copy(void **state)
{
    (void)state;
    struct ray_version a = {.text = xstrdup("2.60.0"), .session_name = xstrdup("s"), .minor = 60};
    struct ray_version b = {.text = xstrdup("old"), .session_name = xstrdup("old")};
    ray_version_copy(&b, &a);
    ray_version_release(&a);
    assert_string_equal(b.text, "2.60.0");
    assert_string_equal(b.session_name, "s");
    assert_int_equal(b.minor, 60);
    ray_version_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_both_ways),
        cmocka_unit_test(test_only_three_are_terminal),
        cmocka_unit_test(test_amounts_are_sorted_and_unique),
        cmocka_unit_test(test_ghost),
        cmocka_unit_test(test_version_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

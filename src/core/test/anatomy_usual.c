/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of anatomy_usual.h. */
#include "core/training/anatomy_usual.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/unit.h"

static bool add_job(struct anatomy_usual *u, double generate, double reward)
{
    json_t *anatomy = json_pack("{s:i, s:f, s:[{s:s, s:f}, {s:s, s:f}]}", "steps", 5,
                                "step_seconds", 100 * generate, "stages", "stage", "generate",
                                "share", generate, "stage", "reward", "share", reward);
    bool more = anatomy_usual_add(u, anatomy);
    json_decref(anatomy);
    return more;
}

static bool is_near(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

static void a_few_jobs_say_nothing(void **state)
{
    struct anatomy_usual u = {0};
    struct anatomy_usual_page page;
    json_t *none = json_pack("{s:i}", "steps", 0);
    (void)state;
    assert_true(anatomy_usual_add(&u, NULL));
    assert_true(anatomy_usual_add(&u, none));
    json_decref(none);
    assert_int_equal(u.jobs, 0);
    for (int i = 0; i < ANATOMY_USUAL_LEAST - 1; i++)
        assert_true(add_job(&u, 0.5, 0.1));
    assert_false(anatomy_usual_fill(&u, &page));
}

static void the_median_of_each_stage(void **state)
{
    struct anatomy_usual u = {0};
    struct anatomy_usual_page page;
    (void)state;
    assert_true(add_job(&u, 0.9, 0.0));
    assert_true(add_job(&u, 0.5, 0.3));
    assert_true(add_job(&u, 0.6, 0.2));
    assert_true(anatomy_usual_fill(&u, &page));
    assert_int_equal(page.jobs, 3);
    assert_true(is_near(page.step_s, 60));
    assert_string_equal(page.stage[ANATOMY_REWARD].stage, "reward");
    assert_true(is_near(page.stage[ANATOMY_GENERATE].share, 0.6));
    assert_true(is_near(page.stage[ANATOMY_REWARD].share, 0.2));
    assert_true(is_near(page.stage[ANATOMY_SAVE].share, 0));
    assert_true(add_job(&u, 0.8, 0.4)); /* of four it lies between the two in the middle */
    assert_true(anatomy_usual_fill(&u, &page));
    assert_true(is_near(page.stage[ANATOMY_GENERATE].share, 0.7));
    assert_true(is_near(page.stage[ANATOMY_REWARD].share, 0.25));
}

static void only_the_first_jobs_count(void **state)
{
    struct anatomy_usual u = {0};
    struct anatomy_usual_page page;
    (void)state;
    for (int i = 1; i < ANATOMY_USUAL_JOBS; i++)
        assert_true(add_job(&u, 0.5, 0.1));
    assert_false(add_job(&u, 0.5, 0.1));
    assert_false(add_job(&u, 0.9, 0.9));
    assert_true(anatomy_usual_fill(&u, &page));
    assert_int_equal(page.jobs, ANATOMY_USUAL_JOBS);
    assert_true(is_near(page.stage[ANATOMY_GENERATE].share, 0.5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_few_jobs_say_nothing),
        cmocka_unit_test(the_median_of_each_stage),
        cmocka_unit_test(only_the_first_jobs_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

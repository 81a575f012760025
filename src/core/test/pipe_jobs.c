/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of pipe_jobs.h: what is told of the JobSpecs of steps, and where. */
#include "core/pipe/pipe_jobs.h"

#include <string.h>

#include "base/str.h"

#include "pipe_made.h"

static struct pipe *read_steps(const char *steps)
{
    _cleanup_(freep) char *text = xasprintf("name: p\nparams: {n: {}}\nsteps:\n%s", steps);
    return pipe_made(text);
}

static void assert_problem(const struct problems *ps, const char *code, const char *field, int line)
{
    for (size_t i = 0; i < ps->n; i++)
        if (str_eq(ps->v[i].code, code) && str_eq(ps->v[i].field, field)) {
            assert_int_equal(ps->v[i].line, line);
            assert_true(ps->v[i].column > 0);
            return;
        }
    fail_msg("%s of %s is not told", code, field);
}

static void test_keys_and_values(void **state)
{
    (void)state;
    struct problems ps = {0};
    struct pipe *p = read_steps("  a:\n"
                                "    with:\n"
                                "      worklod: ray\n"
                                "      nnodes: 0\n"
                                "      checkpoint:\n"
                                "        keep_lst: 3\n"
                                "        keep_best: {mode: \"${{ params.n }}\"}\n"
                                "  b: {uses: check, with: {that: true}}\n");
    pipe_jobs_check(p, &ps);
    assert_int_equal(ps.n, 4);
    assert_problem(&ps, "key_missing", "steps.a.with.workload", 6);
    assert_problem(&ps, "unknown_key", "steps.a.with.worklod", 6);
    assert_problem(&ps, "outside_bounds", "steps.a.with.nnodes", 7);
    assert_problem(&ps, "unknown_key", "steps.a.with.checkpoint.keep_lst", 9);
    problems_release(&ps);
    pipe_free(p);
}

static void test_expressions_may_become_anything(void **state)
{
    (void)state;
    struct problems ps = {0};
    struct pipe *p = read_steps("  a:\n"
                                "    with:\n"
                                "      workload: \"${{ params.n }}\"\n"
                                "      nnodes: \"${{ params.n }}\"\n"
                                "      timeout: \"${{ params.n }}h\"\n"
                                "      env: [\"A=${{ params.n }}\"]\n"
                                "      restart: {max: \"${{ params.n }}\"}\n"
                                "      checkpoint: none\n");
    pipe_jobs_check(p, &ps);
    assert_int_equal(ps.n, 0);
    pipe_free(p);
    p = read_steps("  a:\n    with: {workload: ray, \"nnodez\": \"${{ params.n }}\"}\n");
    pipe_jobs_check(p, &ps);
    assert_int_equal(ps.n, 1); /* the key is wrong, whatever its value becomes */
    assert_problem(&ps, "unknown_key", "steps.a.with.nnodez", 5);
    problems_release(&ps);
    pipe_free(p);
}

static void test_presets_are_checked_elsewhere(void **state)
{
    (void)state;
    static const char filled[] =
        "{\"workload\":\"ray\",\"nnodes\":\"many\",\"timeout\":\"${{ x }}\"}";
    struct problems ps = {0}, found = {0};
    struct pipe *p = read_steps("  a:\n    with: {preset: x, steps: 3}\n"
                                "  b:\n    with: {preset: \"${{ params.n }}\"}\n"
                                "  c:\n    with: {workload: ray}\n");
    pipe_jobs_check(p, &ps);
    assert_int_equal(ps.n, 0);
    assert_string_equal(pipe_jobs_preset(pipe_find_step(p, "a")), "x");
    assert_null(pipe_jobs_preset(pipe_find_step(p, "b")));
    assert_null(pipe_jobs_preset(pipe_find_step(p, "c")));
    pipe_jobs_check_filled(pipe_find_step(p, "a"), filled, strlen(filled), &ps);
    assert_int_equal(ps.n, 1);
    assert_problem(&ps, "not_whole", "steps.a.with.nnodes", 5);
    problems_add(&found, PROBLEM_ERROR, "", 0, 0, "no_value", MESSAGE_NO_ARGS);
    pipe_jobs_tell(pipe_find_step(p, "c"), &found, &ps);
    assert_problem(&ps, "no_value", "steps.c.with", 9);
    problems_release(&found);
    problems_release(&ps);
    pipe_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_and_values),
        cmocka_unit_test(test_expressions_may_become_anything),
        cmocka_unit_test(test_presets_are_checked_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Exit statuses and lines of jobs as servers of any age tell them. */
#include "argus/job/jobview.h"

#include <stdlib.h>
#include <string.h>

#include "base/unit.h"

static json_t *job(const char *text)
{
    json_t *v = json_loads(text, 0, NULL);
    assert_non_null(v);
    return v;
}

static void check(const char *text, int status, const char *line)
{
    struct when w = {.now = (usec_t)1800000000 * USEC_SEC};
    json_t *v = job(text);
    char *got = jobview_last_line(v, &w);
    assert_string_equal(got, line);
    assert_int_equal(jobview_exit_status(v), status);
    free(got);
    json_decref(v);
}

static void test_ends(void **state)
{
    (void)state;
    check("{\"id\":\"x\",\"state\":\"SUCCEEDED\",\"started_at\":\"2027-01-15T07:00:00Z\","
          "\"ended_at\":\"2027-01-15T07:04:10Z\"}",
          0, "job x SUCCEEDED in 4m10s");
    check("{\"id\":\"x\",\"state\":\"STOPPED\"}", 11, "job x STOPPED");
    check("{\"id\":\"x\",\"state\":\"TIMEOUT\",\"started_at\":\"2027-01-15T07:00:00Z\","
          "\"ended_at\":\"2027-01-15T08:00:00Z\"}",
          12, "job x TIMEOUT after 1h");
    check("{\"id\":\"x\",\"state\":\"FAILED\",\"finding\":{\"class\":\"gpu_oom\",\"node\":\"node-"
          "7\"}}",
          10, "job x FAILED gpu_oom on node-7 (argus diagnose x)");
    check("{\"id\":\"x\",\"state\":\"FAILED\",\"finding\":null,\"exit\":{\"code\":3},"
          "\"driver\":{\"node\":\"w1\"}}",
          10, "job x FAILED exit code 3 on w1 (argus diagnose x)");
    check("{\"id\":\"x\",\"state\":\"FAILED\",\"exit\":{\"cause\":\"signal\",\"code\":-1,"
          "\"signal\":\"SIGKILL\"}}",
          10, "job x FAILED signal SIGKILL (argus diagnose x)");
    check("{\"id\":\"x\",\"state\":\"FAILED\",\"exit\":{\"cause\":\"lost\",\"code\":-1},"
          "\"reason\":{\"code\":\"lost\"}}",
          13, "job x FAILED lost (argus diagnose x)");
    check("{\"id\":\"x\",\"state\":\"FAILED\"}", 10, "job x FAILED (argus diagnose x)");
}

static void test_worst(void **state)
{
    (void)state;
    assert_int_equal(jobview_worse(0, 0), 0);
    assert_int_equal(jobview_worse(0, 11), 11);
    assert_int_equal(jobview_worse(12, 11), 12);
    assert_int_equal(jobview_worse(12, 10), 10);
    assert_int_equal(jobview_worse(10, 13), 13);
}

static void test_progress(void **state)
{
    (void)state;
    json_t *v = job("{\"id\":\"x\",\"state\":\"QUEUED\",\"position\":2,\"flags\":[\"HELD\"],"
                    "\"reason\":{\"code\":\"c\",\"text\":\"the pool is full\"}}");
    char *line = jobview_progress(v);
    assert_string_equal(line, "job x QUEUED,HELD, position 2: the pool is full");
    free(line);
    json_decref(v);
    v = job("{\"id\":\"x\",\"state\":\"RUNNING\",\"position\":null,\"reason\":{\"code\":\"c\"},"
            "\"nodes\":[{\"name\":\"w1\"},\"w2\",3]}");
    line = jobview_progress(v);
    assert_string_equal(line, "job x RUNNING on w1,w2: c");
    free(line);
    json_decref(v);
}

static void test_members_of_any_type(void **state)
{
    (void)state;
    static const char *const odd[] = {"{}", "{\"id\":1,\"state\":[],\"flags\":\"x\",\"reason\":7}"};
    for (size_t i = 0; i < array_len(odd); i++) {
        json_t *v = job(odd[i]);
        char *st = jobview_state(v), *gang = jobview_gang(v), *reason = jobview_reason(v);
        assert_string_equal(st, "-");
        assert_string_equal(gang, "-");
        assert_string_equal(reason, "");
        free(st);
        free(gang);
        free(reason);
        json_decref(v);
    }
    json_t *v = job("{\"nnodes\":\"2\",\"n_gpus_per_node\":0.5}");
    char *gang = jobview_gang(v);
    assert_string_equal(gang, "2×0.5");
    free(gang);
    json_decref(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_worst),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_members_of_any_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

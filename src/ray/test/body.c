/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a submit: only what was given, nothing that Ray would refuse. */
#include "ray/body.h"

#include <stdlib.h>
#include <string.h>

#include "base/unit.h"

static void check_body(const struct ray_submit *what, const char *want)
{
    json_t *body = NULL;
    struct err err = {0};
    assert_int_equal(body_new(what, &body, &err), 0);
    char *text = json_dumps(body, JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(text, want);
    free(text);
    json_decref(body);
}

static void check_refused(const struct ray_submit *what, const char *part)
{
    json_t *body = NULL;
    struct err err = {0};
    assert_int_equal(body_new(what, &body, &err), ERR_USAGE);
    assert_null(body);
    assert_non_null(strstr(err.text, part));
}

static void test_least(void **state)
{
    (void)state;
    check_body(&(struct ray_submit){.submission_id = "a", .entrypoint = "echo \"x\""},
               "{\"entrypoint\":\"echo \\\"x\\\"\",\"submission_id\":\"a\"}");
}

static void test_all(void **state)
{
    (void)state;
    struct pairs env = {0}, metadata = {0}, labels = {0};
    struct ray_amounts resources = {0};
    pairs_set(&env, "B", "2");
    pairs_set(&env, "A", "new");
    pairs_set(&metadata, "argus", "k1");
    pairs_set(&labels, "argus.node", "w1");
    ray_amounts_set(&resources, "worker_node", 1);
    ray_amounts_set(&resources, "argus_node_w1", 0.001);
    struct ray_submit what = {
        .submission_id = "a",
        .entrypoint = "e",
        .runtime_env = "{\"working_dir\":\"/w\",\"env_vars\":{\"A\":\"old\",\"C\":\"3\"}}",
        .env = &env,
        .metadata = &metadata,
        .num_cpus = 1,
        .num_gpus = 0.5,
        .memory_bytes = 1ull << 33,
        .resources = &resources,
        .labels = &labels,
    };
    check_body(&what, "{\"entrypoint\":\"e\",\"entrypoint_label_selector\":{\"argus.node\":\"w1\"},"
                      "\"entrypoint_memory\":8589934592,\"entrypoint_num_cpus\":1,"
                      "\"entrypoint_num_gpus\":0.5,"
                      "\"entrypoint_resources\":{\"argus_node_w1\":0.001,\"worker_node\":1},"
                      "\"metadata\":{\"argus\":\"k1\"},"
                      "\"runtime_env\":{\"env_vars\":{\"A\":\"new\",\"B\":\"2\",\"C\":\"3\"},"
                      "\"working_dir\":\"/w\"},\"submission_id\":\"a\"}");
    pairs_release(&env);
    pairs_release(&metadata);
    pairs_release(&labels);
    ray_amounts_release(&resources);
}

static void test_refusals(void **state)
{
    (void)state;
    struct pairs bad = {0};
    pairs_set(&bad, "K", "\xff");
    struct ray_submit good = {.submission_id = "a", .entrypoint = "e"};
    struct ray_submit what = good;
    what.submission_id = "";
    check_refused(&what, "submission id");
    what = good;
    what.entrypoint = NULL;
    check_refused(&what, "entrypoint");
    what = good;
    what.entrypoint = "\xc3(";
    check_refused(&what, "UTF-8");
    what = good;
    what.runtime_env = "[]";
    check_refused(&what, "not a JSON object");
    what.runtime_env = "{";
    check_refused(&what, "broken JSON");
    what.runtime_env = "{\"env_vars\":[]}";
    what.env = &bad;
    check_refused(&what, "env_vars");
    what.runtime_env = NULL;
    check_refused(&what, "'K'");
    what = good;
    what.metadata = &bad;
    check_refused(&what, "'K'");
    pairs_release(&bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_least),
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

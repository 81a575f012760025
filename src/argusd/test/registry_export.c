/* SPDX-License-Identifier: Apache-2.0 */
/* The spec of the job that merges: what it takes over of the training's, and which options of the
 * merger follow from it. */
#include "argusd/imports/registry_export.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/ground/jobspec.h"
#include "base/digest/hash.h"
#include "base/str.h"

#include "base/unit.h"

static const struct settings SETTINGS = {.shared_root = (char *)(uintptr_t) "/s"};

static struct job *job_with(const char *text)
{
    struct spec spec = {0};
    struct problems ps = {0};
    struct demand demand = {0};
    const struct job_given given = {.id = "train-1",
                                    .user = "alice",
                                    .cluster = "c",
                                    .text = text,
                                    .demand = &demand,
                                    .now = USEC_SEC};
    assert_int_equal(jobspec_read(&SETTINGS, text, strlen(text), "alice", false, &spec, &ps), 0);
    struct job *job = job_of_spec(&spec, &given);
    spec_release(&spec);
    problems_release(&ps);
    return job;
}

/* The plan for step 20 of a training with these keys beside those that it must have. */
static struct registry_export plan_of(const char *workload, const char *keys)
{
    static const unsigned char seed[16];
    struct registry_export x = {0};
    struct err err = {0};
    struct importer im = {.settings = &SETTINGS, .used = idset_new(seed)};
    _cleanup_(freep) char *text =
        xasprintf("{workload: %s, model_id: /s/common/m, n_gpus_per_node: 1, "
                  "train_file: /s/common/t.parquet, val_file: "
                  "/s/common/v.parquet, project: p%s}",
                  workload, keys);
    struct job *job = job_with(text);
    assert_int_equal(registry_export_plan(&im, job, 20, &x, &err), 0);
    idset_free(im.used);
    job_free(job);
    return x;
}

static void test_what_it_takes_over(void **state)
{
    struct registry_export x = plan_of(
        "grpo", ", name: mine, pool: [a, b], code_path: /s/common/code/v, save_freq: 10, "
                "extra_pythonpath: [/s/common/x], env: {A: b, MY_TOKEN: hidden}, secrets: [KEY], "
                "runtime_env: {py_executable: /s/common/venv/bin/python, env_vars: {C: d}}");
    _cleanup_(freep) char *want = xasprintf(
        "{\"workload\":\"merge\",\"submission_id\":\"%s\",\"name\":\"export of train-1, step 20\","
        "\"nnodes\":1,\"project\":\"p\",\"pool\":[\"a\",\"b\"],\"code_path\":\"/s/common/code/v\","
        "\"extra_pythonpath\":[\"/s/common/x\"],\"env\":{\"A\":\"b\",\"C\":\"d\"},"
        "\"runtime_env\":{\"py_executable\":\"/s/common/venv/bin/python\"},"
        "\"model_id\":\"/s/jobs/train-1/checkpoints/global_step_20/actor\",\"overrides\":[],"
        "\"timeout\":\"4h\"}",
        x.id);
    (void)state;
    assert_string_equal(x.spec, want);
    assert_true(str_starts(x.id, "merge-"));
    _cleanup_(freep) char *target = xasprintf("/s/jobs/%s/output/model", x.id);
    assert_string_equal(x.target, target);
    struct job *merge = job_with(x.spec); /* it is a good one */
    assert_string_equal(merge->workload, "merge");
    job_free(merge);
    registry_export_release(&x);
}

static void test_options_of_the_merger(void **state)
{
    static const struct {
        const char *workload, *keys, *has;
    } cases[] = {
        {"sft", ", code: verl@0.9.1",
         "\"model_id\":\"/s/jobs/train-1/checkpoints/global_step_20\",\"overrides\":[]"},
        {"ppo", ", code: verl@0.9.1", "\"code\":\"verl@0.9.1\""},
        {"ppo", ", overrides: [actor_rollout_ref.actor.strategy=megatron]",
         "\"overrides\":[\"--backend=megatron\"]"},
        {"grpo", ", overrides: [actor_rollout_ref.model.trust_remote_code=True]",
         "\"overrides\":[\"--trust-remote-code\"]"},
    };
    (void)state;
    for (size_t i = 0; i < array_len(cases); i++) {
        struct registry_export x = plan_of(cases[i].workload, cases[i].keys);
        assert_non_null(strstr(x.spec, cases[i].has));
        assert_null(strstr(x.spec, "code_path"));
        registry_export_release(&x);
    }
}

static void test_what_saves_nothing(void **state)
{
    static const unsigned char seed[16];
    struct registry_export x = {0};
    struct err err = {0};
    struct importer im = {.settings = &SETTINGS, .used = idset_new(seed)};
    struct job *job = job_with("{workload: ray, entrypoint: 'true'}");
    (void)state;
    assert_int_equal(registry_export_plan(&im, job, 20, &x, &err), ERR_REFUSED);
    assert_non_null(strstr(err.text, "no checkpoint to export"));
    assert_null(x.spec);
    idset_free(im.used);
    job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_it_takes_over),
        cmocka_unit_test(test_options_of_the_merger),
        cmocka_unit_test(test_what_saves_nothing),
    };
    hash_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of evalspec.h. */
#include "core/spec/evalspec.h"

#include <string.h>

#include "base/str.h"
#include "base/unit.h"

#define TRAINING                                                                                    \
    "workload: grpo\nsubmission_id: grpo-7\nname: mine\nproject: rlhf\npool: [a, b]\n"              \
    "priority: 90\nn_gpus_per_node: 4\nmodel_id: /m\ntrain_file: /t\nval_file: /v\nsave_freq: 10\n" \
    "restart: {max: 3}\nnotify: [ops]\nenv: {HOW: x, WANDB_API_KEY: secret}\n"                      \
    "runtime_env: {env_vars: {HF_TOKEN: secret, A: b}}\noverrides: [a.b=1]\n"

static const struct evalspec_of OF = {.job = "grpo-7", .step = 20, .attempt = 1};

static json_t *filled(const char *yaml, const struct evalspec_of *of)
{
    char *text = evalspec_template_of(yaml);
    assert_non_null(text);
    char *whole = evalspec_fill(text, of);
    json_t *o = json_loads(whole, 0, NULL);
    assert_true(json_is_object(o));
    freep(&text);
    freep(&whole);
    return o;
}

static void assert_member(const json_t *o, const char *key, const char *json)
{
    char *is = json_dumps(json_object_get(o, key), JSON_COMPACT | JSON_ENCODE_ANY);
    assert_string_equal(str_or(is, "none"), json);
    freep(&is);
}

static void the_training_itself(void **state)
{
    (void)state;
    json_t *o =
        filled(TRAINING "eval_on_save: {n_gpus_per_node: 2, env: {HOW: y}, overrides: c=2}", &OF);
    assert_member(o, "workload", "\"grpo\"");
    assert_member(o, "submission_id", "\"grpo-7-eval-20\"");
    assert_member(o, "name", "\"eval of grpo-7, step 20\"");
    assert_member(o, "resume", "\"grpo-7@20\"");
    assert_member(o, "checkpoint", "\"none\"");
    assert_member(o, "priority", "0");
    assert_member(o, "pool", "[\"a\",\"b\"]");
    assert_member(o, "n_gpus_per_node", "2");
    assert_member(o, "env", "{\"HOW\":\"y\"}");
    assert_member(o, "runtime_env", "{\"env_vars\":{\"A\":\"b\"}}");
    assert_member(
        o, "overrides",
        "[\"a.b=1\",\"c=2\",\"trainer.val_only=True\",\"trainer.val_before_train=True\"]");
    assert_member(o, "save_freq", "none");
    assert_member(o, "restart", "none");
    assert_member(o, "notify", "none");
    assert_member(o, "eval_on_save", "none");
    json_decref(o);
}

static void a_job_of_its_own(void **state)
{
    (void)state;
    json_t *o = filled(TRAINING "eval_on_save: {workload: ray, priority: 10, entrypoint: [e, "
                                "'${CHECKPOINT}/actor', '${STEP}', '${JOB}', '${HOME}', '$']}",
                       &OF);
    assert_member(o, "entrypoint",
                  "[\"e\",\"${SHARED_ROOT}/jobs/grpo-7/checkpoints/global_step_20/actor\",\"20\","
                  "\"grpo-7\",\"${HOME}\",\"$\"]");
    assert_member(o, "project", "\"rlhf\"");
    assert_member(o, "priority", "10");
    assert_member(o, "model_id", "none");
    json_decref(o);
}

static void none(void **state)
{
    (void)state;
    assert_null(evalspec_template_of(TRAINING));
    assert_null(evalspec_template_of(TRAINING "eval_on_save: [a]"));
    assert_null(evalspec_template_of("[]"));
    assert_null(evalspec_template_of("{"));
    assert_null(evalspec_fill("[]", &OF));
    assert_null(evalspec_fill("{", &OF));
}

static void ids(void **state)
{
    static const char LONG[] = "a23456789-b23456789-c23456789-d23456789-e23456789-f23456789-g2";
    char a[SPEC_ID_BUF], b[SPEC_ID_BUF], other[sizeof(LONG)];
    struct evalspec_of of = OF;
    (void)state;
    evalspec_id(&of, a);
    assert_string_equal(a, "grpo-7-eval-20");
    of.attempt = 3;
    evalspec_id(&of, a);
    assert_string_equal(a, "grpo-7-eval-20.3");
    of.job = LONG;
    evalspec_id(&of, a);
    assert_true(strlen(a) == SPEC_ID_MAX && str_ends(a, "-eval-20.3"));
    assert_int_equal(spec_check_id(a, &(struct err){0}), 0);
    memcpy(other, LONG, sizeof(LONG));
    other[sizeof(LONG) - 2] = '3'; /* beyond what is kept of it */
    of.job = other;
    evalspec_id(&of, b);
    assert_string_not_equal(a, b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_training_itself),
        cmocka_unit_test(a_job_of_its_own),
        cmocka_unit_test(none),
        cmocka_unit_test(ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

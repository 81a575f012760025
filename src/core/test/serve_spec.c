/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of serve_spec.h: what may be asked for, in both forms, and every key that may not. */
#include "core/serve/serve_spec.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/unit.h"

static int spec_of(const char *text, struct serve_ask *ret, struct problems *ps)
{
    return serve_ask_read(text, strlen(text), NULL, ret, ps);
}

static void test_a_model(void **state)
{
    struct serve_ask a;
    struct problems ps = {0};
    (void)state;
    assert_int_equal(
        spec_of("{\"model\":\"sums@2\",\"name\":\"sums\",\"gpus\":0.5,\"keep\":\"cold\"}", &a, &ps),
        0);
    assert_string_equal(a.spec.model, "sums@2");
    assert_true(a.says_keep && a.keep == SERVE_KEEP_COLD);
    assert_int_equal(a.spec.engine, SERVE_TRANSFORMERS);
    assert_true(a.spec.replicas == 1 && a.spec.max_queued_requests == 64);
    assert_true(a.spec.request_timeout == 600 * USEC_SEC);
    assert_float_equal(serve_spec_gpus(&a.spec), 0.5, 0);
    assert_float_equal(serve_spec_cpus(&a.spec), 1, 0);
    struct serve_ask next;
    const char *change = "{\"model\":\"sums@3\"}";
    assert_int_equal(serve_ask_read(change, strlen(change), &a.spec, &next, &ps), 0);
    assert_string_equal(next.spec.model, "sums@3");
    assert_true(!next.says_keep && next.keep == SERVE_KEEP_WARM);
    assert_float_equal(next.spec.gpus, 0.5, 0);
    serve_ask_release(&next);
    serve_ask_release(&a);
    assert_int_equal(ps.n, 0);
}

/* It is the service's, as `keep` is: the next version says it again only to change it. */
static void test_when_it_sleeps(void **state)
{
    static const char *const bad[] = {"{\"model\":\"m\",\"idle\":\"soon\"}",
                                      "{\"model\":\"m\",\"idle\":-5}"};
    static const char off[] = "{\"idle\":\"off\"}", other[] = "{\"cpus\":2}",
                      inner[] = "{\"config\":\"{model: m, idle: 90s}\"}";
    struct serve_ask a, next;
    (void)state;
    for (size_t i = 0; i < array_len(bad); i++) {
        struct problems ps = {0};
        assert_int_equal(spec_of(bad[i], &a, &ps), ERR_BAD_SPEC);
        assert_string_equal(ps.v[0].code, "serve_idle");
        assert_string_equal(ps.v[0].field, "idle");
        serve_ask_release(&a);
        problems_release(&ps);
    }
    struct problems ps = {0};
    assert_int_equal(spec_of("{\"model\":\"m\",\"idle\":\"30m\"}", &a, &ps), 0);
    assert_true(a.idle && a.idle_for == 30 * USEC_MIN);
    assert_int_equal(serve_ask_read(other, strlen(other), &a.spec, &next, &ps), 0);
    assert_null(next.idle);
    serve_ask_release(&next);
    assert_int_equal(serve_ask_read(off, strlen(off), &a.spec, &next, &ps), 0);
    assert_true(next.idle && !next.idle_for);
    serve_ask_release(&next);
    serve_ask_release(&a);
    assert_int_equal(spec_of(inner, &a, &ps), 0);
    assert_true(a.idle_for == 90 * USEC_SEC);
    serve_ask_release(&a);
    assert_int_equal(ps.n, 0);
    assert_true(serve_knows_key("idle"));
}

/* Its model has no name yet; until it has, it goes by the job's. */
static void test_a_checkpoint(void **state)
{
    static const struct {
        const char *body;
        int64_t at;
    } cases[] = {
        {"{\"job\":\"grpo-7\"}", SERVE_STEP_LATEST},
        {"{\"job\":\"grpo-7\",\"step\":\"latest\"}", SERVE_STEP_LATEST},
        {"{\"job\":\"grpo-7\",\"step\":\"best\"}", SERVE_STEP_BEST},
        {"{\"job\":\"grpo-7\",\"step\":\"200\"}", 200},
        {"{\"config\":\"{job: grpo-7, step: 200}\"}", 200},
    };
    struct problems ps = {0};
    (void)state;
    for (size_t i = 0; i < array_len(cases); i++) {
        struct serve_ask a;
        assert_int_equal(spec_of(cases[i].body, &a, &ps), 0);
        assert_string_equal(a.job, "grpo-7");
        assert_string_equal(a.spec.model, "grpo-7");
        assert_true(a.at == cases[i].at);
        serve_ask_release(&a);
    }
    /* The next version of a model: its name is not said a second time. */
    struct serve_ask a, next;
    assert_int_equal(spec_of("{\"model\":\"sums@2\",\"gpus\":2}", &a, &ps), 0);
    assert_int_equal(serve_ask_read(cases[0].body, strlen(cases[0].body), &a.spec, &next, &ps), 0);
    assert_string_equal(next.spec.model, "grpo-7");
    assert_float_equal(next.spec.gpus, 2, 0);
    serve_ask_release(&next);
    serve_ask_release(&a);
    assert_int_equal(ps.n, 0);
    assert_true(serve_knows_key("model") && !serve_knows_key("job") && !serve_knows_key("step"));
}

static void test_rays_own_form(void **state)
{
    static const char body[] =
        "{\"config\":\"applications:\\n- name: translator\\n  route_prefix: /t\\n  import_path: "
        "translator:app\\n  runtime_env: {env_vars: {LANG: C}}\\n  deployments:\\n  - name: Translator\\n"
        "    num_replicas: 2\\n    ray_actor_options: {num_cpus: 0.5}\\n\"}";
    struct serve_ask a;
    struct problems ps = {0};
    (void)state;
    assert_int_equal(spec_of(body, &a, &ps), 0);
    assert_string_equal(a.name, "translator");
    assert_string_equal(a.spec.app, "translator:app");
    assert_string_equal(pairs_find(&a.spec.env, "LANG"), "C");
    assert_int_equal(a.spec.deployments.n, 1);
    assert_float_equal(serve_spec_cpus(&a.spec), 1, 0);
    assert_int_equal(ps.n, 1); /* the route is argusd's: a warning */
    assert_string_equal(ps.v[0].code, "serve_key_whole");

    /* What the code says, and the spec over it. */
    struct err err = {0};
    struct field_list l = {0};
    _cleanup_(json_unrefp) json_t *found = json_loads(
        "[{\"name\":\"Translator\",\"num_replicas\":1,\"num_cpus\":3,\"num_gpus\":0}]", 0, NULL);
    assert_int_equal(serve_spec_merge(&a.spec, found, &l, &err), 0);
    const struct serve_deployment *d = l.v;
    assert_true(d[0].num_replicas == 2);
    assert_float_equal(d[0].num_cpus, 0.5, 0);
    serve_deployments_release(&l);
    _cleanup_(json_unrefp) json_t *more =
        json_loads("[{\"name\":\"Translator\"},{\"name\":\"Other\",\"num_cpus\":2}]", 0, NULL);
    assert_int_equal(serve_spec_merge(&a.spec, more, &l, &err), ERR_BAD_SPEC);
    assert_string_equal(err.message, "serve_beyond_lease");
    _cleanup_(json_unrefp) json_t *other = json_loads("[{\"name\":\"Other\"}]", 0, NULL);
    assert_int_equal(serve_spec_merge(&a.spec, other, &l, &err), ERR_BAD_SPEC);
    assert_string_equal(err.message, "serve_no_deployment");
    _cleanup_(json_unrefp) json_t *none = json_loads("[]", 0, NULL);
    assert_int_equal(serve_spec_merge(&a.spec, none, &l, &err), ERR_BAD_SPEC);
    serve_ask_release(&a);
    problems_release(&ps);
}

/* A replica that asks for nothing would land on the head. */
static void test_nothing_is_not_asked_for(void **state)
{
    struct serve_ask a;
    struct problems ps = {0};
    struct field_list l = {0};
    (void)state;
    assert_int_equal(spec_of("{\"app\":\"m:a\"}", &a, &ps), 0);
    _cleanup_(json_unrefp) json_t *found =
        json_loads("[{\"name\":\"A\",\"num_cpus\":0},{\"name\":\"B\",\"num_cpus\":0}]", 0, NULL);
    assert_int_equal(serve_spec_merge(&a.spec, found, &l, NULL), 0);
    const struct serve_deployment *d = l.v;
    assert_float_equal(d[0].num_cpus, 0.1, 0);
    assert_true(d[0].num_replicas == 1);
    serve_deployments_release(&l);
    serve_ask_release(&a);
}

static void test_refused(void **state)
{
    static const struct {
        const char *body, *code;
    } cases[] = {
        {"{}", "serve_model_or_app"},
        {"{\"model\":\"m\",\"job\":\"j\"}", "serve_model_or_app"},
        {"{\"app\":\"a:b\",\"job\":\"j\"}", "serve_model_or_app"},
        {"{\"model\":\"m\",\"step\":\"best\"}", "serve_step_alone"},
        {"{\"job\":\"j\",\"step\":\"first\"}", "no_checkpoint_text"},
        {"{\"job\":\"j\",\"step\":\"0\"}", "no_checkpoint_text"},
        {"{\"model\":\"m\",\"app\":\"a:b\"}", "serve_model_or_app"},
        {"{\"app\":\"a.b\"}", "serve_app_path"},
        {"{\"app\":\"a:b;c\"}", "serve_app_path"},
        {"{\"model\":\"m\",\"name\":\"m-v2\"}", "serve_name"},
        {"{\"model\":\"m\",\"engine\":\"vllm\"}", "serve_engine_gpus"},
        {"{\"model\":\"m\",\"engine_args\":{\"a\":1}}", "serve_engine_no_args"},
        {"{\"model\":\"m\",\"engine\":\"vllm\",\"gpus\":2,\"engine_args\":{\"tensor_parallel_size\":4}}",
         "serve_tensor_parallel"},
        {"{\"model\":\"m\",\"engine\":\"sglang\",\"gpus\":1,\"engine_args\":{\"port\":4}}",
         "serve_key_taken"},
        {"{\"model\":\"m\",\"env\":{\"HF_TOKEN\":\"x\"}}", "serve_env_secret"},
        {"{\"model\":\"m\",\"env\":{\"PYTHONPATH\":\"/x\"}}", "serve_key_taken"},
        {"{\"model\":\"m\",\"min_replicas\":3,\"max_replicas\":2}", "serve_bounds"},
        {"{\"model\":\"m\",\"gpus\":1.5}", "serve_gpus_part"},
        {"{\"app\":\"a:b\",\"check_path\":\"x\"}", "serve_check_path"},
        {"{\"app\":\"a:b\",\"deployments\":[{\"name\":\"A\",\"autoscaling_config\":{}}]}",
         "serve_key_taken"},
        {"{\"app\":\"a:b\",\"deployments\":[{\"name\":\"A\",\"ray_actor_options\":{\"resources\":{}}}]}",
         "serve_key_taken"},
        {"{\"app\":\"a:b\",\"deployments\":[{\"name\":\"A\"},{\"name\":\"A\"}]}",
         "serve_deployment_twice"},
        {"{\"app\":\"a:b\",\"deployments\":[{\"name\":\"A\",\"num_replica\":1}]}", "unknown_key"},
        {"{\"app\":\"a:b\",\"deployments\":{}}", "serve_deployments"},
        {"{\"app\":\"a:b\",\"route_prefix\":\"/x\"}", "unknown_key"},
        {"{\"config\":\"applications: []\"}", "serve_one_app"},
        {"{\"config\":\"app: a:b\\nconfig: x\"}", "serve_config_twice"},
        {"{\"config\":\"applications:\\n- import_path: a:b\\n  external_scaler_enabled: true\"}",
         "serve_key_taken"},
        {"{\"config\":\"applications:\\n- import_path: a:b\\n  runtime_env: {pip: [x]}\"}",
         "serve_key_taken"},
        {"[]", "serve_mapping"},
    };
    (void)state;
    for (size_t i = 0; i < array_len(cases); i++) {
        struct serve_ask a;
        struct problems ps = {0};
        bool found = false;
        int r = spec_of(cases[i].body, &a, &ps);
        for (size_t k = 0; k < ps.n; k++)
            found |= str_eq(ps.v[k].code, cases[i].code);
        if (r != ERR_BAD_SPEC || !found)
            fail_msg("%s: not %s but %s", cases[i].body, cases[i].code,
                     ps.n ? ps.v[0].code : "taken");
        serve_ask_release(&a);
        problems_release(&ps);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_model),       cmocka_unit_test(test_a_checkpoint),
        cmocka_unit_test(test_rays_own_form), cmocka_unit_test(test_nothing_is_not_asked_for),
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_when_it_sleeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of serve_doc.h: each application whole, held to its machine, and the comparison with what
 * Ray shows. */
#include "core/serve/serve_doc.h"

#include <string.h>

#include "base/mem.h"
#include "base/unit.h"

static json_t *doc_of(const char *body, const struct field_list *deployments, const char *share)
{
    struct serve_ask a;
    struct problems ps = {0};
    assert_int_equal(serve_ask_read(body, strlen(body), NULL, &a, &ps), 0);
    a.spec.model_path = xstrdup("/r/models/sums/2");
    const struct serve_app app = {.name = "sums-v2",
                                  .service = "sums",
                                  .spec = &a.spec,
                                  .deployments = deployments,
                                  .label = "argus.node",
                                  .node = "h1",
                                  .share = share,
                                  .lib = "/r/argus/lib",
                                  .code = a.spec.app ? "/r/snap" : NULL};
    _cleanup_(freep) char *text = serve_doc_app(&app);
    assert_non_null(text);
    json_t *doc = json_loads(text, 0, NULL);
    assert_non_null(doc);
    serve_ask_release(&a);
    return doc;
}

static void held_to(const json_t *doc, size_t n)
{
    const json_t *all = json_object_get(doc, "deployments");
    assert_int_equal(json_array_size(all), n);
    for (size_t i = 0; i < n; i++) {
        const json_t *options = json_object_get(json_array_get(all, i), "ray_actor_options");
        const json_t *selector = json_object_get(options, "label_selector");
        assert_string_equal(json_get_str(selector, "argus.node", ""), "h1");
    }
}

static void test_a_model(void **state)
{
    (void)state;
    _cleanup_(json_unrefp) json_t *d =
        doc_of("{\"model\":\"sums@2\",\"gpus\":1,\"cpus\":4}", NULL, "argus_share_3");
    held_to(d, 1);
    assert_string_equal(json_get_str(d, "route_prefix", ""), "/s/sums-v2");
    assert_string_equal(json_get_str(json_object_get(d, "args"), "model", ""), "/r/models/sums/2");
    const json_t *one = json_array_get(json_object_get(d, "deployments"), 0);
    const json_t *options = json_object_get(one, "ray_actor_options");
    assert_float_equal(json_get_real(options, "num_cpus", 0), 4, 0);
    assert_float_equal(json_get_real(json_object_get(options, "resources"), "argus_share_3", 0), 1,
                       0);
    assert_true(json_get_int(one, "max_queued_requests", -1) == 64);
}

static void test_an_application(void **state)
{
    struct serve_deployment v[] = {
        {.name = (char[]){"A"}, .num_replicas = 2, .num_cpus = 0.5, .num_gpus = 0.25},
        {.name = (char[]){"B"},
         .num_replicas = 1,
         .num_cpus = 1,
         .user_config = (char[]){"{\"x\":1}"}}};
    const struct field_list l = {.v = v, .n = 2};
    (void)state;
    _cleanup_(json_unrefp) json_t *d =
        doc_of("{\"app\":\"m:a\",\"gpus\":0.5,\"cpus\":2}", &l, "argus_share_0");
    held_to(d, 2);
    const json_t *all = json_object_get(d, "deployments");
    const json_t *share =
        json_object_get(json_object_get(json_array_get(all, 0), "ray_actor_options"), "resources");
    assert_float_equal(json_get_real(share, "argus_share_0", 0), 0.5, 0);
    assert_null(
        json_object_get(json_object_get(json_array_get(all, 1), "ray_actor_options"), "resources"));
    assert_true(json_get_int(json_object_get(json_array_get(all, 1), "user_config"), "x", 0) == 1);
    assert_string_equal(json_get_str(json_object_get(d, "runtime_env"), "working_dir", ""),
                        "local:///r/snap");
}

static void test_an_engine_on_gpus(void **state)
{
    (void)state;
    _cleanup_(json_unrefp) json_t *d =
        doc_of("{\"model\":\"sums@2\",\"engine\":\"vllm\",\"gpus\":2,\"cpus\":4,\"engine_args\":"
               "{\"max_model_len\":4096,\"enable_lora\":false}}",
               NULL, NULL);
    held_to(d, 2);
    assert_string_equal(json_get_str(d, "import_path", ""), "ray.serve.llm:build_openai_app");
    const json_t *c = json_array_get(json_object_get(json_object_get(d, "args"), "llm_configs"), 0);
    const json_t *kwargs = json_object_get(c, "engine_kwargs");
    assert_true(json_get_int(kwargs, "tensor_parallel_size", 0) == 2);
    assert_true(json_get_int(kwargs, "max_model_len", 0) == 4096);
    assert_false(json_get_bool(kwargs, "enable_lora", true));
    assert_string_equal(json_get_str(json_object_get(c, "model_loading_config"), "model_id", ""),
                        "sums");
    /* On GPUs the module has executor "ray" alone, and takes it by itself. */
    assert_null(json_object_get(kwargs, "distributed_executor_backend"));
    assert_string_equal(json_get_str(c, "llm_engine", ""), "vLLM");
    /* Ray's own schema has no such key beside a placement group. */
    assert_null(json_object_get(c, "accelerator_type"));
    const json_t *server = json_array_get(json_object_get(d, "deployments"), 0);
    assert_string_equal(json_get_str(server, "name", ""), "LLMServer:sums");
    assert_int_equal(
        json_array_size(json_object_get(server, "placement_group_bundle_label_selector")), 2);
}

/* Ray's module knows SGLang as a class of server alone, which hands on its arguments as they are.
 */
static void test_sglang(void **state)
{
    (void)state;
    _cleanup_(json_unrefp) json_t *d = doc_of(
        "{\"model\":\"sums@2\",\"engine\":\"sglang\",\"gpus\":2,\"cpus\":4,\"engine_args\":"
        "{\"context_length\":4096,\"quantization\":null,\"tp_size\":2},\"engine_args_unchecked\":{\"new_one\":[1]}}",
        NULL, NULL);
    held_to(d, 2);
    const json_t *c = json_array_get(json_object_get(json_object_get(d, "args"), "llm_configs"), 0);
    const json_t *kwargs = json_object_get(c, "engine_kwargs");
    assert_null(json_object_get(c, "llm_engine"));
    assert_non_null(strstr(json_get_str(c, "server_cls", ""), ":SGLangServer"));
    assert_null(json_object_get(c, "placement_group_config"));
    assert_string_equal(json_get_str(kwargs, "model_path", ""), "/r/models/sums/2");
    assert_true(json_get_int(kwargs, "tp_size", 0) == 2);
    assert_true(json_get_int(kwargs, "context_length", 0) == 4096);
    assert_null(json_object_get(kwargs, "quantization")); /* no value: the engine has its own */
    assert_int_equal(json_array_size(json_object_get(kwargs, "new_one")), 1);
    const json_t *server = json_array_get(json_object_get(d, "deployments"), 0);
    assert_string_equal(json_get_str(server, "name", ""), "SGLangServer:sums");
    assert_float_equal(json_get_real(json_object_get(server, "ray_actor_options"), "num_cpus", 0),
                       4, 0);
    assert_int_equal(
        json_array_size(json_object_get(server, "placement_group_bundle_label_selector")), 1);
}

static void test_the_whole(void **state)
{
    const char *apps[] = {"{\"name\":\"a-v1\"}", "{\"name\":\"b-v1\"}"},
               *others[] = {"{\"name\":\"x\"}"};
    const struct serve_doc doc = {
        .port = 8000, .apps = apps, .n_apps = 2, .foreign = others, .n_foreign = 1};
    struct buf out = BUF_INIT(4096);
    (void)state;
    serve_doc_write(&doc, &out);
    _cleanup_(json_unrefp) json_t *d = json_loads(buf_str(&out), 0, NULL);
    assert_int_equal(json_array_size(json_object_get(d, "applications")), 3);
    assert_true(json_get_int(json_object_get(d, "http_options"), "port", 0) == 8000);
    buf_release(&out);
}

static void test_what_ray_shows(void **state)
{
    static const struct {
        const char *sent, *shown;
        bool has;
    } cases[] = {
        {"{\"a\":1}", "{\"a\":1.0,\"b\":2}", true},
        {"{\"a\":{\"b\":[1,\"x\"]}}", "{\"a\":{\"b\":[1.0,\"x\"],\"c\":null}}", true},
        {"{\"a\":{\"b\":[1]}}", "{\"a\":{\"b\":[1,2]}}", false},
        {"{\"a\":1}", "{\"b\":1}", false},
        {"{\"a\":\"1\"}", "{\"a\":1}", false},
        {"{\"a\":true}", "{\"a\":false}", false},
        {"{\"a\":{}}", "{\"a\":null}", false},
    };
    (void)state;
    for (size_t i = 0; i < array_len(cases); i++) {
        _cleanup_(json_unrefp) json_t *sent = json_loads(cases[i].sent, 0, NULL);
        _cleanup_(json_unrefp) json_t *shown = json_loads(cases[i].shown, 0, NULL);
        assert_int_equal(serve_doc_has(sent, shown), cases[i].has);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_model),           cmocka_unit_test(test_an_application),
        cmocka_unit_test(test_an_engine_on_gpus), cmocka_unit_test(test_sglang),
        cmocka_unit_test(test_the_whole),         cmocka_unit_test(test_what_ray_shows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of serve_engine.h, through what a request to serve says: each refusal, and where it is. */
#include "core/serve/serve_engine.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/unit.h"
#include "core/serve/serve_spec.h"

enum { ENGINE_BODY_MAX = 1024 };

static int engine_read(const char *engine, const char *more, struct problems *ps)
{
    char body[ENGINE_BODY_MAX];
    struct serve_ask a;
    (void)snprintf(body, sizeof(body), "{\"model\": \"m\", \"engine\": \"%s\", \"gpus\": 2,\n%s}",
                   engine, more);
    int r = serve_ask_read(body, strlen(body), NULL, &a, ps);
    serve_ask_release(&a);
    return r;
}

static void test_engine_arguments_that_go(void **state)
{
    static const struct {
        const char *engine, *more;
    } cases[] = {
        {"vllm", "\"engine_args\": {\"max_model_len\": 4096, \"gpu_memory_utilization\": 0.9}"},
        {"vllm", "\"engine_args\": {\"gpu_memory_utilization\": 1, \"enforce_eager\": true}"},
        {"vllm", "\"engine_args\": {\"distributed_executor_backend\": \"ray\"}"},
        {"vllm", "\"engine_args\": {\"tensor_parallel_size\": 2, \"disable_log_stats\": false}"},
        {"vllm", "\"engine_args\": {\"tool_call_parser\": \"hermes\"}"}, /* of its front end */
        {"vllm", "\"engine_args_unchecked\": {\"of_tomorrow\": {\"a\": [1]}}"},
        {"vllm", "\"engine_args\": {\"seed\": 1}, \"engine_args_unchecked\": {\"of_tomorrow\": 1}"},
        {"vllm", "\"engine_args\": {\"task\": \"embed\", \"cudagraph_capture_sizes\": [1, 2]}"},
        {"vllm", "\"engine_args\": {\"compilation_config\": 3, \"hf_token\": true}"},
        {"vllm", "\"engine_args\": {\"quantization\": null, \"enforce_eager\": null}"},
        {"vllm", "\"engine_args\": {\"distributed_executor_backend\": null}"},
        {"sglang", "\"engine_args\": {\"tp_size\": 2, \"mem_fraction_static\": 0.8}"},
        {"sglang", "\"engine_args\": {\"disable_radix_cache\": true}"},
    };
    (void)state;
    for (size_t i = 0; i < array_len(cases); i++) {
        struct problems ps = {0};
        assert_int_equal(engine_read(cases[i].engine, cases[i].more, &ps), 0);
        problems_release(&ps);
    }
}

static void test_engine_arguments_that_do_not(void **state)
{
    static const struct {
        const char *engine, *more, *code;
    } cases[] = {
        {"vllm", "\"engine_args\": {\"of_tomorrow\": 1}", "serve_engine_arg"},
        {"vllm", "\"engine_args\": {\"max_model_length\": 1}", "serve_engine_arg_near"},
        {"vllm", "\"engine_args\": {\"mem_fraction_static\": 0.8}", "serve_engine_arg"},
        {"sglang", "\"engine_args\": {\"max_model_len\": 1}", "serve_engine_arg"},
        {"vllm", "\"engine_args\": {\"max_model_len\": \"4096\"}", "serve_engine_arg_kind"},
        {"vllm", "\"engine_args\": {\"max_model_len\": 4096.5}", "serve_engine_arg_kind"},
        {"vllm", "\"engine_args\": {\"enforce_eager\": 1}", "serve_engine_arg_kind"},
        {"vllm", "\"engine_args\": {\"dtype\": 16}", "serve_engine_arg_kind"},
        {"vllm", "\"engine_args\": {\"hf_overrides\": []}", "serve_engine_arg_kind"},
        {"vllm", "\"engine_args\": {\"distributed_executor_backend\": \"mp\"}",
         "serve_engine_executor"},
        {"vllm", "\"engine_args_unchecked\": {\"distributed_executor_backend\": \"mp\"}",
         "serve_engine_executor"},
        {"vllm", "\"engine_args\": {\"disable_log_stats\": true}", "serve_engine_stats"},
        {"vllm", "\"engine_args\": {\"tensor_parallel_size\": 4}", "serve_tensor_parallel"},
        {"vllm", "\"engine_args_unchecked\": {\"tensor_parallel_size\": 4}",
         "serve_tensor_parallel"},
        {"sglang", "\"engine_args\": {\"tp_size\": 1}", "serve_tensor_parallel"},
        {"sglang", "\"engine_args_unchecked\": {\"model_path\": \"/x\"}", "serve_key_taken"},
        {"vllm", "\"engine_args_unchecked\": {\"served_model_name\": \"x\"}", "serve_key_taken"},
        {"vllm", "\"engine_args\": {\"seed\": 1}, \"engine_args_unchecked\": {\"seed\": 2}",
         "serve_engine_arg_twice"},
        {"vllm", "\"engine_args_unchecked\": []", "serve_mapping"},
        {"transformers", "\"engine_args_unchecked\": {\"a\": 1}", "serve_engine_no_args"},
    };
    (void)state;
    for (size_t i = 0; i < array_len(cases); i++) {
        struct problems ps = {0};
        bool is_said = false;
        assert_int_equal(engine_read(cases[i].engine, cases[i].more, &ps), ERR_BAD_SPEC);
        for (size_t k = 0; k < ps.n; k++)
            is_said |= str_eq(ps.v[k].code, cases[i].code);
        if (!is_said)
            print_error("%s: not %s\n", cases[i].more, cases[i].code);
        assert_true(is_said);
        problems_release(&ps);
    }
}

/* In the body, and in a text of `config` that stands in it. */
static void test_their_places(void **state)
{
    struct problems ps = {0};
    struct serve_ask a;
    (void)state;
    assert_int_equal(engine_read("vllm", "\"engine_args\": {\n  \"of_tomorrow\": 1}", &ps),
                     ERR_BAD_SPEC);
    assert_int_equal(ps.n, 1);
    assert_string_equal(ps.v[0].field, "engine_args");
    assert_int_equal(ps.v[0].line, 3);
    problems_release(&ps);
    ps = (struct problems){0};
    const char *body =
        "{\"config\": \"model: m\\nengine: vllm\\ngpus: 1\\nengine_args:\\n  dtype: 1\"}";
    assert_int_equal(serve_ask_read(body, strlen(body), NULL, &a, &ps), ERR_BAD_SPEC);
    assert_int_equal(ps.n, 1);
    assert_string_equal(ps.v[0].code, "serve_engine_arg_kind");
    assert_int_equal(ps.v[0].line, 5);
    serve_ask_release(&a);
    problems_release(&ps);
}

/* What the version before had is held against the engine of the next one. */
static void test_arguments_of_the_version_before(void **state)
{
    struct problems ps = {0};
    struct serve_ask was, next;
    const char *body =
        "{\"model\":\"m\",\"engine\":\"vllm\",\"gpus\":1,\"engine_args\":{\"max_model_len\":1}}";
    const char *change = "{\"engine\":\"sglang\"}";
    (void)state;
    assert_int_equal(serve_ask_read(body, strlen(body), NULL, &was, &ps), 0);
    assert_int_equal(serve_ask_read(change, strlen(change), &was.spec, &next, &ps), ERR_BAD_SPEC);
    assert_int_equal(ps.n, 1);
    assert_string_equal(ps.v[0].code, "serve_engine_arg");
    serve_ask_release(&next);
    problems_release(&ps);
    /* What it serves with already is no obstacle to the next one; said anew, it is. */
    static const char *const again[] = {"{\"cpus\":2}", "{\"gpus\":2}",
                                        "{\"engine_args\":{\"of_yesterday\":1}}"};
    static const int wants[] = {0, ERR_BAD_SPEC, ERR_BAD_SPEC};
    set_str(&was.spec.engine_args, "{\"of_yesterday\":1,\"tensor_parallel_size\":1}");
    for (size_t i = 0; i < array_len(again); i++) {
        ps = (struct problems){0};
        assert_int_equal(serve_ask_read(again[i], strlen(again[i]), &was.spec, &next, &ps),
                         wants[i]);
        assert_int_equal(ps.n, wants[i] ? 1 : 0);
        assert_string_equal(i == 1 ? ps.v[0].code : "serve_tensor_parallel",
                            "serve_tensor_parallel");
        serve_ask_release(&next);
        problems_release(&ps);
    }
    serve_ask_release(&was);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_engine_arguments_that_go),
        cmocka_unit_test(test_engine_arguments_that_do_not),
        cmocka_unit_test(test_their_places),
        cmocka_unit_test(test_arguments_of_the_version_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

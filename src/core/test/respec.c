/* SPDX-License-Identifier: Apache-2.0 */
/* A spec once more: what changes, what is told of it, and what stays. */
#include "core/spec/respec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/unit.h"

static void check(const char *text,
                  const char *resume,
                  const char *patch,
                  const char *out_expected,
                  const char *changes_expected)
{
    json_t *p = patch ? json_loads(patch, 0, NULL) : NULL;
    struct respec how = {.resume = resume, .patch = p};
    struct buf out = BUF_INIT(DOC_MAX_BYTES), changes = BUF_INIT(RESPEC_CHANGES_MAX);
    json_t *told = NULL;
    int n = respec_text(text, &how, &out, &changes, NULL);
    assert_string_equal(buf_str(&out), out_expected);
    assert_string_equal(buf_str(&changes), changes_expected);
    told = json_loads(buf_str(&changes), 0, NULL);
    assert_int_equal(n, json_array_size(told));
    json_decref(told);
    json_decref(p);
    buf_release(&out);
    buf_release(&changes);
}

static void test_nothing_changes(void **state)
{
    (void)state;
    const char *yaml = "workload: ray # mine\nentrypoint: echo 1.10\n";
    check(yaml, NULL, NULL, yaml, "[]");
    check(yaml, NULL, "{}", yaml, "[]");
}

static void test_the_id_goes(void **state)
{
    (void)state;
    check("workload: ray\nsubmission_id: mine\nenv: {A: 1.10, B: true}\nnnodes: 2\n", NULL, NULL,
          "{\"workload\":\"ray\",\"env\":{\"A\":\"1.10\",\"B\":\"true\"},\"nnodes\":2}", "[]");
}

static void test_the_id_stays(void **state)
{
    (void)state;
    _cleanup_(json_unrefp) json_t *p = json_pack("{s:s}", "working_dir", "code@1");
    struct respec how = {.patch = p, .keeps_id = true};
    struct buf out = BUF_INIT(DOC_MAX_BYTES), changes = BUF_INIT(RESPEC_CHANGES_MAX);
    assert_int_equal(
        respec_text("submission_id: mine\nworking_dir: .\n", &how, &out, &changes, NULL), 1);
    assert_string_equal(buf_str(&out), "{\"submission_id\":\"mine\",\"working_dir\":\"code@1\"}");
    buf_release(&out);
    buf_release(&changes);
}

static void test_resume(void **state)
{
    (void)state;
    check("workload: grpo\n", "old@20", NULL, "{\"workload\":\"grpo\",\"resume\":\"old@20\"}",
          "[{\"key\":\"resume\",\"old\":null,\"new\":\"old@20\"}]");
    check("workload: grpo\nresume: never\n", "old@20", NULL,
          "{\"workload\":\"grpo\",\"resume\":\"old@20\"}",
          "[{\"key\":\"resume\",\"old\":\"never\",\"new\":\"old@20\"}]");
}

static void test_overrides(void **state)
{
    (void)state;
    check("overrides: [a.b=8, +c=1, d=x]\n", NULL, "{\"overrides\":[\"a.b=4\",\"+c=1\",\"e=2\"]}",
          "{\"overrides\":[\"a.b=4\",\"+c=1\",\"e=2\"]}",
          "[{\"key\":\"overrides.d\",\"old\":\"x\",\"new\":null},"
          "{\"key\":\"overrides.a.b\",\"old\":\"8\",\"new\":\"4\"},"
          "{\"key\":\"overrides.e\",\"old\":null,\"new\":\"2\"}]");
}

/* A key that only looks like a secret's has its value told; one that only looks like a size's has
 * not. */
static void test_sizes_in_tokens(void **state)
{
    (void)state;
    check("overrides: [a.ppo_max_token_len_per_gpu=8]\n", NULL,
          "{\"overrides\":[\"a.ppo_max_token_len_per_gpu=4\",\"+token_len.HF_TOKEN=x\","
          "\"+HF_token_len=y\"]}",
          "{\"overrides\":[\"a.ppo_max_token_len_per_gpu=4\",\"+token_len.HF_TOKEN=x\","
          "\"+HF_token_len=y\"]}",
          "[{\"key\":\"overrides.a.ppo_max_token_len_per_gpu\",\"old\":\"8\",\"new\":\"4\"},"
          "{\"key\":\"overrides.token_len.HF_TOKEN\",\"old\":null,\"new\":\"***\"},"
          "{\"key\":\"overrides.HF_token_len\",\"old\":null,\"new\":\"***\"}]");
    check("name: x\n", NULL, "{\"env\":{\"max_token_len_per_gpu\":\"z\"}}",
          "{\"name\":\"x\",\"env\":{\"max_token_len_per_gpu\":\"z\"}}",
          "[{\"key\":\"env.max_token_len_per_gpu\",\"old\":null,\"new\":\"***\"}]");
}

static void test_members(void **state)
{
    (void)state;
    check("memory_per_node: 4GiB\nrestart: {max: 1, backoff: 5s}\n", NULL,
          "{\"memory_per_node\":\"8GiB\",\"restart\":{\"max\":3}}",
          "{\"memory_per_node\":\"8GiB\",\"restart\":{\"max\":3,\"backoff\":\"5s\"}}",
          "[{\"key\":\"memory_per_node\",\"old\":\"4GiB\",\"new\":\"8GiB\"},"
          "{\"key\":\"restart.max\",\"old\":\"1\",\"new\":\"3\"}]");
    check("save_freq: 10\n", NULL, "{\"save_freq\":null}", "{}",
          "[{\"key\":\"save_freq\",\"old\":\"10\",\"new\":null}]");
}

/* It is changed where it stands; what of it is secret is not told. */
static void test_environment(void **state)
{
    (void)state;
    const char *patch = "{\"env\":{\"MY_TOKEN\":\"y\",\"NCCL_DEBUG\":\"INFO\"}}";
    const char *told = "[{\"key\":\"env.MY_TOKEN\",\"old\":\"***\",\"new\":\"***\"},"
                       "{\"key\":\"env.NCCL_DEBUG\",\"old\":null,\"new\":\"INFO\"}]";
    check("runtime_env: {env_vars: {A: 1.0, MY_TOKEN: x}, py_executable: /p}\n", NULL, patch,
          "{\"runtime_env\":{\"env_vars\":{\"A\":\"1.0\",\"MY_TOKEN\":\"y\"},"
          "\"py_executable\":\"/p\"},\"env\":{\"NCCL_DEBUG\":\"INFO\"}}",
          told);
    check("env: {A: 1.0, MY_TOKEN: x}\n", NULL, patch,
          "{\"env\":{\"A\":\"1.0\",\"MY_TOKEN\":\"y\",\"NCCL_DEBUG\":\"INFO\"}}", told);
    check("name: x\n", NULL, "{\"env\":{\"NCCL_DEBUG\":\"INFO\"}}",
          "{\"name\":\"x\",\"env\":{\"NCCL_DEBUG\":\"INFO\"}}",
          "[{\"key\":\"env.NCCL_DEBUG\",\"old\":null,\"new\":\"INFO\"}]");
}

static void test_no_mapping(void **state)
{
    (void)state;
    static const char *const texts[] = {"[1, 2]", "a: [", "just text"};
    struct respec how = {0};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct buf out = BUF_INIT(1000), changes = BUF_INIT(1000);
        struct err err = {0};
        assert_int_equal(respec_text(texts[i], &how, &out, &changes, &err), -EINVAL);
        assert_true(*err.text);
        assert_int_equal(out.len + changes.len, 0);
        buf_release(&out);
        buf_release(&changes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_changes), cmocka_unit_test(test_the_id_goes),
        cmocka_unit_test(test_the_id_stays),    cmocka_unit_test(test_resume),
        cmocka_unit_test(test_overrides),       cmocka_unit_test(test_members),
        cmocka_unit_test(test_sizes_in_tokens), cmocka_unit_test(test_environment),
        cmocka_unit_test(test_no_mapping),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

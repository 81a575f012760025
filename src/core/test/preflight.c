/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of preflight.h: facts in, findings out. */
#include "core/check/preflight.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

#include "base/unit.h"
#include "base/unit_message.h"

#define PPO                                                                                        \
    "workload: ppo\nn_gpus_per_node: 4\nmodel_id: /s/m\ntrain_file: /s/a.parquet\n"                \
    "val_file: /s/b.parquet\n"
#define GRPO                                                                                       \
    "workload: grpo\nn_gpus_per_node: 4\nmodel_id: o/m\ntrain_file: /s/a.parquet\n"                \
    "val_file: /s/b.parquet\n"

static const struct preflight_where where = {.shared_root = "/s",
                                             .user_root = "/s/users/alice",
                                             .hf_home = "/s/hf"};
static const struct spec_roots roots = {.shared_root = "/s", .user_root = "/s/users/alice"};

static void read_spec(const char *yaml, struct spec *ret)
{
    struct doc *doc = NULL;
    struct problems ps = {0};
    *ret = (struct spec){0};
    assert_int_equal(doc_parse(yaml, strlen(yaml), true, &doc, &ps), 0);
    assert_int_equal(spec_read(doc_root(doc), NULL, ret, &ps), 0);
    assert_int_equal(spec_expand(ret, &roots, &ps), 0);
    doc_free(doc);
    problems_release(&ps);
}

static void expect(const struct problems *ps, size_t errors, const char *part)
{
    bool found = !part;
    for (size_t i = 0; i < ps->n && !found; i++)
        found = strstr(unit_problem(&ps->v[i]), part);
    if (!found || ps->errors != errors) {
        struct buf b = BUF_INIT(10000);
        problems_to_text(ps, "spec", MESSAGE_ENGLISH, &b);
        print_message("wanted %zu errors and '%s', got:\n%s", errors, str_or(part, ""),
                      buf_str(&b));
        buf_release(&b);
    }
    assert_true(found);
    assert_int_equal(ps->errors, errors);
}

/* ---- files ---- */

static void one_file(struct preflight_file f, size_t errors, const char *part)
{
    struct problems ps = {0};
    f.field = (char *)(uintptr_t) "train_file";
    if (!f.path)
        f.path = (char *)(uintptr_t) "/s/a.parquet";
    if (!f.real)
        f.real = (char *)(uintptr_t) "/s/a.parquet";
    struct preflight_facts facts = {
        .files = &f, .n_files = 1, .real_root = (char *)(uintptr_t) "/s"};
    preflight_judge_files(&where, &facts, &ps);
    expect(&ps, errors, part);
    problems_release(&ps);
}

#define TEXT(t) (char *)(uintptr_t)(t)
#define DATA(bytes, end)                                                                           \
    .is_file = true, .size = 1000, .head = bytes, .n_head = sizeof(bytes) - 1, .tail = end

static void judges_files(void **state)
{
    (void)state;
    one_file((struct preflight_file){DATA("PAR1xxxxxxxx", "PAR1")}, 0, NULL);
    one_file((struct preflight_file){DATA("PAR1xxxxxxxx", "xxxx")}, 1, "cut short");
    one_file((struct preflight_file){DATA("PARExxxxxxxx", "PARE")}, 1, "encrypted");
    one_file((struct preflight_file){DATA("a,b,c\n1,2,3", "2,3\n")}, 1, "PAR1");
    one_file((struct preflight_file){DATA("\n <!DOCTYPE html>", "ml>\n")}, 1, "web page");
    one_file((struct preflight_file){DATA("version https://git-lfs.github.com/spec/v1", "12\n")}, 1,
             "git lfs pull");
    one_file((struct preflight_file){.path = TEXT("/s/a.jsonl"), DATA("{\"a\":1}", "\n")}, 0, NULL);
    one_file((struct preflight_file){.path = TEXT("/s/a.json"), DATA("PAR1", "PAR1")}, 1, "JSON");
    one_file((struct preflight_file){.is_file = true}, 1, "is empty");
    one_file((struct preflight_file){.is_dir = true}, 1, "a directory, not a file");
    one_file((struct preflight_file){0}, 1, "not a plain file");
    one_file((struct preflight_file){.error = ENOENT}, 1, "there is no data file");
    one_file((struct preflight_file){.error = EACCES}, 1, "chmod a+r");
    one_file((struct preflight_file){.error = ELOOP}, 1, "leads to itself");
    one_file((struct preflight_file){.error = ESTALE}, 1, "shared root");
    one_file((struct preflight_file){.kind = PREFLIGHT_DIR, .is_file = true}, 1, "not a directory");
    one_file((struct preflight_file){.kind = PREFLIGHT_DIR, .is_dir = true}, 0, NULL);
    one_file((struct preflight_file){.kind = PREFLIGHT_CHECKPOINT, .is_dir = true}, 0, NULL);
    one_file((struct preflight_file){.kind = PREFLIGHT_CHECKPOINT, .error = ENOENT}, 1,
             "there is no checkpoint");
    one_file((struct preflight_file){.kind = PREFLIGHT_PROGRAM, .is_file = true, .size = 9}, 1,
             "cannot be executed");
    one_file((struct preflight_file){.kind = PREFLIGHT_PROGRAM, .is_elsewhere = true}, 0, NULL);
    one_file((struct preflight_file){.kind = PREFLIGHT_REWARD, DATA("def f():", "x")}, 0, NULL);
    one_file((struct preflight_file){.kind = PREFLIGHT_REWARD,
                                     DATA("\x7f"
                                          "ELF\0",
                                          "x")},
             1, "is not text");
    one_file((struct preflight_file){.kind = PREFLIGHT_REWARD, .is_file = true, .size = 1 << 30}, 1,
             "too much");
    one_file(
        (struct preflight_file){
            .kind = PREFLIGHT_TREE, .is_file = true, .size = 9, .broken = TEXT("torn")},
        1, "does not parse: torn");
}

static void judges_where_links_lead(void **state)
{
    (void)state;
    one_file((struct preflight_file){.real = TEXT("/etc/passwd"), DATA("PAR1xxxxxxxx", "PAR1")}, 1,
             "outside the shared root");
    one_file((struct preflight_file){.real = TEXT("/s/users/bob/x"), DATA("PAR1xxxxxxxx", "PAR1")},
             1, "another user's");
    one_file(
        (struct preflight_file){.real = TEXT("/s/users/alice/x"), DATA("PAR1xxxxxxxx", "PAR1")}, 0,
        NULL);
    one_file((struct preflight_file){.path = TEXT("/elsewhere/x"),
                                     .real = TEXT("/elsewhere/y"),
                                     DATA("PAR1xxxxxxxx", "PAR1")},
             0, NULL);
}

/* ---- models ---- */

static void one_model(const char *yaml, struct preflight_model m, size_t errors, const char *part)
{
    struct problems ps = {0};
    struct spec s;
    read_spec(yaml, &s);
    m.path = TEXT("/s/m");
    preflight_judge_model(&s, &where, "/s", &m, &ps);
    expect(&ps, errors, part);
    problems_release(&ps);
    spec_release(&s);
}

#define WHOLE .is_dir = true, .has_config = true, .has_tokenizer = true

static void judges_models(void **state)
{
    (void)state;
    struct preflight_shard fine = {.name = TEXT("a.safetensors"), .size = 10, .wants = 10};
    struct preflight_shard cut = {.name = TEXT("a.safetensors"), .size = 9, .wants = 10};
    struct preflight_shard longer = {.name = TEXT("a.safetensors"), .size = 11, .wants = 10};
    struct preflight_shard gone = {.name = TEXT("b.safetensors"), .error = ENOENT};
    struct preflight_shard torn = {.name = TEXT("a"), .size = 9, .broken = TEXT("no header")};
    struct preflight_shard page = {.name = TEXT("a"), .size = 9, .head = "<html>", .n_head = 6};
    struct preflight_shard zip = {.name = TEXT("a.bin"), .size = 9, .head = "PK\3\4", .n_head = 4};
    one_model(PPO, (struct preflight_model){WHOLE, .shards = &fine, .n_shards = 1}, 0, NULL);
    one_model(PPO, (struct preflight_model){WHOLE, .shards = &zip, .n_shards = 1}, 0, NULL);
    one_model(PPO, (struct preflight_model){WHOLE, .shards = &cut, .n_shards = 1}, 1, "half there");
    one_model(PPO, (struct preflight_model){WHOLE, .shards = &longer, .n_shards = 1}, 1, "longer");
    one_model(PPO, (struct preflight_model){WHOLE, .shards = &gone, .n_shards = 1}, 1, "missing");
    one_model(PPO, (struct preflight_model){WHOLE, .shards = &torn, .n_shards = 1}, 1, "no header");
    one_model(PPO, (struct preflight_model){WHOLE, .shards = &page, .n_shards = 1}, 1, "web page");
    one_model(PPO, (struct preflight_model){WHOLE}, 1, "no weights");
    one_model(PPO, (struct preflight_model){.is_dir = true, .shards = &fine, .n_shards = 1}, 2,
              "no tokenizer");
    one_model(PPO, (struct preflight_model){.is_dir = true, .is_empty = true}, 1, "is empty");
    one_model(PPO, (struct preflight_model){.error = ENOENT}, 1, "there is no model");
    one_model(PPO, (struct preflight_model){0}, 1, "is a file");
    one_model(PPO,
              (struct preflight_model){WHOLE, .config_broken = TEXT("torn"), .shards = &fine,
                                       .n_shards = 1},
              1, "does not parse");
    one_model(GRPO, (struct preflight_model){.error = ENOENT, .is_hub = true}, 0, "downloads");
    one_model(GRPO, (struct preflight_model){.error = ENOENT, .is_hub = true, .is_offline = true},
              1, "HF_HUB_OFFLINE");
}

static void judges_space(void **state)
{
    (void)state;
    struct preflight_shard shard = {.elements = 1000000000};
    struct preflight_model m = {.shards = &shard, .n_shards = 1};
    struct preflight_facts f = {.model = &m, .has_free = true, .free_bytes = 80000000000};
    struct problems ps = {0};
    struct spec s;
    read_spec(GRPO, &s);
    assert_int_equal(preflight_checkpoint_bytes(&s, &m), 12000000000);
    preflight_judge_space(&s, &f, &ps); /* 4 of 12 GB */
    expect(&ps, 0, NULL);
    f.free_bytes = 40000000000;
    preflight_judge_space(&s, &f, &ps);
    expect(&ps, 1, "48.0 GB are needed");
    problems_release(&ps);
    ps = (struct problems){0};
    spec_release(&s);
    read_spec(PPO "checkpoint: none\n", &s);
    assert_int_equal(preflight_checkpoint_bytes(&s, &m), 24000000000);
    preflight_judge_space(&s, &f, &ps);
    expect(&ps, 0, NULL);
    spec_release(&s);
}

/* ---- sizes ---- */

static void sizes(const char *base, const char *overrides, size_t errors, const char *part)
{
    struct problems ps = {0};
    struct spec s;
    _cleanup_(freep) char *yaml = xasprintf("%soverrides: [%s]\n", base, overrides);
    read_spec(yaml, &s);
    preflight_judge_sizes(&s, verl_version_find("0.5.0", NULL), &ps);
    expect(&ps, errors, part);
    problems_release(&ps);
    spec_release(&s);
}

#define MINI "actor_rollout_ref.actor.ppo_mini_batch_size="
#define MICRO "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu="
#define SFT "workload: sft\nn_gpus_per_node: 4\nmodel_id: /s/m\ntrain_file: /s/a\nval_file: /s/a\n"

static void judges_sizes(void **state)
{
    (void)state;
    sizes(PPO, "", 0, NULL);
    sizes(PPO, "data.train_batch_size=8", 0, NULL);
    sizes(PPO, "data.train_batch_size=6", 1, "does not divide among 4 GPUs");
    sizes(GRPO, "data.train_batch_size=6", 0, NULL); /* 8 samples each */
    sizes(PPO, "data.train_batch_size=0", 1, "is not a valid size");
    sizes(PPO, "data.train_batch_size=8,\"" MINI "16\"", 1, "is more than");
    sizes(PPO, "\"" MINI "16\",\"" MICRO "3\"", 1, "does not divide the 4 rows");
    sizes(PPO, "\"" MINI "16\",\"" MICRO "8\"", 1, "is more than the 4 rows");
    sizes(PPO, "\"" MINI "16\",\"" MICRO "2\"", 0, NULL);
    sizes(PPO, "\"" MINI "2\"", 1, "leaves nothing");
    sizes(PPO, "actor_rollout_ref.rollout.tensor_model_parallel_size=3", 1, "does not divide");
    sizes(PPO, "actor_rollout_ref.actor.ulysses_sequence_parallel_size=8", 1, "does not divide");
    sizes(PPO,
          "actor_rollout_ref.actor.megatron.tensor_model_parallel_size=4,"
          "actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=2",
          1, "do not divide");
    sizes(PPO, "critic.ppo_micro_batch_size=4,critic.ppo_micro_batch_size_per_gpu=4", 1, "exclude");
    sizes(PPO,
          "actor_rollout_ref.actor.use_dynamic_bsz=True,data.max_prompt_length=4096,"
          "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=4096",
          1, "one sequence of 4608");
    sizes(GRPO, "actor_rollout_ref.rollout.n=1", 0, "teaches nothing");
    sizes(SFT, "data.train_batch_size=6", 1, "does not divide among 4 ranks");
    sizes(SFT, "data.train_batch_size=8,data.micro_batch_size_per_gpu=3", 1, "2 rows of each");
}

/* ---- keys ---- */

static void keys(const char *override, size_t errors, const char *part)
{
    static char *const known[] = {TEXT("trainer"), TEXT("trainer.logger"), TEXT("data"),
                                  TEXT("data.train_batch_size"), TEXT("data.empty")};
    static char *const groups[] = {TEXT("engine")}, *const options[] = {TEXT("engine=fsdp")};
    static char *const leaves[] = {TEXT("trainer.logger"), TEXT("data.empty")};
    struct preflight_keys k = {.name = TEXT("ppo_trainer"),
                               .keys = {(char **)(uintptr_t)known, 5, 5},
                               .groups = {(char **)(uintptr_t)groups, 1, 1},
                               .options = {(char **)(uintptr_t)options, 1, 1},
                               .leaves = {(char **)(uintptr_t)leaves, 2, 2},
                               .whole = true};
    struct problems ps = {0};
    struct spec s;
    _cleanup_(freep) char *yaml = xasprintf("%soverrides: ['%s']\n", PPO, override);
    read_spec(yaml, &s);
    preflight_judge_keys(&s, &k, &ps);
    expect(&ps, errors, part);
    problems_release(&ps);
    ps = (struct problems){0};
    k.whole = false; /* then nobody can tell */
    preflight_judge_keys(&s, &k, &ps);
    assert_int_equal(ps.errors, strstr(override, "engine=") ? errors : 0);
    problems_release(&ps);
    spec_release(&s);
}

static void judges_keys(void **state)
{
    (void)state;
    keys("data.train_batch_size=8", 0, NULL);
    keys("++data.train_batch_size=8", 0, NULL);
    keys("+data.train_batch_size=8", 1, "has already");
    keys("data.train_batchsize=8", 1, "did you mean 'data.train_batch_size'");
    keys("trainer.train_batch_size=8", 1, "did you mean 'data.train_batch_size'");
    keys("something.else=1", 1, "write '+something.else=");
    keys("+something.else=1", 0, NULL);
    keys("data.empty.new=1", 1, "write '+data.empty.new");
    keys("~data.empty", 0, NULL);
    keys("~data.empt", 1, "data.empty");
    keys("engine=fsdp", 0, NULL);
    keys("engine=fsd", 1, "did you mean 'engine=fsdp'");
    keys("engine@model.engine=fsdp", 0, NULL);
    keys("hydra.job.chdir=true", 0, NULL);
}

static void names_the_configuration(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *version, *name;
    } rows[] = {
        {PPO, "0.5.0", "ppo_trainer"},
        {PPO "overrides: [--config-name=ppo_megatron_trainer.yaml]\n", "0.5.0",
         "ppo_megatron_trainer"},
        {PPO "overrides: [model_engine=megatron]\n", "0.9.1", "ppo_megatron_trainer"},
        {SFT, "0.5.0", "sft_trainer"},
        {SFT, "0.9.1", "sft_trainer_engine"},
        {"workload: merge\nmodel_id: /s/m\n", "0.9.1", NULL},
    };
    char buf[128];
    for (size_t i = 0; i < array_len(rows); i++) {
        struct spec s;
        read_spec(rows[i].yaml, &s);
        const char *name = preflight_config_name(&s, verl_version_find(rows[i].version, NULL), buf);
        assert_true(str_eq(name, rows[i].name));
        spec_release(&s);
    }
}

static void warns_of_a_device_that_waits(void **state)
{
    (void)state;
    static const struct {
        const char *version;
        bool is_told;
    } rows[] = {{"0.5.0", false}, {"0.6.1", false}, {"0.7.0", true},
                {"0.7.1", true},  {"0.8.0", true},  {"0.9.1", false}};
    for (size_t i = 0; i < array_len(rows); i++) {
        const struct verl_version *v = verl_version_find(rows[i].version, NULL);
        struct problems ps = {0};
        struct spec s;
        read_spec(SFT "overrides: [trainer.device=cpu]\n", &s);
        preflight_judge_sizes(&s, v, &ps);
        assert_int_equal(ps.n, rows[i].is_told);
        assert_int_equal(ps.errors, 0);
        if (ps.n > 0)
            assert_non_null(strstr(unit_problem(&ps.v[0]), "a resource named 'cpu'"));
        problems_release(&ps);
        spec_release(&s);
        read_spec(SFT, &s);
        preflight_judge_sizes(&s, v, &ps);
        assert_int_equal(ps.n, 0);
        problems_release(&ps);
        spec_release(&s);
    }
}

static void version(const char *yaml, const char *verl, const char *field, const char *part)
{
    const struct preflight_facts facts = {.files = NULL};
    struct problems ps = {0};
    struct spec s;
    read_spec(yaml, &s);
    preflight_judge(&s, verl_version_find(verl, NULL), &where, &facts, &ps);
    expect(&ps, part ? 1 : 0, part);
    if (part)
        assert_string_equal(ps.v[0].field, field);
    problems_release(&ps);
    spec_release(&s);
}

#define ON_TWO SFT "nnodes: 2\n"
#define NO_VAL "workload: sft\nn_gpus_per_node: 4\nmodel_id: /s/m\ntrain_file: /s/a\n"
#define TWO_FILES "n_gpus_per_node: 1\nmodel_id: /s/m\nval_file: [/s/a, /s/b]\n"

static void judges_what_a_release_cannot_do(void **state)
{
    (void)state;
    version(ON_TWO, "0.5.0", "nnodes", "sft over 2 nodes needs verl 0.7.0 or newer, this is 0.5.0");
    version(ON_TWO, "0.6.1", "nnodes", "this is 0.6.1");
    version(ON_TWO, "0.9.1", NULL, NULL);
    version(NO_VAL, "0.5.0", "val_file", "sft of verl 0.5.0 needs 'val_file'");
    version(NO_VAL, "0.9.1", NULL, NULL);
    version("workload: generate\n" TWO_FILES, "0.5.0", "val_file", "reads one 'val_file', not 2");
    version("workload: generate\n" TWO_FILES, "0.9.1", NULL, NULL);
}

/* An override's file is looked at, and not the one that nobody reads. */
static void plans_what_overrides_put_there(void **state)
{
    struct preflight_facts f;
    struct spec s;
    struct problems ps = {0};
    (void)state;
    read_spec(GRPO "reward_fn_path: /s/r.py\n"
                   "overrides: [\"data.train_files=['/s/x.parquet','/s/y.parquet']\", "
                   "data.val_files=/s/z.parquet, actor_rollout_ref.model.path=/s/m2, "
                   "custom_reward_function.path=/s/own.py]\n",
              &s);
    preflight_plan(&s, &where, &f);
    static const char *const wanted[] = {"/s/x.parquet", "/s/y.parquet", "/s/z.parquet",
                                         "/s/own.py"};
    assert_int_equal(f.n_files, array_len(wanted));
    for (size_t i = 0; i < f.n_files; i++) {
        assert_string_equal(f.files[i].path, wanted[i]);
        assert_string_equal(f.files[i].field, "overrides");
        f.files[i].is_file = true;
    }
    assert_string_equal(f.model->path, "/s/m2");
    f.model->error = ENOENT;
    preflight_judge_model(&s, &where, "/s", f.model, &ps);
    assert_string_equal(ps.v[0].field, "overrides");
    problems_release(&ps);
    preflight_release(&f);
    spec_release(&s);
    read_spec(GRPO "overrides: ['data.train_files=${a.b}']\n", &s);
    preflight_plan(&s, &where, &f); /* known to Hydra alone */
    for (size_t i = 0; i < f.n_files; i++)
        assert_string_not_equal(f.files[i].field, "train_file");
    preflight_release(&f);
    spec_release(&s);
}

static void plans_what_to_look_at(void **state)
{
    (void)state;
    struct preflight_facts f;
    struct spec s;
    read_spec(GRPO "reward_fn_path: /s/r.py\ncode_path: /s/verl\n"
                   "overrides: [actor_rollout_ref.rollout.multi_turn.tool_config_path=/s/t.yaml]\n",
              &s);
    preflight_plan(&s, &where, &f);
    assert_int_equal(f.n_files, 5);
    assert_string_equal(f.model->path, "/s/hf/hub/models--o--m");
    assert_true(f.model->is_hub && preflight_has_work(&f));
    preflight_release(&f);
    spec_release(&s);
    struct preflight_where away = where;
    away.hf_home = "/cache"; /* it is looked at when argus.yaml says so, and not when a spec does */
    read_spec(GRPO, &s);
    preflight_plan(&s, &away, &f);
    assert_null(f.model);
    preflight_release(&f);
    away.hf_is_ours = true;
    preflight_plan(&s, &away, &f);
    assert_string_equal(f.model->cache, "/cache");
    preflight_release(&f);
    spec_release(&s);
    read_spec(GRPO "resume: j1@40\n", &s);
    preflight_plan(&s, &where, &f);
    assert_string_equal(f.files[f.n_files - 1].field, "resume");
    assert_non_null(strstr(f.files[f.n_files - 1].path, "/jobs/j1/checkpoints/global_step_40"));
    preflight_release(&f);
    spec_release(&s);
    read_spec("workload: train\nentrypoint: [a]\nmodel_id: o/m\ntrain_file: /s/t.parquet\n", &s);
    preflight_plan(&s, &where, &f);
    assert_false(preflight_has_work(&f));
    preflight_release(&f);
    spec_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(judges_files),
        cmocka_unit_test(judges_where_links_lead),
        cmocka_unit_test(judges_models),
        cmocka_unit_test(judges_space),
        cmocka_unit_test(judges_sizes),
        cmocka_unit_test(judges_keys),
        cmocka_unit_test(names_the_configuration),
        cmocka_unit_test(warns_of_a_device_that_waits),
        cmocka_unit_test(judges_what_a_release_cannot_do),
        cmocka_unit_test(plans_what_overrides_put_there),
        cmocka_unit_test(plans_what_to_look_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

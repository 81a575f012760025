/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of spec.h. */
#include "core/spec/spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/doc/conf.h"
#include "base/str.h"

#include "base/unit.h"
#include "base/unit_message.h"

#define TOOLS "actor_rollout_ref.rollout.multi_turn.tool_config_path"
#define PPO                                                                                        \
    "workload: ppo\nn_gpus_per_node: 4\nmodel_id: o/m\ntrain_file: /s/a.parquet\n"                 \
    "val_file: /s/b.parquet\n"
#define RAY "workload: ray\nentrypoint: [a]\n"

struct result {
    struct spec spec;
    struct problems ps;
    int r;
};

static const struct spec_roots roots = {.shared_root = "/s", .user_root = "/s/users/alice"};

static void read_only(const char *yaml, const struct spec_limits *lim, struct result *ret)
{
    struct doc *doc = NULL;
    *ret = (struct result){0};
    assert_int_equal(doc_parse(yaml, strlen(yaml), true, &doc, &ret->ps), 0);
    ret->r = spec_read(doc_root(doc), lim, &ret->spec, &ret->ps);
    doc_free(doc);
}

static void read_all(const char *yaml, struct result *ret)
{
    read_only(yaml, NULL, ret);
    if (ret->r == 0)
        ret->r = spec_expand(&ret->spec, &roots, &ret->ps);
}

static void release(struct result *x)
{
    spec_release(&x->spec);
    problems_release(&x->ps);
}

static const struct problem *find(const struct result *x, const char *field, const char *part)
{
    for (size_t i = 0; i < x->ps.n; i++)
        if (!strcmp(x->ps.v[i].field, field) && strstr(unit_problem(&x->ps.v[i]), part))
            return &x->ps.v[i];
    return NULL;
}

/* The text must be refused with exactly one error, at that field and with that text. */
static void refused(const char *yaml, const char *field, const char *part)
{
    struct result x;
    read_all(yaml, &x);
    const struct problem *p = find(&x, field, part);
    if (!p || x.ps.errors != 1) {
        struct buf b = BUF_INIT(10000);
        problems_to_text(&x.ps, "spec", MESSAGE_ENGLISH, &b);
        print_message("%s\nwanted '%s' at '%s', got:\n%s", yaml, part, field, buf_str(&b));
        buf_release(&b);
    }
    assert_non_null(p);
    assert_int_equal(p->level, PROBLEM_ERROR);
    assert_int_equal(x.ps.errors, 1);
    assert_int_equal(x.r, ERR_BAD_SPEC);
    release(&x);
}

static void accepted(const char *yaml, struct result *ret)
{
    read_all(yaml, ret);
    if (ret->r < 0) {
        struct buf b = BUF_INIT(10000);
        problems_to_text(&ret->ps, "spec", MESSAGE_ENGLISH, &b);
        print_message("%s", buf_str(&b));
        buf_release(&b);
    }
    assert_int_equal(ret->r, 0);
}

static void warned(const char *yaml, const char *field, const char *part)
{
    struct result x;
    accepted(yaml, &x);
    const struct problem *p = find(&x, field, part);
    assert_non_null(p);
    assert_int_equal(p->level, PROBLEM_WARNING);
    release(&x);
}

static void reads_and_defaults(void **state)
{
    (void)state;
    struct result x;
    accepted(PPO "submission_id: ''\nname: null\n", &x);
    assert_int_equal(x.ps.n, 0);
    assert_int_equal(x.spec.workload, WORKLOAD_PPO);
    assert_null(x.spec.id);
    assert_int_equal(x.spec.nnodes, 1);
    assert_true(x.spec.gpus_per_node == 4);
    assert_true(x.spec.entrypoint_cpus < 0 && x.spec.entrypoint_gpus < 0);
    assert_int_equal(x.spec.priority, 50);
    assert_int_equal(x.spec.keep_last, 3);
    assert_int_equal(x.spec.resume_mode, SPEC_RESUME_AUTO);
    assert_int_equal(x.spec.stop_grace, 60 * USEC_SEC);
    assert_int_equal(x.spec.save_freq, 0);
    release(&x);
}

static void every_key_of_the_manual(void **state)
{
    (void)state;
    struct result x;
    accepted("workload: ppo\nsubmission_id: my-run-7\nname: gsm8k baseline\nproject: rlhf\n"
             "cluster: h20-a\npool: [h20, x]\npriority: 60\nnnodes: 2\nn_gpus_per_node: 4\n"
             "n_cpus_per_gpu: 3\nmemory_per_node: 200GiB\nentrypoint_num_cpus: "
             "1\nentrypoint_num_gpus: 0\n"
             "entrypoint_resources: {worker_node: 1, fast: 0.5}\n"
             "code_path: ${SHARED_ROOT}/common/code/verl/abc\n"
             "working_dir: ${USER_ROOT}/code\nextra_pythonpath: []\n"
             "model_id: Qwen/Qwen2.5-0.5B-Instruct\ntrain_file: ${shared_root}/t.parquet\n"
             "val_file: ['${SHARED_ROOT}/v.parquet', '${SHARED_ROOT}/w.parquet']\n"
             "reward_fn_path: ${SHARED_ROOT}/users/alice/code/my_reward.py\n"
             "total_epochs: 1\ntotal_training_steps: 29\nsave_freq: 10\ntest_freq: 10\n"
             "overrides: ['algorithm.kl_ctrl.kl_coef=0.001']\n"
             "runtime_env: {env_vars: {KEY: value}, py_executable: '${USER_ROOT}/v/bin/python'}\n"
             "secrets: [WANDB_API_KEY]\ntimeout: 12h\nqueue_timeout: 2d\nstop_grace: 30s\n"
             "resume: other-job@20\n"
             "checkpoint: {keep_last: 5, keep_best: {metric: 'val-core/*', mode: max}}\n"
             "restart: {max: 3, on: [node_lost, infra], backoff: 60s, avoid_failed_nodes: true}\n"
             "idle: {min_gpu_util: 5, window: 30m, action: alert}\n"
             "wandb: {enabled: true, project: p, run: r, mode: offline}\n"
             "tracking: {backend: mlflow, uri: 'http://m:5000'}\n"
             "hold_on_failure: 30m\nafter: [first]\nnotify: [alice-feishu]\npreset: small\n",
             &x);
    assert_int_equal(x.spec.pool.n, 2);
    assert_string_equal(x.spec.code_path, "/s/common/code/verl/abc");
    assert_string_equal(x.spec.train_file.v[0], "/s/t.parquet");
    assert_string_equal(x.spec.val_file.v[1], "/s/w.parquet");
    assert_string_equal(x.spec.reward_file, "/s/users/alice/code/my_reward.py");
    assert_string_equal(x.spec.reward_function, "compute_score");
    assert_string_equal(x.spec.py_executable, "/s/users/alice/v/bin/python");
    assert_string_equal(pairs_find(&x.spec.env, "KEY"), "value");
    assert_string_equal(x.spec.resume_job, "other-job");
    assert_int_equal(x.spec.resume_step, 20);
    assert_int_equal(x.spec.timeout, 12 * USEC_HOUR);
    assert_int_equal(x.spec.keep_last, 5);
    assert_true(x.spec.wandb_enabled);
    release(&x);
}

static void snapshots_are_named(void **state)
{
    static const char *const bad[][2] = {
        {"code: verl", "name@version"},
        {"code: ../x@1", "name@version"},
        {"code: verl@1\ncode_path: '${SHARED_ROOT}/common/code/verl/1'", "exclude each other"},
        {"working_dir: Mine@1", "name@version"},
        {"working_dir: '${SHARED_ROOT}/argus/snapshots/abc/tree'", "the content of a snapshot"},
        {"code_path: '${SHARED_ROOT}/users/../argus/snapshots/abc'", "the content of a snapshot"},
    };
    struct result x;
    (void)state;
    read_all(RAY "code: verl@1\nworking_dir: my-code@1\n", &x);
    assert_int_equal(x.ps.errors, 0);
    assert_string_equal(x.spec.code, "verl@1");
    assert_string_equal(x.spec.working_dir, "my-code@1");
    release(&x);
    for (size_t i = 0; i < array_len(bad); i++) {
        _cleanup_(freep) char *text = xasprintf(RAY "%s\n", bad[i][0]);
        read_all(text, &x);
        assert_int_equal(x.ps.errors, 1);
        assert_non_null(strstr(unit_problem(&x.ps.v[0]), bad[i][1]));
        release(&x);
    }
}

static void paths_of_argus_are_refused(void **state)
{
    static const char *const bad[] = {
        "train_file: '${SHARED_ROOT}/argus/secrets/x'",
        "code_path: '${SHARED_ROOT}/argus'",
        "working_dir: '${SHARED_ROOT}/common/../argus/uploads/1/data'",
    };
    struct result x;
    (void)state;
    for (size_t i = 0; i < array_len(bad); i++) {
        _cleanup_(freep) char *text = xasprintf(
            i == 0 ? "workload: sft\nn_gpus_per_node: 1\nmodel_id: o/m\n%s\n" : RAY "%s\n", bad[i]);
        read_all(text, &x);
        assert_int_equal(x.ps.errors, 1);
        assert_non_null(strstr(unit_problem(&x.ps.v[0]), "path_of_argus"));
        release(&x);
    }
}

static void jobs_that_are_named(void **state)
{
    static const char yaml[] =
        "workload: grpo\nn_gpus_per_node: 1\nmodel_id: /s/jobs/m-1/checkpoints/global_step_5\n"
        "train_file: [/s/common/jobs/no.parquet, /s/jobs/../jobs/d_2/out.parquet]\n"
        "val_file: gsm8k\nresume: r.3@7\nenv: {A: 'x:${SHARED_ROOT}/jobs/e4:/s/jobs/m-1/y'}\n"
        "overrides: ['+a.b=\"/s//jobs/o5\"', '+c=/x/s/jobs/no', '+d=/s/jobs/$ID', '+e=/s/jobsno/x']\n";
    static const char *const want[][2] = {{"resume", "r.3"},
                                          {"train_file", "d_2"},
                                          {"model_id", "m-1"},
                                          {"env", "e4"},
                                          {"overrides", "o5"}};
    struct result x;
    struct spec_jobs named;
    (void)state;
    read_all(yaml, &x);
    assert_int_equal(x.ps.errors, 0);
    spec_list_jobs(&x.spec, "/s", &named);
    assert_int_equal(named.n, array_len(want));
    for (size_t i = 0; i < named.n; i++) {
        assert_string_equal(named.v[i].field, want[i][0]);
        assert_string_equal(named.v[i].id, want[i][1]);
    }
    spec_jobs_release(&named);
    release(&x);
}

static void warnings(void **state)
{
    (void)state;
    warned(PPO "save_freq: 5\n", "save_freq", "save_freq_small");
    warned(PPO "env: {HF_TOKEN: x}\n", "env", "env_looks_secret");
    warned(RAY "idle: {action: stop}\n", "idle.window", "idle_no_window");
    warned("workload: serve\nentrypoint: [a]\nidle: {window: 1h}\n", "idle.window",
           "idle_of_service");
    warned(PPO "idle: {window: 1h, action: stop}\n", "idle.window", "idle_of_training");
    struct result x;
    accepted(RAY "idle: {window: 1h, action: stop}\n", &x);
    assert_int_equal(x.ps.n, 0);
    release(&x);
}

static void all_problems_at_once_with_places(void **state)
{
    (void)state;
    struct result x;
    read_only("workload: ppo\nn_gpu_per_node: 4\nnnodes: many\nsave_freq: 0\n"
              "overrides: [trainer.nnodes=3]\nenv:\n  PYTHONPATH: x\n",
              NULL, &x);
    assert_int_equal(x.r, ERR_BAD_SPEC);
    const struct problem *p = find(&x, "n_gpu_per_node", "unknown_key");
    assert_non_null(p);
    assert_int_equal(p->line, 2);
    assert_non_null(strstr(unit_problem(p), "n_gpus_per_node"));
    p = find(&x, "nnodes", "not_whole");
    assert_non_null(p);
    assert_int_equal(p->line, 3);
    p = find(&x, "save_freq", "save_freq_zero");
    assert_non_null(p);
    assert_int_equal(p->line, 4);
    assert_non_null(find(&x, "overrides", "override_owned"));
    assert_non_null(find(&x, "env", "belongs to the platform"));
    assert_non_null(find(&x, "model_id", "needs"));
    assert_non_null(find(&x, "train_file", "needs"));
    assert_non_null(find(&x, "val_file", "needs"));
    release(&x);
}

static void refusals(void **state)
{
    static const char *const rows[][3] = {
        {PPO "submission_id: Bad\n", "submission_id", "bad_job_id"},
        {PPO "submission_id: run-a2\n", "submission_id", "job_id_reserved"},
        {PPO "submission_id: run-trial\n", "submission_id", "job_id_reserved"},
        {PPO "save_freq: -1\n", "save_freq", "save_freq_never"},
        {PPO "save_freq: 10\ncheckpoint: none\n", "save_freq", "save_freq_and_none"},
        {PPO "test_freq: 0\n", "test_freq", "test_freq_zero"},
        {PPO "checkpoint: 3\n", "checkpoint", "not_mapping"},
        {PPO "checkpoint: {keep: 3}\n", "checkpoint.keep", "unknown_key"},
        {PPO "entrypoint: ls\n", "entrypoint", "workload_not_uses"},
        {PPO "n_cpus_per_node: 2\n", "n_cpus_per_node", "workload_not_uses"},
        {PPO "priority: 101\n", "priority", "outside_bounds"},
        {PPO "resume: Not An Id\n", "resume", "resume_job"},
        {PPO "resume: job@x\n", "resume", "resume_step"},
        {PPO "tracking: {backend: wandb}\n", "tracking.backend", "tracking_backend"},
        {PPO "tracking: {uri: x}\n", "tracking.uri", "tracking_no_backend"},
        {PPO "restart: {on: [node_lots]}\n", "restart.on", "restart_class"},
        {PPO "reward_fn_path: my_reward.py\n", "reward_fn_path", "reward_path"},
        {PPO "reward_fn_path: a..b\n", "reward_fn_path", "reward_path"},
        {PPO "entrypoint_resources: {worker_node: 0}\n", "entrypoint_resources",
         "worker_node_kept"},
        {PPO "entrypoint_resources: {GPU: 1}\n", "entrypoint_resources", "not_custom_resource"},
        {PPO "entrypoint_resources: {a: b}\n", "entrypoint_resources", "resource_amount"},
        {PPO "env: {'A B': x}\n", "env", "bad_env_name"},
        {PPO "env: {ARGUS_X: x}\n", "env", "env_owned"},
        {PPO "env: {A: x}\nruntime_env: {env_vars: {A: y}}\n", "env", "env_twice"},
        {PPO "runtime_env: {pip: [x]}\n", "runtime_env.pip", "unknown_key"},
        {PPO "secrets: ['a b']\n", "secrets", "bad_secret_name"},
        {PPO "secrets: [wandb_key]\n", "secrets", "bad_secret_name"},
        {PPO "secrets: [A, PYTHONPATH]\n", "secrets", "env_owned"},
        {PPO "secrets: [A]\nenv: {A: x}\n", "secrets", "secret_in_env"},
        {PPO "overrides: [nonsense]\n", "overrides", "override_form"},
        {PPO "overrides: ['--multirun']\n", "overrides", "override_option"},
        {PPO "overrides: ['" TOOLS "=/etc/x']\n", "overrides", "path_outside_root"},
        {PPO "overrides: ['++" TOOLS "=/s/../etc/x']\n", "overrides", "path_outside_root"},
        {PPO "overrides: ['" TOOLS "=${USER_ROOT}/../bob/x']\n", "overrides", "path_of_other_user"},
        {"workload: rocket\n", "workload", "not_one_of"},
        {"workload: notebook\n", "entrypoint", "notebook_needs"},
        {"workload: serve\n", "entrypoint", "workload_needs"},
        {"workload: tune\nentrypoint: a\noverrides: [a=b]\n", "overrides", "workload_no_overrides"},
        {"workload: data\nentrypoint: a\nsave_freq: 10\n", "save_freq", "workload_not_uses"},
        {"workload: rllib\nentrypoint: a\nresume: x\n", "resume", "workload_no_resume"},
        {PPO "entrypoint: a\n", "entrypoint", "workload_not_uses"},
        {"workload: ray\n", "entrypoint", "workload_needs"},
        {"workload: ray\nentrypoint: ' '\n", "entrypoint", "entrypoint_empty"},
        {RAY "overrides: [a=b]\n", "overrides", "workload_no_overrides"},
        {RAY "n_gpus_per_node: 0.3\n", "n_gpus_per_node", "gpus_not_whole"},
        {"workload: eval\nval_file: /s/a\n", "reward_fn_path", "workload_needs"},
        {"workload: merge\nmodel_id: o/m\n", "model_id", "merge_needs_path"},
        {"workload: merge\nmodel_id: /s/m\noverrides: ['--target_dir=/x']\n", "overrides",
         "override_owned"},
        {"workload: sft\nn_gpus_per_node: 1\nmodel_id: o/m\ntrain_file: /s/a\ntest_freq: 5\n",
         "test_freq", "test_without_val"},
    };
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++)
        refused(rows[i][0], rows[i][1], rows[i][2]);
}

/* The libraries of Ray are ray by another word; an entrypoint and verl's programs exclude each
 * other. */
static void words_for_an_entrypoint(void **state)
{
    static const char *const words[] = {"ray",   "train", "tune",    "data",
                                        "rllib", "serve", "notebook"};
    struct result x;
    (void)state;
    for (size_t i = 0; i < array_len(words); i++) {
        _cleanup_(freep) char *yaml = xasprintf(
            "workload: %s\nentrypoint: [python3, /s/a.py]\nn_gpus_per_node: 0.5\n", words[i]);
        accepted(yaml, &x);
        assert_int_equal(x.ps.n, 0);
        assert_string_equal(workload_to_string((enum workload)x.spec.workload), words[i]);
        release(&x);
    }
    for (int w = 0; w < WORKLOAD_COUNT; w++) {
        bool runs_any = workload_has_entrypoint((enum workload)w);
        assert_false(runs_any && workload_is_verl((enum workload)w));
        assert_int_equal(runs_any, w >= WORKLOAD_RAY);
    }
}

static void owned_overrides_in_every_disguise(void **state)
{
    static const char *const bad[] = {
        "trainer.nnodes=1",
        "+trainer.nnodes=1",
        "++trainer.nnodes=1",
        "~trainer.nnodes",
        "trainer={nnodes: 1}",
        "trainer= {nnodes: 1}",
        "trainer.nnodes@a=1",
        "trainer.n_gpus_per_node=1",
        "trainer.default_local_dir=/x",
        "hydra.run.dir=/x",
        "hydra.run={dir: /x}",
        "trainer.resume_mode=disable",
        "trainer.resume_from_path=/x",
        "ray_init.num_cpus=1",
        "+ray_kwargs.ray_init.num_cpus=1",
        "ray_kwargs={ray_init: {}}",
        "~trainer",
    };
    static const char *const good[] = {
        "trainer.nnodes_x=1",
        "data.train_batch_size=8",
        "trainer.save_freq=20",
        "+ray_kwargs.timeline_json_file=/x",
        "trainer=other",
        "a.trainer.nnodes=1",
        "--config-name=ppo_megatron_trainer.yaml",
        "hydra.verbose=true",
    };
    (void)state;
    for (size_t i = 0; i < array_len(bad); i++) {
        _cleanup_(freep) char *yaml = xasprintf(PPO "overrides: ['%s']\n", bad[i]);
        refused(yaml, "overrides", "override_owned");
    }
    for (size_t i = 0; i < array_len(good); i++) {
        struct result x;
        _cleanup_(freep) char *yaml = xasprintf(PPO "overrides: ['%s']\n", good[i]);
        accepted(yaml, &x);
        release(&x);
    }
}

static void limits(void **state)
{
    (void)state;
    struct result x;
    const struct spec_limits lim = {.gpus_per_job = 16};
    read_only(PPO "nnodes: 4\n", &lim, &x);
    assert_int_equal(x.r, 0);
    release(&x);
    read_only(PPO "nnodes: 4\nentrypoint_num_gpus: 1\n", &lim, &x);
    assert_int_equal(x.r, ERR_BAD_SPEC);
    assert_non_null(find(&x, "nnodes", "above the limit of 16"));
    release(&x);
}

static void paths_stay_under_the_roots(void **state)
{
    static const char *const rows[][2] = {
        {"/etc/passwd", "path_outside_root"},
        {"/s/../etc", "path_outside_root"},
        {"/sx/a", "path_outside_root"},
        {"/s/../../..", "path_outside_root"},
        {"relative/dir", "not an absolute"},
        {"my-code", "not an absolute"},
        {"/s/users/bob/code", "path_of_other_user"},
        {"/s/users/alice/../bob", "path_of_other_user"},
        {"/s/users/alicex", "path_of_other_user"},
        {"${HOME}/x", "unknown_variable"},
    };
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        _cleanup_(freep) char *yaml = xasprintf(RAY "working_dir: '%s'\n", rows[i][0]);
        refused(yaml, "working_dir", rows[i][1]);
    }
}

static void paths_become_canonical(void **state)
{
    static const char *const rows[][2] = {
        {"${USER_ROOT}/a//b/./c/", "/s/users/alice/a/b/c"},
        {"/s/x/../y", "/s/y"},
        {"/s", "/s"},
        {"/s/users", "/s/users"},
        {"/venvs/a/bin", "/venvs/a/bin"},
    };
    struct strv more = {0};
    struct spec_roots wide = roots;
    (void)state;
    strv_add(&more, "/venvs");
    wide.more = &more;
    for (size_t i = 0; i < array_len(rows); i++) {
        struct result x;
        _cleanup_(freep) char *yaml = xasprintf(RAY "working_dir: '%s'\n", rows[i][0]);
        read_only(yaml, NULL, &x);
        assert_int_equal(spec_expand(&x.spec, &wide, &x.ps), 0);
        assert_string_equal(x.spec.working_dir, rows[i][1]);
        release(&x);
    }
    strv_release(&more);
}

static void free_text_keeps_other_names(void **state)
{
    (void)state;
    struct result x;
    accepted("workload: ray\nentrypoint: 'ls ${SHARED_ROOT}/a ${HOME} $X ${'\n"
             "env: {A: '${USER_ROOT}:${B}'}\n",
             &x);
    assert_true(x.spec.entrypoint_is_shell);
    assert_string_equal(x.spec.entrypoint.v[0], "ls /s/a ${HOME} $X ${");
    assert_string_equal(x.spec.env.v[0].value, "/s/users/alice:${B}");
    release(&x);
    accepted("workload: ray\nentrypoint: [ls]\n", &x);
    assert_false(x.spec.entrypoint_is_shell);
    release(&x);
}

static void rewards(void **state)
{
    (void)state;
    struct result x;
    accepted(PPO "reward_fn_path: '${USER_ROOT}/r.py:score'\n", &x);
    assert_string_equal(x.spec.reward_file, "/s/users/alice/r.py");
    assert_string_equal(x.spec.reward_function, "score");
    assert_string_equal(x.spec.reward_fn_path, "/s/users/alice/r.py:score");
    assert_null(x.spec.reward_module);
    release(&x);
    accepted(PPO "reward_fn_path: 'my.rewards:f'\n", &x);
    assert_string_equal(x.spec.reward_module, "my.rewards");
    assert_string_equal(x.spec.reward_function, "f");
    assert_null(x.spec.reward_file);
    release(&x);
}

/* One canonical form; what is no path of the head is left to Hydra. */
static bool is_said(const struct result *x, const char *code, const char *part)
{
    const struct problem *p = find(x, "overrides", code);
    return p && strstr(unit_problem(p), part);
}

/* What Hydra cannot parse is told before a node is taken, with a spelling that it can. */
static void overrides_that_hydra_cannot_read(void **state)
{
    static const char *const rows[][3] = {
        {"trainer.experiment_name=lr=1e-6", "override_bad_value",
         "trainer.experiment_name='lr=1e-6'"},
        {"trainer.experiment_name=数学", "override_bad_value", "trainer.experiment_name='数学'"},
        {"trainer.experiment_name=run #7", "override_bad_value",
         "\"trainer.experiment_name='run #7'\""},
        {"trainer.logger=[console, wandb", "override_bad_value", "trainer.logger=[console, wandb]"},
        {"trainer.logger=console,wandb", "override_sweep", "trainer.logger=[console,wandb]"},
        {"+a.b={\"c\": 1}", "override_bad_value", "\"+a.b={c: 1}\""},
        {"a.b = 1", "override_bad_key", "a.b=1"},
        {" a.b=1", "override_bad_key", "a.b=1"},
        {"a.b=choice(1,2)", "override_sweep", "several runs"},
        {"a.b=f(1)", "override_bad_value", "a.b='f(1)'"},
        {"a.b='x ${'", "override_open_name", "does not close"},
    };
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        struct result x;
        _cleanup_(json_unrefp) json_t *text = json_string(rows[i][0]);
        _cleanup_(freep) char *quoted = json_dumps(text, JSON_ENCODE_ANY);
        _cleanup_(freep) char *yaml = xasprintf(PPO "overrides:\n  - a.b=1\n  - %s\n", quoted);
        read_all(yaml, &x);
        assert_int_equal(x.ps.errors, 1);
        if (!is_said(&x, rows[i][1], rows[i][2]))
            fail_msg("%s: %s", rows[i][0], unit_problem(&x.ps.v[0]));
        const struct problem *p = find(&x, "overrides", rows[i][1]);
        assert_int_equal(p->column, 5); /* of the item, and not of the list */
        release(&x);
    }
}

/* Told, and accepted: a shell's quotes, and two places that say the same thing. */
static void overrides_that_are_told(void **state)
{
    static const struct {
        const char *override, *code, *part;
    } rows[] = {
        {"trainer.logger='[\"console\",\"wandb\"]'", "override_quoted_list",
         "trainer.logger=[\"console\",\"wandb\"]"},
        {"data.train_files=\"['/s/x.parquet']\"", "override_quoted_list", "one text here"},
        {"data.train_files=/s/other.parquet", "override_replaces", "goes before 'train_file'"},
        {"++data.val_files=[/s/a, /s/b]", "override_replaces", "goes before 'val_file'"},
        {"actor_rollout_ref.model.path=/s/m2", "override_replaces", "goes before 'model_id'"},
        {"data.train_files=/s/train.parquet", NULL, NULL},
        {"trainer.note='[x'", NULL, NULL},
        {"trainer.note='(see [1])'", NULL, NULL},
        {"a.b=${c.d}", NULL, NULL},
    };
    static const char spec[] = "workload: ppo\nn_gpus_per_node: 1\nmodel_id: /s/m\n"
                               "train_file: /s/train.parquet\nval_file: /s/v.parquet\n";
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        struct result x;
        _cleanup_(json_unrefp) json_t *text = json_string(rows[i].override);
        _cleanup_(freep) char *quoted = json_dumps(text, JSON_ENCODE_ANY);
        _cleanup_(freep) char *yaml = xasprintf("%soverrides: [%s]\n", spec, quoted);
        read_all(yaml, &x);
        if (x.ps.errors > 0)
            fail_msg("%s: %s", rows[i].override, unit_problem(&x.ps.v[0]));
        if (rows[i].code ? !is_said(&x, rows[i].code, rows[i].part) : x.ps.n > 0)
            fail_msg("%s: %s", rows[i].override, x.ps.n ? unit_problem(&x.ps.v[0]) : "nothing");
        release(&x);
    }
}

/* What the job will really read. */
static void final_values(void **state)
{
    struct result x;
    struct spec held;
    unsigned replaced;
    (void)state;
    read_all("workload: grpo\nn_gpus_per_node: 1\nmodel_id: /s/m\ntrain_file: /s/a\n"
             "val_file: /s/b\noverrides: [trainer.logger=console]\n",
             &x);
    assert_ptr_equal(spec_final(&x.spec, &held, &replaced), &x.spec);
    assert_int_equal(replaced, 0);
    spec_release(&held);
    release(&x);
    read_all(
        "workload: grpo\nn_gpus_per_node: 1\nmodel_id: /s/m\ntrain_file: /s/a\nval_file: /s/b\n"
        "reward_fn_path: /s/r.py:one\n"
        "overrides:\n"
        "  - data.train_files=/s/first\n"
        "  - data.train_files=['${SHARED_ROOT}/c d',/s/e]\n"
        "  - data.val_files=${other.key}\n"
        "  - +reward.custom_reward_function.path=pkg://own.reward\n"
        "  - reward.custom_reward_function.name=two\n",
        &x);
    assert_int_equal(x.ps.errors, 0);
    const struct spec *final = spec_final(&x.spec, &held, &replaced);
    assert_int_equal(replaced, SPEC_REPLACED_TRAIN | SPEC_REPLACED_VAL | SPEC_REPLACED_REWARD);
    assert_int_equal(final->train_file.n, 2);
    assert_string_equal(final->train_file.v[0], "/s/c d");
    assert_string_equal(final->train_file.v[1], "/s/e");
    assert_int_equal(final->val_file.n, 0);
    assert_string_equal(final->model_id, "/s/m");
    assert_null(final->reward_file);
    assert_string_equal(final->reward_module, "own.reward");
    assert_string_equal(final->reward_function, "two");
    assert_string_equal(x.spec.train_file.v[0], "/s/a");
    spec_release(&held);
    release(&x);
    refused("workload: sft\nn_gpus_per_node: 1\nmodel_id: /s/m\ntrain_file: /s/a\n"
            "overrides: [data.train_files=/nowhere/x.parquet]\n",
            "overrides", "path_outside_root");
    refused("workload: sft\nn_gpus_per_node: 1\nmodel_id: /s/m\ntrain_file: /s/a\n"
            "overrides: ['model.path=${SHARED_ROOT}/users/bob/m']\n",
            "overrides", "path_of_other_user");
}

/* What a spec says in so many words, and what it costs. */
static void texts_with_a_limit(void **state)
{
    char many[900] = "", long_name[420] = "";
    (void)state;
    for (int i = 0; i < 201; i++)
        memcpy(long_name + 2 * i, "\xc3\xa9", 3);
    memcpy(many, long_name, 400);
    _cleanup_(freep) char *fits = xasprintf("workload: ray\nentrypoint: a\nname: %s\n", many);
    struct result x;
    read_all(fits, &x);
    assert_int_equal(x.ps.n, 0); /* letters count, not bytes */
    release(&x);
    _cleanup_(freep) char *beyond =
        xasprintf("workload: ray\nentrypoint: a\nname: %s\n", long_name);
    refused(beyond, "name", "job_name_long");
    refused("workload: ray\nentrypoint: a\nname: \"a\\nb\"\n", "name", "name_control");
    refused("workload: ray\nentrypoint: a\nname: \"a\\x1b[31m\"\n", "name", "name_control");
    refused("workload: ray\nentrypoint: a\nname: \"a\\x9bm\"\n", "name", "name_control");
    refused("workload: ray\nentrypoint: ['']\n", "entrypoint", "entrypoint_no_program");
    refused("workload: ray\nentrypoint: [\" \", a]\n", "entrypoint", "entrypoint_no_program");
    refused("workload: ray\nentrypoint: \" \\n\"\n", "entrypoint", "entrypoint_empty");
    refused("workload: ray\nentrypoint: []\n", "entrypoint", "workload_needs");
}

/* Ray puts all of it into one variable, as JSON in ASCII. */
static void environments_that_ray_cannot_pass_on(void **state)
{
    enum { HALF = 60 * 1024 };
    _cleanup_(freep) char *half = xcalloc(1, HALF + 1), *letters = xcalloc(1, HALF + 1);
    (void)state;
    memset(half, 'x', HALF);
    for (size_t i = 0; i < 20 * 1024; i++)
        memcpy(letters + 3 * i, "\xe5\xbc\xba", 3);
    struct result x;
    _cleanup_(freep) char *fits = xasprintf("workload: ray\nentrypoint: a\nenv: {A: %s}\n", half);
    read_all(fits, &x);
    assert_int_equal(x.ps.errors, 0);
    release(&x);
    _cleanup_(freep) char *both =
        xasprintf("workload: ray\nentrypoint: a\nenv: {A: %s, LONGEST: %s1}\n", half, half);
    refused(both, "env", "'LONGEST' takes");
    _cleanup_(freep) char *wide =
        xasprintf("workload: ray\nentrypoint: a\nruntime_env: {env_vars: {A: %s}}\n", letters);
    refused(wide, "runtime_env.env_vars", "env_too_large"); /* 6 bytes each */
}

static void entrypoints_that_are_told(void **state)
{
    static const struct {
        const char *entrypoint, *code;
    } rows[] = {
        {"python3 train.py | tee log", "entrypoint_pipe"},
        {"'python3 train.py 2>&1 |& tee log'", "entrypoint_pipe"},
        {"[bash, -lc, 'python3 train.py | tee log']", "entrypoint_pipe"},
        {"[/bin/sh, -c, 'a|b']", "entrypoint_pipe"},
        {"set -o pipefail; python3 train.py | tee log", NULL},
        {"[bash, -o, pipefail, -c, 'true || a']", NULL},
        {"python3 /s/train.py || exit 3", NULL},
        {"echo 'a | b'", NULL},
        {"\"echo \\\"a | b\\\" >| file\"", NULL},
        {"[echo, 'a | b']", NULL},
        {"\"echo a # | b\"", NULL},
        {"[python3, train.py]", "entrypoint_no_dir"},
        {"python3 src/train.py --n 1", "entrypoint_no_dir"},
        {"./run.sh", "entrypoint_no_dir"},
        {"[python3, /s/train.py]", NULL},
        {"[python3, train.py]\nworking_dir: /s/code", NULL},
        {"python3 -c 1; ./x.py", NULL},
        {"python3 /s/t.py --api-key 0f1e2d3c4b5a69788796a5b4", "text_looks_secret"},
        {"[python3, /s/t.py, --api-key, 0f1e2d3c4b5a69788796a5b4]", "text_looks_secret"},
        {"[python3, /s/t.py, --api-key, $API_KEY]", NULL},
    };
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        struct result x;
        _cleanup_(freep) char *yaml =
            xasprintf("workload: ray\nentrypoint: %s\n", rows[i].entrypoint);
        read_all(yaml, &x);
        assert_int_equal(x.ps.errors, 0);
        if (rows[i].code ? !find(&x, "entrypoint", rows[i].code) : x.ps.n > 0)
            fail_msg("%s: %s", rows[i].entrypoint, x.ps.n ? unit_problem(&x.ps.v[0]) : "nothing");
        release(&x);
    }
}

static void overrides_that_name_files(void **state)
{
    static const char *const rows[][2] = {
        {TOOLS "=/s//a/../b/", TOOLS "=/s/b"},
        {"+" TOOLS "=${SHARED_ROOT}/t", "+" TOOLS "=/s/t"},
        {TOOLS "=config/t.yaml", TOOLS "=config/t.yaml"},
        {TOOLS "=/etc/${oc.env:X}", TOOLS "=/etc/${oc.env:X}"},
        {"a.b=/etc/x", "a.b=/etc/x"},
    };
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        struct result x;
        _cleanup_(freep) char *yaml = xasprintf(PPO "overrides: ['%s']\n", rows[i][0]);
        read_only(yaml, NULL, &x);
        assert_int_equal(spec_expand(&x.spec, &roots, &x.ps), 0);
        assert_string_equal(x.spec.overrides.v[0], rows[i][1]);
        release(&x);
    }
}

static void overrides_are_found(void **state)
{
    (void)state;
    struct spec s = {0};
    strv_add(&s.overrides, "a.b=1");
    strv_add(&s.overrides, "++a.b='x=y'");
    strv_add(&s.overrides, "~c.d=1");
    strv_add(&s.overrides, "--config-name=x");
    assert_string_equal(spec_override_find(&s, "a.b"), "'x=y'");
    _cleanup_(freep) char *file = xasprintf("+%s=/s/t", spec_file_overrides[1]);
    assert_string_equal(spec_override_file(file), "/s/t");
    assert_null(spec_override_file("a.b=/s/t"));
    assert_null(spec_override_find(&s, "a"));
    assert_null(spec_override_find(&s, "a.b.c"));
    assert_null(spec_override_find(&s, "c.d"));
    strv_release(&s.overrides);
}

static void ids(void **state)
{
    static const char *const good[] = {"a", "0", "my-run-7", "a.b_c-d", "run-a", "run-b2", "xa2"};
    static const char *const bad[] = {"",
                                      "-a",
                                      ".a",
                                      "A",
                                      "a b",
                                      "é",
                                      "a/b",
                                      "r-a1",
                                      "r-a12",
                                      "a-trial",
                                      "a\n",
                                      ("0123456789012345678901234567890123456789012345678901234567"
                                       "890123")};
    (void)state;
    for (size_t i = 0; i < array_len(good); i++)
        assert_int_equal(spec_check_id(good[i], NULL), 0);
    for (size_t i = 0; i < array_len(bad); i++)
        assert_int_equal(spec_check_id(bad[i], NULL), ERR_BAD_SPEC);
}

static void generated_ids_are_good(void **state)
{
    (void)state;
    char id[SPEC_ID_BUF];
    const usec_t now = 1795255200ULL * USEC_SEC;
    const unsigned char zero[6] = {0};
    assert_string_equal(spec_generate_id(WORKLOAD_GRPO, now, zero, id), "grpo-20261121-aaaaaa");
    for (int w = 0; w < WORKLOAD_COUNT; w++)
        for (int i = 0; i < 256; i++) {
            unsigned char b[6];
            memset(b, i, sizeof(b));
            b[0] = (unsigned char)(i * 7);
            assert_int_equal(spec_check_id(spec_generate_id((enum workload)w, now, b, id), NULL),
                             0);
        }
}

static void copies(void **state)
{
    (void)state;
    struct result x;
    struct spec copy = {0};
    accepted(PPO "env: {HF_TOKEN: secret, A: b}\ncheckpoint: none\nresume: never\n"
                 "reward_fn_path: ${SHARED_ROOT}/common/r.py:score\noverrides: [a.b=1]\n",
             &x);
    spec_copy(&copy, &x.spec);
    assert_true(field_equal(&spec_table, &copy, &x.spec, ~0u));
    assert_true(copy.checkpoint_none);
    assert_int_equal(copy.resume_mode, SPEC_RESUME_NEVER);
    assert_string_equal(copy.reward_file, x.spec.reward_file);
    assert_string_equal(copy.reward_function, "score");
    assert_ptr_not_equal(copy.overrides.v[0], x.spec.overrides.v[0]);
    release(&x);
    spec_release(&copy);
}

static void json(void **state)
{
    (void)state;
    struct result x;
    struct buf b = BUF_INIT(10000);
    struct jout j = jout_begin(&b);
    accepted(PPO "env: {HF_TOKEN: secret, A: b}\ncheckpoint: none\nwandb: {enabled: true}\n"
                 "timeout: 2m\n",
             &x);
    spec_to_json(&x.spec, &j, NULL);
    assert_false(b.failed);
    json_t *o = NULL;
    assert_int_equal(json_parse(buf_str(&b), b.len, 10000, &o, NULL), 0);
    assert_string_equal(json_get_str(o, "workload", ""), "ppo");
    assert_int_equal(json_get_int(o, "n_gpus_per_node", 0), 4);
    assert_string_equal(json_get_str(o, "checkpoint", ""), "none");
    assert_string_equal(json_get_str(o, "timeout", ""), "120s");
    assert_string_equal(json_get_str(json_get_object(o, "env"), "HF_TOKEN", ""), "***");
    assert_string_equal(json_get_str(json_get_object(o, "env"), "A", ""), "b");
    assert_true(json_get_bool(json_get_object(o, "wandb"), "enabled", false));
    assert_null(strstr(buf_str(&b), "secret"));
    json_decref(o);
    buf_release(&b);
    release(&x);
}

/* A value that a row takes, other than its default. */
static const char *sample_of(const struct field *f)
{
    switch (f->type) {
    case FIELD_INT:
    case FIELD_REAL:
        return "1";
    case FIELD_BOOL:
        return f->dflt && !strcmp(f->dflt, "true") ? "false" : "true";
    case FIELD_SPAN:
        return "120s";
    case FIELD_SIZE:
        return "3GiB";
    case FIELD_ENUM:
        return f->names[1];
    case FIELD_PAIRS:
    case FIELD_JSON:
        return "{A: b}";
    default:
        return "word";
    }
}

/* "a.b" and x as {a: {b: x}}. */
static char *nest(const char *name, const char *value)
{
    const char *dot = strchr(name, '.');
    if (!dot)
        return xasprintf("{%s: %s}", name, value);
    _cleanup_(freep) char *inner = nest(dot + 1, value);
    return xasprintf("{%.*s: %s}", (int)(dot - name), name, inner);
}

static void check_key_round_trip(const struct field *f)
{
    const struct field_table one = {.rows = f, .n = 1, .size = sizeof(struct spec)};
    struct spec asked = {0}, back = {0};
    struct problems ps = {0};
    struct buf b = BUF_INIT(10000);
    struct jout j = jout_begin(&b);
    struct doc *d = NULL;
    _cleanup_(freep) char *yaml = nest(f->name, sample_of(f));
    assert_int_equal(doc_parse(yaml, strlen(yaml), true, &d, &ps), 0);
    conf_read(f, 1, doc_root(d), &asked, &ps);
    assert_int_equal(ps.errors, 0);
    spec_to_json(&asked, &j, NULL);
    json_t *v = json_loads(buf_str(&b), 0, NULL);
    field_from_json(&one, v, FIELD_ALL, &back);
    if (!field_equal(&one, &asked, &back, FIELD_ALL))
        fail_msg("'%s' is lost: %s", f->name, buf_str(&b));
    json_decref(v);
    field_release(&one, &asked);
    field_release(&one, &back);
    problems_release(&ps);
    doc_free(d);
    buf_release(&b);
}

/* Each key of the JobSpec, alone, is in the JSON and reads back as what was asked for. */
static void every_key_is_in_the_json(void **state)
{
    (void)state;
    for (size_t i = 0; i < spec_table.n; i++)
        check_key_round_trip(&spec_table.rows[i]);
}

/* What spec_to_json writes is a JobSpec again, and the same one. */
static void json_reads_back(void **state)
{
    (void)state;
    struct result x, y;
    struct buf b = BUF_INIT(10000), c = BUF_INIT(10000);
    struct jout j = jout_begin(&b), k = jout_begin(&c);
    accepted("workload: ray\nentrypoint: 'a b'\nn_gpus_per_node: 0.5\nenv: {A: b}\n"
             "restart: {max: 2, on: [infra]}\ncheckpoint: {keep_last: 7}\n"
             "entrypoint_num_cpus: 0\n",
             &x);
    spec_to_json(&x.spec, &j, NULL);
    accepted(buf_str(&b), &y);
    spec_to_json(&y.spec, &k, NULL);
    assert_string_equal(buf_str(&b), buf_str(&c));
    assert_non_null(strstr(buf_str(&b), "\"entrypoint_num_cpus\":0"));
    assert_null(strstr(buf_str(&b), "entrypoint_num_gpus"));
    buf_release(&b);
    buf_release(&c);
    release(&x);
    release(&y);
}

/* The founding documents' files are accepted unchanged. */
static void founding_files(void **state)
{
    static const char *const files[] = {"jobspec_ppo.yaml", "jobspec_grpo.yaml",
                                        "jobspec_sft.yaml"};
    (void)state;
    for (size_t i = 0; i < array_len(files); i++) {
        struct result x;
        char text[8192];
        _cleanup_(freep) char *path = xasprintf("%s/compat/%s", EXAMPLES_DIR, files[i]);
        FILE *f = fopen(path, "re");
        if (!f)
            fail_msg("%s is missing", path);
        size_t n = fread(text, 1, sizeof(text) - 1, f);
        assert_int_equal(fclose(f), 0);
        text[n] = 0;
        accepted(text, &x);
        assert_null(x.spec.id);
        assert_true(x.spec.nnodes == 2 && x.spec.gpus_per_node == 4);
        release(&x);
    }
}

static void not_a_mapping(void **state)
{
    (void)state;
    struct result x;
    read_only("[1, 2]\n", NULL, &x);
    assert_int_equal(x.r, ERR_BAD_SPEC);
    release(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_and_defaults),
        cmocka_unit_test(every_key_of_the_manual),
        cmocka_unit_test(snapshots_are_named),
        cmocka_unit_test(paths_of_argus_are_refused),
        cmocka_unit_test(jobs_that_are_named),
        cmocka_unit_test(warnings),
        cmocka_unit_test(all_problems_at_once_with_places),
        cmocka_unit_test(refusals),
        cmocka_unit_test(words_for_an_entrypoint),
        cmocka_unit_test(owned_overrides_in_every_disguise),
        cmocka_unit_test(overrides_that_hydra_cannot_read),
        cmocka_unit_test(overrides_that_are_told),
        cmocka_unit_test(final_values),
        cmocka_unit_test(texts_with_a_limit),
        cmocka_unit_test(environments_that_ray_cannot_pass_on),
        cmocka_unit_test(entrypoints_that_are_told),
        cmocka_unit_test(limits),
        cmocka_unit_test(paths_stay_under_the_roots),
        cmocka_unit_test(paths_become_canonical),
        cmocka_unit_test(free_text_keeps_other_names),
        cmocka_unit_test(rewards),
        cmocka_unit_test(overrides_are_found),
        cmocka_unit_test(overrides_that_name_files),
        cmocka_unit_test(ids),
        cmocka_unit_test(generated_ids_are_good),
        cmocka_unit_test(copies),
        cmocka_unit_test(json),
        cmocka_unit_test(every_key_is_in_the_json),
        cmocka_unit_test(json_reads_back),
        cmocka_unit_test(founding_files),
        cmocka_unit_test(not_a_mapping),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

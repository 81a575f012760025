/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of cmdline.h.
 *
 * tests/golden/cmdline/<workload>.yaml gives one text per verl version, beside it:
 * write them anew with ARGUS_GOLDEN=write and read the difference. */
#include "core/verl/cmdline.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/str.h"
#include "cmdline_make.h"

#include "base/unit.h"
#include "base/unit_message.h"

enum { TEXT_MAX = 1 << 18 };

static const struct make_place place = {
    .root = "/private",
    .hook = "/private/argus/hook",
    .code = "/private/users/alice/code",
};

/* ---- golden files ---- */

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return NULL;
    char *text = xcalloc(TEXT_MAX, 1);
    assert_true(fread(text, 1, TEXT_MAX - 1, f) < TEXT_MAX - 1);
    assert_int_equal(fclose(f), 0);
    return text;
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void check_golden(const char *workload, const char *version)
{
    struct made m;
    struct buf out = BUF_INIT(TEXT_MAX);
    _cleanup_(freep) char *from = xasprintf("%s/cmdline/%s.yaml", GOLDEN_DIR, workload);
    _cleanup_(freep) char *path = xasprintf("%s/cmdline/%s-%s.txt", GOLDEN_DIR, workload, version);
    _cleanup_(freep) char *yaml = read_file(from);
    assert_non_null(yaml);
    if (make_cmdline(yaml, version, &place, &m) < 0)
        fail_msg("%s %s: %s", workload, version, m.err.text);
    made_to_text(&m, &out);
    if (str_eq(getenv("ARGUS_GOLDEN"), "write"))
        write_file(path, buf_str(&out));
    _cleanup_(freep) char *want = read_file(path);
    assert_non_null(want);
    assert_string_equal(buf_str(&out), want);
    buf_release(&out);
    made_release(&m);
}

static void golden_files(void **state)
{
    static const char *const workloads[] = {
        "ppo",  "grpo", "megatron", "multiturn", "sft",
        "sft2", "eval", "generate", "merge",     "merge_megatron",
    };
    static const char *const versions[] = {"0.5.0", "0.6.1", "0.7.1", "0.8.0", "0.9.1"};
    (void)state;
    for (size_t i = 0; i < array_len(workloads); i++)
        for (size_t j = 0; j < array_len(versions); j++)
            if (strcmp(workloads[i], "sft2") != 0 || j >= 2) /* two nodes: 0.7.0 and newer */
                check_golden(workloads[i], versions[j]);
    check_golden("ray", "any");
}

/* ---- details ---- */

#define GRPO                                                                                       \
    "workload: grpo\nsubmission_id: g\nn_gpus_per_node: 4\nmodel_id: o/m\n"                        \
    "train_file: /private/a.parquet\nval_file: /private/b.parquet\n"

static void make(const char *yaml, const char *version, struct made *m)
{
    if (make_cmdline(yaml, version, &place, m) < 0) {
        struct buf b = BUF_INIT(10000);
        problems_to_text(&m->ps, "spec", MESSAGE_ENGLISH, &b);
        fail_msg("%s%s", buf_str(&b), m->err.text);
    }
}

static const char *env(const struct made *m, const char *name)
{
    return str_or(pairs_find(&m->cmd.env, name), "(none)");
}

static void is_refused(const char *yaml, const char *version, const char *part)
{
    struct made m;
    assert_int_equal(make_cmdline(yaml, version, &place, &m), ERR_BAD_SPEC);
    if (!strstr(m.err.text, part))
        fail_msg("'%s' is not in '%s'", part, m.err.text);
    made_release(&m);
}

/* Ray's libraries have the command line, environment and demand of workload ray. */
static void words_for_an_entrypoint(void **state)
{
    static const char *const words[] = {"train", "tune", "data", "rllib", "serve", "notebook"};
    _cleanup_(freep) char *ray = read_file(GOLDEN_DIR "/cmdline/ray.yaml");
    _cleanup_(freep) char *want = read_file(GOLDEN_DIR "/cmdline/ray-any.txt");
    (void)state;
    const char *rest = strstr(ray, "submission_id:");
    for (size_t i = 0; i < array_len(words); i++) {
        struct made m;
        struct buf out = BUF_INIT(TEXT_MAX);
        _cleanup_(freep) char *yaml = xasprintf("workload: %s\n%s", words[i], rest);
        make(yaml, "any", &m);
        made_to_text(&m, &out);
        assert_string_equal(buf_str(&out), want);
        buf_release(&out);
        made_release(&m);
    }
}

static void what_a_version_cannot_do(void **state)
{
    (void)state;
    is_refused("workload: sft\nnnodes: 2\nn_gpus_per_node: 1\nmodel_id: o/m\n"
               "train_file: /private/a\n",
               "0.6.1", "needs verl 0.7.0");
    is_refused("workload: sft\nn_gpus_per_node: 1\nmodel_id: o/m\ntrain_file: /private/a\n",
               "0.5.0", "needs 'val_file'");
    is_refused(GRPO "resume: other\n", "0.9.1", "no verified checkpoint to resume");
    is_refused(GRPO "extra_pythonpath: ['/private/a:b']\n", "0.9.1", "colon");
    is_refused(GRPO "name: x\nproject: '??\?'\n", "0.9.1", "trainer.project_name");
}

static bool has_arg(const struct made *m, const char *arg)
{
    for (size_t i = 0; i < m->cmd.argv.n; i++)
        if (str_eq(m->cmd.argv.v[i], arg))
            return true;
    return false;
}

/* The first attempt begins where another job ended; one that follows goes on from its own. */
static void a_restart_resumes_from_its_own(void **state)
{
    struct make_place later = place;
    struct made m;
    (void)state;
    make(GRPO "resume: other@5\n", "0.9.1", &m);
    assert_true(has_arg(&m, "trainer.resume_mode=resume_path"));
    made_release(&m);
    later.own_step = 7;
    assert_int_equal(make_cmdline(GRPO "resume: other@5\n", "0.9.1", &later, &m), 0);
    assert_true(has_arg(&m, "trainer.resume_mode=resume_path"));
    _cleanup_(freep) char *own =
        xasprintf("trainer.resume_from_path=%s/jobs/g/checkpoints/global_step_7", place.root);
    assert_true(has_arg(&m, own));
    made_release(&m);
}

static void reward_modules(void **state)
{
    struct made m;
    (void)state;
    make(GRPO "reward_fn_path: 'my.rewards:f'\n", "0.9.1", &m);
    assert_true(strv_has(&m.cmd.argv, "reward.custom_reward_function.path='pkg://my.rewards'"));
    assert_true(strv_has(&m.cmd.argv, "reward.custom_reward_function.name=f"));
    assert_int_equal(m.cmd.files.n, 0);
    made_release(&m);
    make(GRPO "reward_fn_path: 'my.rewards:f'\n", "0.5.0", &m); /* it takes a file only */
    assert_int_equal(m.cmd.files.n, 1);
    assert_non_null(strstr(m.cmd.files.v[0].key, "/reward/custom_module.py"));
    assert_string_equal(m.cmd.files.v[0].value, "from my.rewards import f  # noqa: F401\n");
    assert_true(strv_has(&m.cmd.argv, "custom_reward_function.name=f"));
    assert_null(strstr(pairs_find(&m.cmd.env, "PYTHONPATH"), "/reward"));
    made_release(&m);
    make("workload: eval\nval_file: /private/a.parquet\nreward_fn_path: 'my.rewards:f'\n", "0.5.0",
         &m); /* its workers import it by its name */
    assert_int_equal(m.cmd.files.n, 1);
    assert_non_null(strstr(pairs_find(&m.cmd.env, "PYTHONPATH"), "/reward"));
    made_release(&m);
}

static void overrides_replace_ours_and_come_last(void **state)
{
    struct made m;
    (void)state;
    make(GRPO "overrides: [actor_rollout_ref.rollout.name=hf, '+new.key=1', "
              "--config-name=ppo_megatron_trainer.yaml]\n",
         "0.5.0", &m);
    const struct strv *a = &m.cmd.argv;
    assert_false(strv_has(a, "actor_rollout_ref.rollout.name=vllm"));
    assert_string_equal(a->v[2], "verl.trainer.main_ppo");
    assert_string_equal(a->v[3], "--config-name=ppo_megatron_trainer.yaml");
    assert_string_equal(a->v[a->n - 2], "actor_rollout_ref.rollout.name=hf");
    assert_string_equal(a->v[a->n - 1], "+new.key=1");
    made_release(&m);
}

static void samples_go_below_the_job(void **state)
{
    static const char rollout[] = "++trainer.rollout_data_dir=/private/jobs/g/samples/rollout";
    static const char val[] = "++trainer.validation_data_dir=/private/jobs/g/samples/validation";
    static const struct {
        const char *line;
        bool has_rollout, has_val;
    } rows[] = {
        {"", true, true},
        {"samples: false\n", false, false},
        {"overrides: ['trainer.rollout_data_dir=null']\n", false, true},
        {"overrides: ['++trainer.validation_data_dir=/private/v']\n", true, false},
    };
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        struct made m;
        _cleanup_(freep) char *yaml = xasprintf(GRPO "%s", rows[i].line);
        make(yaml, "0.9.1", &m);
        assert_int_equal(strv_has(&m.cmd.argv, rollout), rows[i].has_rollout);
        assert_int_equal(strv_has(&m.cmd.argv, val), rows[i].has_val);
        bool has_any = rows[i].has_rollout || rows[i].has_val;
        assert_string_equal(env(&m, "ARGUS_SAMPLES"),
                            has_any ? "/private/jobs/g/samples" : "(none)");
        made_release(&m);
    }
}

static void save_freq(void **state)
{
    static const struct {
        const char *lines;
        int64_t rows, want;
    } rows[] = {
        {"", 0, 10},
        {"total_training_steps: 29\n", 0, 10},
        {"total_training_steps: 1004\n", 0, 100},
        {"total_training_steps: 1005\n", 0, 101},
        {"total_epochs: 2\n", 256000, 200},
        {"total_epochs: 2\noverrides: [data.train_batch_size=100]\n", 100000, 200},
        {"save_freq: 7\n", 0, 7},
        {"checkpoint: none\n", 0, -1},
        {"overrides: [trainer.save_freq=33]\n", 0, 33},
    };
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        struct made m;
        struct cmdline c;
        _cleanup_(freep) char *yaml = xasprintf(GRPO "%s", rows[i].lines);
        make(yaml, "0.9.1", &m);
        const struct cmdline_in in = {
            .spec = &m.spec,
            .version = verl_version_find("0.9.1", NULL),
            .id = "g",
            .attempt = 2,
            .shared_root = "/private",
            .user_root = "/private/users/alice",
            .job_dir = "/private/jobs/g",
            .attempt_dir = "/private/jobs/g/attempts/2",
            .train_rows = rows[i].rows,
        };
        assert_int_equal(cmdline_build(&in, &c, &m.ps, &m.err), 0);
        assert_int_equal(c.save_freq, rows[i].want);
        assert_string_equal(pairs_find(&c.env, "ARGUS_ATTEMPT"), "2");
        assert_string_equal(pairs_find(&c.env, "VERL_FILE_LOGGER_PATH"),
                            "/private/jobs/g/attempts/2/metrics.jsonl");
        cmdline_release(&c);
        made_release(&m);
    }
}

static void small_hosts_get_one_storage_thread(void **state)
{
    static const struct {
        double cpus;
        const char *version, *want;
    } rows[] = {{0, "0.9.1", NULL}, {2, "0.9.1", "1"}, {8, "0.9.1", NULL}, {2, "0.8.0", NULL}};
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        struct made m;
        struct cmdline c;
        make(GRPO, rows[i].version, &m);
        const struct cmdline_in in = {
            .spec = &m.spec,
            .version = verl_version_find(rows[i].version, NULL),
            .id = "g",
            .attempt = 1,
            .shared_root = "/private",
            .user_root = "/private/users/alice",
            .job_dir = "/private/jobs/g",
            .attempt_dir = "/private/jobs/g/attempts/1",
            .node_cpus = rows[i].cpus,
        };
        assert_int_equal(cmdline_build(&in, &c, &m.ps, &m.err), 0);
        assert_true(str_eq(pairs_find(&c.env, "TQ_NUM_THREADS"), rows[i].want));
        cmdline_release(&c);
        made_release(&m);
    }
}

static void the_spec_wins_over_the_config(void **state)
{
    struct made m;
    struct cmdline c;
    struct pairs config = {0};
    (void)state;
    pairs_set(&config, "A", "config");
    pairs_set(&config, "B", "config");
    pairs_set(&config, "PYTHONPATH", "/elsewhere");
    make("workload: ray\nentrypoint: [x]\nenv: {A: spec, RAY_DEDUP_LOGS: '1'}\n", NULL, &m);
    const struct cmdline_in in = {
        .spec = &m.spec,
        .id = "r",
        .attempt = 1,
        .shared_root = "/private",
        .user_root = "/private/users/alice",
        .job_dir = "/private/jobs/r",
        .attempt_dir = "/private/jobs/r/attempts/1",
        .hook_dir = "/private/argus/hook",
        .env = &config,
    };
    assert_int_equal(cmdline_build(&in, &c, &m.ps, &m.err), 0);
    assert_string_equal(pairs_find(&c.env, "A"), "spec");
    assert_string_equal(pairs_find(&c.env, "B"), "config");
    assert_string_equal(pairs_find(&c.env, "RAY_DEDUP_LOGS"), "1");
    assert_string_equal(pairs_find(&c.env, "PYTHONPATH"), "/private/argus/hook:${PYTHONPATH}");
    assert_null(pairs_find(&c.env, "HYDRA_FULL_ERROR"));
    cmdline_release(&c);
    pairs_release(&config);
    made_release(&m);
}

static void shell_lines(void **state)
{
    struct made m;
    (void)state;
    make("workload: ray\nentrypoint: 'python3 x.py | tee \"a b\"'\nworking_dir: /private/w\n", NULL,
         &m);
    assert_int_equal(m.cmd.argv.n, 3);
    assert_string_equal(m.cmd.argv.v[0], "/bin/sh");
    assert_string_equal(m.cmd.argv.v[1], "-c");
    assert_string_equal(m.cmd.argv.v[2], "python3 x.py | tee \"a b\"");
    assert_string_equal(m.cmd.cwd, "/private/w");
    made_release(&m);
    make("workload: ray\nentrypoint: 'python3 x.py'\n"
         "runtime_env: {py_executable: '/private/v 1/bin/python'}\n",
         NULL, &m);
    assert_string_equal(m.cmd.argv.v[2],
                        "PATH='/private/v 1/bin':$PATH; export PATH; python3 x.py");
    assert_null(m.cmd.cwd);
    made_release(&m);
}

static void verl_uses_the_given_python(void **state)
{
    struct made m;
    (void)state;
    make(GRPO "runtime_env: {py_executable: /private/v/bin/python}\n", "0.9.1", &m);
    assert_string_equal(m.cmd.argv.v[0], "/private/v/bin/python");
    made_release(&m);
}

static void drivers_of_sft_see_a_gpu(void **state)
{
    static const char sft[] = "workload: sft\nn_gpus_per_node: 1\nmodel_id: o/m\n"
                              "train_file: /private/a\n";
    static const struct {
        const char *line, *want;
    } rows[] = {
        {"", "1"},
        {"overrides: [trainer.device=cpu]\n", "(none)"},
        {"overrides: [trainer.device=cuda]\n", "1"},
        {"entrypoint_num_gpus: 1\n", "(none)"},
    };
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        struct made m;
        _cleanup_(freep) char *yaml = xasprintf("%s%s", sft, rows[i].line);
        make(yaml, "0.8.0", &m);
        assert_string_equal(env(&m, "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"), rows[i].want);
        made_release(&m);
    }
}

/* ---- text for people ---- */

static const struct cmdline_submit submit = {
    .address = "http://10.0.0.1:8265",
    .ray_id = "g",
    .cpus = 1,
    .script = "/private/jobs/g/attempts/1/command.sh",
};

static void submit_text(void **state)
{
    struct made m;
    struct buf b = BUF_INIT(TEXT_MAX);
    struct pairs resources = {0};
    struct cmdline_submit how = submit;
    (void)state;
    pairs_set(&resources, "worker_node", "1");
    how.resources = &resources;
    make("workload: ray\nentrypoint: [/bin/true, --x=1]\nenv: {HF_TOKEN: hush, A: \"it's\"}\n",
         NULL, &m);
    assert_int_equal(cmdline_submit_text(&m.cmd, &how, &b), 0);
    const char *text = buf_str(&b);
    assert_non_null(strstr(text, "ray job submit --address http://10.0.0.1:8265 "
                                 "--submission-id g"));
    assert_non_null(strstr(text, "--entrypoint-resources '{\"worker_node\":1}'"));
    assert_non_null(strstr(text, "\"A\":\"it'\\''s\""));
    assert_non_null(strstr(text, "\"HF_TOKEN\":\"***\""));
    assert_null(strstr(text, "hush"));
    assert_true(str_ends(text, "    -- /bin/true \\\n    --x=1\n"));
    pairs_release(&resources);
    buf_release(&b);
    made_release(&m);
}

static void submit_text_goes_through_the_script(void **state)
{
    struct made m;
    struct buf b = BUF_INIT(TEXT_MAX), small = BUF_INIT(20);
    (void)state;
    make("workload: ray\nentrypoint: [/bin/echo, \"it's 1\"]\n", NULL, &m);
    assert_int_equal(cmdline_submit_text(&m.cmd, &submit, &b), 0);
    assert_true(str_ends(buf_str(&b), "    -- /bin/sh /private/jobs/g/attempts/1/command.sh\n"));
    buf_reset(&b);
    assert_int_equal(cmdline_script_text(&m.cmd, "/private/jobs/g/attempts/1", &b), 0);
    assert_string_equal(buf_str(&b), "#!/bin/sh\n"
                                     "# The training command of this attempt, word by word.\n"
                                     "cd /private/jobs/g/attempts/1 || exit 1\n"
                                     "exec /bin/echo \\\n    'it'\\''s 1'\n");
    assert_int_equal(cmdline_submit_text(&m.cmd, &submit, &small), -EMSGSIZE);
    buf_reset(&small);
    assert_int_equal(cmdline_script_text(&m.cmd, "/x", &small), -EMSGSIZE);
    buf_release(&b);
    buf_release(&small);
    made_release(&m);
}

/* The shell reads back from the script exactly the words that were meant, whatever they hold. */
static void the_shell_reads_every_byte_back(void **state)
{
    struct cmdline c = {0};
    struct buf b = BUF_INIT(TEXT_MAX), want = BUF_INIT(TEXT_MAX);
    struct child child;
    char got[8192];
    int ends[2], status = -1;
    (void)state;
    strv_add(&c.argv, "printf");
    strv_add(&c.argv, "%s\\n");
    for (int i = 1; i < 256; i++) {
        const char word[] = {'a', (char)i, 'b', 0};
        strv_add(&c.argv, word);
        assert_int_equal(buf_addf(&want, "%s\n", word), 0);
    }
    strv_add(&c.argv, "");
    assert_int_equal(buf_addc(&want, '\n'), 0);
    assert_int_equal(cmdline_script_text(&c, "/", &b), 0);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    const char *const argv[] = {"/bin/sh", "-c", buf_str(&b), NULL};
    const struct child_spec spec = {.argv = argv, .in = -1, .out = ends[1], .err = -1};
    assert_int_equal(child_start(&spec, &child, NULL), 0);
    closep(&ends[1]);
    size_t n = 0;
    for (ssize_t r = 1; r > 0; n += (size_t)r) {
        r = read(ends[0], got + n, sizeof(got) - n);
        assert_true(r >= 0);
    }
    assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
    assert_int_equal(status, 0);
    assert_int_equal(n, want.len);
    assert_memory_equal(got, want.data, n);
    closep(&ends[0]);
    closep(&child.pidfd);
    buf_release(&b);
    buf_release(&want);
    cmdline_release(&c);
}

static void batches_follow_what_was_given(void **state)
{
    static const struct {
        const char *lines, *batch, *mini; /* NULL: not ours to say */
    } rows[] = {
        {"", "256", "64"},
        {"nnodes: 3\n", "252", "60"},
        {"nnodes: 100\n", "400", "400"},
        {"overrides: [data.train_batch_size=8]\n", NULL, "8"},
        {"overrides: [data.train_batch_size=512]\n", NULL, "64"},
        {"overrides: [actor_rollout_ref.actor.ppo_mini_batch_size=512]\n", "512", NULL},
        {"overrides: [actor_rollout_ref.actor.ppo_mini_batch_size=32]\n", "256", NULL},
    };
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        struct made m;
        _cleanup_(freep) char *yaml = xasprintf(GRPO "%s", rows[i].lines);
        _cleanup_(freep) char *batch =
            xasprintf("data.train_batch_size=%s", str_or(rows[i].batch, ""));
        _cleanup_(freep) char *mini =
            xasprintf("actor_rollout_ref.actor.ppo_mini_batch_size=%s", str_or(rows[i].mini, ""));
        make(yaml, "0.9.1", &m);
        assert_int_equal(strv_has(&m.cmd.argv, batch), rows[i].batch != NULL);
        assert_int_equal(strv_has(&m.cmd.argv, mini), rows[i].mini != NULL);
        made_release(&m);
    }
}

static void micro_batches_follow_the_actor(void **state)
{
    static const char rollout[] = "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=4";
    static const char dynamic[] = "actor_rollout_ref.actor.use_dynamic_bsz=True";
    struct made m;
    (void)state;
    make(GRPO, "0.5.0", &m);
    assert_true(strv_has(&m.cmd.argv, dynamic));
    assert_false(strv_has(&m.cmd.argv, rollout));
    made_release(&m);
    make(GRPO "overrides: [actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4]\n", "0.5.0", &m);
    assert_false(strv_has(&m.cmd.argv, dynamic));
    assert_true(strv_has(&m.cmd.argv, rollout));
    assert_true(strv_has(&m.cmd.argv, "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=4"));
    assert_false(strv_has(&m.cmd.argv, "critic.ppo_micro_batch_size_per_gpu=4"));
    made_release(&m);
    make(GRPO "overrides: [actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4, "
              "actor_rollout_ref.rollout.log_prob_micro_batch_size=8]\n",
         "0.5.0", &m);
    assert_false(strv_has(&m.cmd.argv, rollout));
    made_release(&m);
}

static void too_few_rows_warn(void **state)
{
    struct made m;
    struct cmdline c;
    (void)state;
    make(GRPO "total_epochs: 1\ntotal_training_steps: 30\n", "0.9.1", &m);
    for (int64_t rows = 29 * 256; rows <= 30 * 256; rows += 256) {
        struct problems ps = {0};
        const struct cmdline_in in = {
            .spec = &m.spec,
            .version = verl_version_find("0.9.1", NULL),
            .id = "g",
            .attempt = 1,
            .shared_root = "/private",
            .user_root = "/private/users/alice",
            .job_dir = "/private/jobs/g",
            .attempt_dir = "/private/jobs/g/attempts/1",
            .train_rows = rows,
        };
        assert_int_equal(cmdline_build(&in, &c, &ps, &m.err), 0);
        assert_int_equal(ps.n, rows < 30 * 256);
        if (ps.n > 0)
            assert_string_equal(
                unit_problem(&ps.v[0]),
                "epochs_end_early: 1 epochs of 7424 rows end after 29 steps, before step 30 (give more total_epochs, or a smaller data.train_batch_size)");
        problems_release(&ps);
        cmdline_release(&c);
    }
    made_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_files),
        cmocka_unit_test(words_for_an_entrypoint),
        cmocka_unit_test(what_a_version_cannot_do),
        cmocka_unit_test(a_restart_resumes_from_its_own),
        cmocka_unit_test(reward_modules),
        cmocka_unit_test(overrides_replace_ours_and_come_last),
        cmocka_unit_test(samples_go_below_the_job),
        cmocka_unit_test(save_freq),
        cmocka_unit_test(small_hosts_get_one_storage_thread),
        cmocka_unit_test(the_spec_wins_over_the_config),
        cmocka_unit_test(shell_lines),
        cmocka_unit_test(verl_uses_the_given_python),
        cmocka_unit_test(drivers_of_sft_see_a_gpu),
        cmocka_unit_test(submit_text),
        cmocka_unit_test(submit_text_goes_through_the_script),
        cmocka_unit_test(the_shell_reads_every_byte_back),
        cmocka_unit_test(batches_follow_what_was_given),
        cmocka_unit_test(micro_batches_follow_the_actor),
        cmocka_unit_test(too_few_rows_warn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* cmdline_verl.c - the arguments of verl's own programs, key by key.
 *
 * Each list has what the platform owns, then defaults of verl that hurt (W&B as
 * logger, tensor parallel of 2, no micro-batch size, a critic from the author's
 * home directory), then the user's overrides, which come last and win. */
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "core/verl/cmdline_build.h"
#include "core/verl/hydra.h"

enum {
    PPO_EPOCHS = 30, /* verl's defaults */
    PPO_BATCH = 256, /* smaller than verl's 1024 and 256, which small data sets do not fill */
    PPO_MINI_BATCH = 64,
    SFT_EPOCHS = 4,
    SFT_BATCH = 256,
    GRPO_SAMPLES = 8,
    SAVE_FREQ_MIN = 10,
    KEEP_MORE = 8, /* checkpoints */
};

/* ---- beginnings ---- */

/* Hydra takes its options only before the first override. */
static void begin_hydra(struct build *b, const char *module)
{
    build_arg(b, "-m");
    build_arg(b, module);
    for (size_t i = 0; i < b->s->overrides.n; i++)
        if (b->s->overrides.v[i][0] == '-')
            build_arg(b, b->s->overrides.v[i]);
}

static void begin_python(struct build *b, const char *module)
{
    build_arg(b, build_python(b));
    begin_hydra(b, module);
}

static void begin_torchrun(struct build *b, const char *module)
{
    build_arg(b, build_python(b));
    build_arg(b, "-m");
    build_arg(b, "torch.distributed.run");
    build_arg(b, "--standalone");
    build_arg(b, "--nnodes=1");
    if (b->r == 0)
        strv_addf(&b->out->argv, "--nproc-per-node=%d", (int)b->s->gpus_per_node);
    begin_hydra(b, module);
}

void build_hydra_dir(struct build *b)
{
    _cleanup_(freep) char *dir = xasprintf("%s/logs/hydra", b->in->attempt_dir);
    build_text(b, "hydra.run.dir", dir);
}

/* ---- trainer.* ---- */

static void add_gang(struct build *b)
{
    build_plain(b, "trainer.nnodes", "%d", (int)b->s->nnodes);
    build_plain(b, "trainer.n_gpus_per_node", "%d", (int)b->s->gpus_per_node);
}

static void add_names(struct build *b)
{
    const struct spec *s = b->s;
    build_text(b, "trainer.project_name", str_or(tracker_project(s), "argus"));
    build_text(b, "trainer.experiment_name", str_or(tracker_run_name(s), b->in->id));
}

static void add_logger(struct build *b)
{
    _cleanup_(strv_release) struct strv names = {0};
    strv_add(&names, "console");
    if (b->v->has_file_logger)
        strv_add(&names, "file");
    for (size_t i = 0; i < b->n_trackers; i++)
        if (b->trackers[i].mode != TRACKER_NONE)
            strv_add(&names, tracker_kind_to_string(b->trackers[i].kind));
    if (b->r == 0 && !spec_override_find(b->s, "trainer.logger") &&
        hydra_add_list(&b->out->argv, "trainer.logger", &names, b->err) < 0)
        b->r = ERR_BAD_SPEC;
}

static int64_t total_steps(const struct build *b, int64_t epochs, int64_t batch)
{
    const struct spec *s = b->s;
    if (s->total_training_steps > 0)
        return s->total_training_steps;
    if (s->total_epochs > 0)
        epochs = s->total_epochs;
    batch = build_number(b, "data.train_batch_size", batch);
    return b->in->train_rows / batch * epochs;
}

/* verl ends with the last epoch, and PPO saves at its last step only: one that is never reached
 * means no checkpoint. */
static void warn_of_too_few_rows(struct build *b, int64_t batch)
{
    const struct spec *s = b->s;
    batch = build_number(b, "data.train_batch_size", batch);
    int64_t steps = b->in->train_rows / batch * s->total_epochs;
    if (steps > 0 && steps < s->total_training_steps)
        problems_add(b->ps, PROBLEM_WARNING, "total_training_steps", 0, 0, "epochs_end_early",
                     MESSAGE_ARGS(MESSAGE_NUM("epochs", s->total_epochs),
                                  MESSAGE_NUM("rows", b->in->train_rows),
                                  MESSAGE_NUM("steps", steps),
                                  MESSAGE_NUM("wanted", s->total_training_steps)));
}

static void add_saving(struct build *b, int64_t epochs, int64_t batch)
{
    const struct spec *s = b->s;
    int64_t tenth = (total_steps(b, epochs, batch) + 5) / 10;
    int64_t freq = s->save_freq > 0 ? s->save_freq : tenth > SAVE_FREQ_MIN ? tenth : SAVE_FREQ_MIN;
    if (s->checkpoint_none)
        freq = -1;
    b->out->save_freq = build_number(b, "trainer.save_freq", freq);
    build_plain(b, "trainer.save_freq", "%lld", (long long)freq);
    if (s->test_freq != 0)
        build_plain(b, "trainer.test_freq", "%lld", (long long)s->test_freq);
}

/* Retention is argusd's: verl counts what it has not read, forgets all at a restart, and knows
 * neither a best one nor other jobs. Its own limit only bounds what lies there while argusd is
 * away: so many more that argusd has long seen and pinned (fsroot/ckpt/ckpt.h) what must stay when
 * verl comes to it; none where the best is to stay. */
static void add_keep(struct build *b)
{
    long long keep = (long long)b->s->keep_last + KEEP_MORE;
    if (b->s->checkpoint_none || keep == KEEP_MORE || b->s->keep_best_metric)
        return;
    if (b->s->workload == WORKLOAD_SFT) {
        build_plain(b, "trainer.max_ckpt_to_keep", "%lld", keep);
        return;
    }
    build_plain(b, "trainer.max_actor_ckpt_to_keep", "%lld", keep);
    build_plain(b, "trainer.max_critic_ckpt_to_keep", "%lld", keep);
}

static void add_resume(struct build *b)
{
    const struct spec *s = b->s;
    static const char *const modes[] = {
        [SPEC_RESUME_AUTO] = "auto",
        [SPEC_RESUME_NEVER] = "disable",
        [SPEC_RESUME_JOB] = "resume_path",
    };
    bool own = s->resume_mode != SPEC_RESUME_NEVER && b->in->own_step > 0;
    build_text(b, "trainer.resume_mode", own ? "resume_path" : modes[s->resume_mode]);
    if (own) {
        _cleanup_(freep) char *there = xasprintf("%s/checkpoints/global_step_%lld", b->in->job_dir,
                                                 (long long)b->in->own_step);
        build_text(b, "trainer.resume_from_path", there);
    }
    if (own || s->resume_mode != SPEC_RESUME_JOB)
        return;
    int64_t step = s->resume_step > 0 ? s->resume_step : b->in->resume_step;
    if (step <= 0)
        build_fail(
            b, "no_verified_checkpoint",
            MESSAGE_ARGS(MESSAGE_STR("id", s->resume_job), MESSAGE_STR("other", s->resume_job)));
    _cleanup_(freep) char *path = spec_resume_path(s, b->in->shared_root, step);
    build_text(b, "trainer.resume_from_path", path);
}

void build_trainer(struct build *b, int64_t epochs, int64_t batch)
{
    const struct spec *s = b->s;
    _cleanup_(freep) char *dir = xasprintf("%s/checkpoints", b->in->job_dir);
    build_text(b, "trainer.default_local_dir", dir);
    add_names(b);
    add_logger(b);
    if (s->total_epochs > 0)
        build_plain(b, "trainer.total_epochs", "%lld", (long long)s->total_epochs);
    if (s->total_training_steps > 0)
        build_plain(b, "trainer.total_training_steps", "%lld", (long long)s->total_training_steps);
    warn_of_too_few_rows(b, batch);
    add_saving(b, epochs, batch);
    add_keep(b);
    add_resume(b);
    build_hydra_dir(b);
    build_overrides(b);
}

/* ---- data and reward ---- */

/* verl wants its batches to divide by the number of trainers, and not below one row each. */
static int64_t fit(const struct build *b, int64_t rows)
{
    int64_t world = build_world(b);
    return rows < world ? world : rows / world * world;
}

static const char mini_batch[] = "actor_rollout_ref.actor.ppo_mini_batch_size";

/* A size that the user gave stays; the other one follows it. */
static void add_ppo_batch(struct build *b)
{
    int64_t mini = build_number(b, mini_batch, fit(b, PPO_MINI_BATCH));
    int64_t batch = fit(b, mini > PPO_BATCH ? mini : PPO_BATCH);
    batch = build_number(b, "data.train_batch_size", batch);
    build_plain(b, "data.train_batch_size", "%lld", (long long)batch);
    build_plain(b, mini_batch, "%lld", (long long)(mini < batch ? mini : batch));
}

static void add_sft_batch(struct build *b)
{
    if (fit(b, SFT_BATCH) != SFT_BATCH)
        build_plain(b, "data.train_batch_size", "%lld", (long long)fit(b, SFT_BATCH));
}

/* Releases that take a file only get one that imports the function: the worker resolves the
 * module on the job's own PYTHONPATH. */
static char *stand_in(struct build *b)
{
    _cleanup_(freep) char *dir = xasprintf("%s/reward", b->in->attempt_dir);
    char *path = xasprintf("%s/custom_module.py", dir);
    _cleanup_(freep) char *text =
        xasprintf("from %s import %s  # noqa: F401\n", b->s->reward_module, b->s->reward_function);
    strv_add(&b->out->dirs, dir);
    pairs_set(&b->out->files, path, text);
    return path;
}

static void add_reward(struct build *b, const char *path_key, const char *function_key)
{
    const struct spec *s = b->s;
    if (!s->reward_fn_path)
        return;
    if (s->reward_module && !b->v->reward_takes_modules) {
        _cleanup_(freep) char *file = stand_in(b);
        build_text(b, path_key, file);
        build_text(b, function_key, s->reward_function);
        return;
    }
    _cleanup_(freep) char *module = xasprintf("pkg://%s", str_or(s->reward_module, ""));
    build_text(b, path_key, s->reward_module ? module : s->reward_file);
    build_text(b, function_key, s->reward_function);
}

/* ---- ppo and grpo ---- */

/* Without any size verl refuses to start. Sizes by tokens need no knowledge of the model; when
 * the user gave the actor's size by rows, the others that verl wants then follow it. */
static void add_micro_batch(struct build *b)
{
    static const char *const followers[][2] = {
        {"actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu",
         "actor_rollout_ref.rollout.log_prob_micro_batch_size"},
        {"actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu",
         "actor_rollout_ref.ref.log_prob_micro_batch_size"},
        {"critic.ppo_micro_batch_size_per_gpu", "critic.ppo_micro_batch_size"},
    };
    int64_t rows = build_number(b, "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", 0);
    if (spec_override_find(b->s, "actor_rollout_ref.actor.ppo_micro_batch_size"))
        return;
    if (rows == 0 || spec_override_find(b->s, "actor_rollout_ref.actor.use_dynamic_bsz")) {
        build_plain(b, "actor_rollout_ref.actor.use_dynamic_bsz", "True");
        return;
    }
    size_t n = array_len(followers) - (b->s->workload != WORKLOAD_PPO);
    for (size_t i = 0; i < n; i++)
        if (!spec_override_find(b->s, followers[i][1]))
            build_plain(b, followers[i][0], "%lld", (long long)rows);
}

static void add_algorithm(struct build *b)
{
    if (b->s->workload == WORKLOAD_PPO) {
        build_plain(b, "algorithm.adv_estimator", "gae");
        build_text(b, "critic.model.path", b->s->model_id);
        return;
    }
    build_plain(b, "algorithm.adv_estimator", "grpo");
    build_plain(b, "actor_rollout_ref.rollout.n", "%d", GRPO_SAMPLES);
    build_plain(b, "actor_rollout_ref.actor.use_kl_loss", "True");
    build_plain(b, "actor_rollout_ref.actor.kl_loss_coef", "0.001");
    build_plain(b, "actor_rollout_ref.actor.kl_loss_type", "low_var_kl");
}

/* "++" because the keys are none of the config of verl before 0.4.1, which leaves them unread. The
 * hook bounds what is written there. */
static void add_samples(struct build *b)
{
    static const char *const kinds[][2] = {
        {"++trainer.rollout_data_dir", "rollout"},
        {"++trainer.validation_data_dir", "validation"},
    };
    if (!b->s->samples)
        return;
    _cleanup_(freep) char *dir = xasprintf("%s/samples", b->in->job_dir);
    for (size_t i = 0; i < array_len(kinds); i++) {
        _cleanup_(freep) char *path = xasprintf("%s/%s", dir, kinds[i][1]);
        build_text(b, kinds[i][0], path);
    }
    pairs_set(&b->out->env, "ARGUS_SAMPLES", dir);
}

void build_ppo(struct build *b)
{
    begin_python(b, "verl.trainer.main_ppo");
    add_algorithm(b);
    build_files(b, "data.train_files", &b->s->train_file);
    build_files(b, "data.val_files", &b->s->val_file);
    add_ppo_batch(b);
    build_plain(b, "data.filter_overlong_prompts", "True");
    build_text(b, "actor_rollout_ref.model.path", b->s->model_id);
    add_micro_batch(b);
    build_plain(b, "actor_rollout_ref.rollout.name", "vllm");
    build_plain(b, "actor_rollout_ref.rollout.tensor_model_parallel_size", "1");
    add_reward(b, b->v->reward_path, b->v->reward_function);
    build_plain(b, "trainer.val_before_train", "False");
    add_samples(b);
    add_gang(b);
    build_trainer(b, PPO_EPOCHS, PPO_BATCH);
}

/* ---- sft ---- */

/* The trainer before the engine one reads questions and answers unless told otherwise. */
static void add_old_sft(struct build *b)
{
    build_text(b, "model.partial_pretrain", b->s->model_id);
    build_plain(b, "data.multiturn.enable", "True");
    build_plain(b, "data.multiturn.messages_key", "messages");
}

/* The driver of sft_trainer_ray makes tensors on the device, but Ray hides the GPUs from a
 * driver that asked for none. */
static void show_gpus_to_driver(struct build *b)
{
    const char *device = spec_override_find(b->s, "trainer.device");
    if (str_eq(device, "cpu") || b->s->entrypoint_gpus > 0)
        return;
    pairs_set(&b->out->env, "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES", "1");
}

void build_sft(struct build *b)
{
    if (b->v->sft_ray) {
        begin_python(b, b->v->sft_ray);
        show_gpus_to_driver(b);
    } else {
        begin_torchrun(b, b->v->sft_torchrun);
    }
    if (b->v->sft_is_engine)
        build_text(b, "model.path", b->s->model_id);
    else
        add_old_sft(b);
    build_files(b, "data.train_files", &b->s->train_file);
    build_files(b, "data.val_files", &b->s->val_file);
    add_sft_batch(b);
    if (b->v->sft_has_gang_keys)
        add_gang(b);
    build_trainer(b, SFT_EPOCHS, SFT_BATCH);
}

/* ---- eval, generate, merge ---- */

/* verl 0.5.0 takes the function to Ray's workers by its module's name, 'custom_module', so the file
 * must be importable by that name. */
static void link_custom_module(struct build *b)
{
    _cleanup_(freep) char *dir = xasprintf("%s/reward", b->in->attempt_dir);
    _cleanup_(freep) char *path = xasprintf("%s/custom_module.py", dir);
    strv_add(&b->out->dirs, dir);
    pairs_set(&b->out->links, path, b->s->reward_file);
}

void build_eval(struct build *b)
{
    begin_python(b, "verl.trainer.main_eval");
    build_files(b, "data.path", &b->s->val_file);
    build_plain(b, "data.prompt_key", "prompt");
    build_plain(b, "data.response_key", "responses");
    build_plain(b, "data.data_source_key", "data_source");
    build_plain(b, "data.reward_model_key", "reward_model");
    add_reward(b, b->v->eval_reward_path, b->v->eval_reward_function);
    if (b->v->eval_imports_custom_module && b->s->reward_file)
        link_custom_module(b);
    build_hydra_dir(b);
    build_overrides(b);
}

static void add_generate_old(struct build *b, const char *output)
{
    build_files(b, "data.path", &b->s->val_file);
    build_text(b, "data.output_path", output);
    build_text(b, "model.path", b->s->model_id);
    build_plain(b, "rollout.name", "vllm");
    build_plain(b, "rollout.tensor_model_parallel_size", "1");
}

static void add_generate_server(struct build *b, const char *output)
{
    build_files(b, "data.train_files", &b->s->val_file);
    build_text(b, "+data.output_path", output);
    build_text(b, "actor_rollout_ref.model.path", b->s->model_id);
    build_plain(b, "actor_rollout_ref.rollout.name", "vllm");
    build_plain(b, "actor_rollout_ref.rollout.tensor_model_parallel_size", "1");
}

void build_generate(struct build *b)
{
    _cleanup_(freep) char *dir = xasprintf("%s/output", b->in->job_dir);
    _cleanup_(freep) char *output = xasprintf("%s/generated.parquet", dir);
    begin_python(b, b->v->generate);
    strv_add(&b->out->dirs, dir);
    if (b->v->generate_is_server)
        add_generate_server(b, output);
    else
        add_generate_old(b, output);
    build_plain(b, "data.prompt_key", "prompt");
    add_gang(b);
    build_hydra_dir(b);
    build_overrides(b);
}

static bool has_option(const struct strv *options, const char *name)
{
    for (size_t i = 0; i < options->n; i++)
        if (str_starts(options->v[i], name))
            return true;
    return false;
}

void build_merge(struct build *b)
{
    _cleanup_(freep) char *dir = xasprintf("%s/output", b->in->job_dir);
    _cleanup_(freep) char *target = xasprintf("%s/model", dir);
    const char *const words[] = {build_python(b), "-m", "verl.model_merger", "merge"};
    strv_add(&b->out->dirs, dir);
    for (size_t i = 0; i < array_len(words); i++)
        build_arg(b, words[i]);
    if (!has_option(&b->s->overrides, "--backend")) {
        build_arg(b, "--backend");
        build_arg(b, "fsdp");
    }
    build_arg(b, "--local_dir");
    build_arg(b, b->s->model_id);
    build_arg(b, "--target_dir");
    build_arg(b, target);
    for (size_t i = 0; i < b->s->overrides.n; i++)
        build_arg(b, b->s->overrides.v[i]);
}

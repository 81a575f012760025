/* SPDX-License-Identifier: Apache-2.0 */
/* preflight_sizes.c - batch and parallel sizes that do not divide; see preflight.h.
 *
 * The same questions as verl asks, some of them only after all models are loaded. Only what
 * the overrides say is judged: what the platform fills in divides. */
#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/check/preflight.h"

#define ACTOR "actor_rollout_ref.actor."
#define ROLLOUT "actor_rollout_ref.rollout."
#define REF "actor_rollout_ref.ref."

struct sizes {
    const struct spec *s;
    struct problems *ps;
    int64_t world; /* GPUs */
};

static void preflight_sizes_say(const struct sizes *z,
                                const char *code,
                                const struct message_arg *args)
{
    problems_add(z->ps, PROBLEM_ERROR, "overrides", 0, 0, code, args);
}

/* A key made of a prefix and a name, many times for each submit: so not by printf. */
struct size_key {
    char text[96];
};

static struct size_key size_key_of(const char *prefix, const char *middle, const char *name)
{
    struct size_key key;
    size_t n = strlen(prefix), m = strlen(middle), rest = strlen(name);
    assert(n + m + rest < sizeof(key.text)); /* all are constants of this file */
    memcpy(key.text, prefix, n);
    memcpy(key.text + n, middle, m);
    memcpy(key.text + n + m, name, rest + 1);
    return key;
}

/* 0: not given, null, or no number. One that is given and is none that is possible is told. */
static int64_t preflight_sizes_number(const struct sizes *z, const char *key)
{
    const char *text = spec_override_find(z->s, key);
    int64_t v = 0;
    if (!text || !strcmp(text, "null") || str_to_int(text, INT64_MIN, INT64_MAX, &v, NULL) < 0)
        return 0;
    if (v <= 0)
        preflight_sizes_say(z, "size_not_positive",
                            MESSAGE_ARGS(MESSAGE_STR("key", key), MESSAGE_NUM("value", v)));
    return v > 0 && v < INT32_MAX ? v : 0;
}

static bool is_true(const struct sizes *z, const char *key)
{
    const char *text = spec_override_find(z->s, key);
    return text && (!strcasecmp(text, "true") || !strcmp(text, "1"));
}

static int64_t at_least_one(int64_t v)
{
    return v > 0 ? v : 1;
}

/* ---- parallel sizes against the gang ---- */

static void judge_parallel(const struct sizes *z, const char *key)
{
    int64_t v = preflight_sizes_number(z, key);
    if (v > 0 && z->world % v != 0)
        preflight_sizes_say(z, "parallel_not_divide",
                            MESSAGE_ARGS(MESSAGE_STR("key", key), MESSAGE_NUM("value", v),
                                         MESSAGE_NUM("gpus", z->world)));
}

static void judge_tensor_parallel(const struct sizes *z)
{
    static const char key[] = ROLLOUT "tensor_model_parallel_size";
    int64_t tp = preflight_sizes_number(z, key), node = (int64_t)z->s->gpus_per_node;
    judge_parallel(z, key);
    if (tp > 0 && tp > node && tp <= z->world && z->world % tp == 0)
        problems_add(z->ps, PROBLEM_WARNING, "overrides", 0, 0, "tensor_spans_nodes",
                     MESSAGE_ARGS(MESSAGE_STR("key", key), MESSAGE_NUM("value", tp),
                                  MESSAGE_NUM("gpus", node)));
}

static void judge_megatron(const struct sizes *z, const char *of)
{
    static const char *const parts[] = {"tensor_model_parallel_size",
                                        "pipeline_model_parallel_size", "context_parallel_size"};
    int64_t product = 1;
    bool given = false;
    for (size_t i = 0; i < array_len(parts); i++) {
        struct size_key key = size_key_of(of, "megatron.", parts[i]);
        int64_t v = preflight_sizes_number(z, key.text);
        given |= v > 0;
        product *= at_least_one(v);
        if (product > z->world)
            break;
    }
    if (given && product > 0 && z->world % product != 0)
        preflight_sizes_say(z, "megatron_not_divide",
                            MESSAGE_ARGS(MESSAGE_STR("of", of), MESSAGE_NUM("gpus", z->world)));
}

/* ---- batches ---- */

static void judge_both(const struct sizes *z, const char *prefix, const char *name)
{
    struct size_key whole = size_key_of(prefix, name, "");
    struct size_key each = size_key_of(prefix, name, "_per_gpu");
    if (preflight_sizes_number(z, whole.text) > 0 && preflight_sizes_number(z, each.text) > 0)
        preflight_sizes_say(
            z, "batch_exclusive",
            MESSAGE_ARGS(MESSAGE_STR("whole", whole.text), MESSAGE_STR("each", each.text)));
}

struct batch {
    int64_t train, mini, samples;
};

static void judge_micro(const struct sizes *z,
                        const struct batch *b,
                        const char *prefix,
                        int64_t mini)
{
    struct size_key micro_key = size_key_of(prefix, "ppo_micro_batch_size", "_per_gpu");
    struct size_key sp_key = size_key_of(prefix, "ulysses_", "sequence_parallel_size");
    struct size_key dynamic = size_key_of(prefix, "use_", "dynamic_bsz");
    int64_t micro = preflight_sizes_number(z, micro_key.text),
            sp = at_least_one(preflight_sizes_number(z, sp_key.text));
    if (z->world % sp != 0 || !mini || is_true(z, dynamic.text))
        return;
    int64_t ranks = z->world / sp, mine = mini * b->samples / ranks;
    if (mine == 0)
        preflight_sizes_say(z, "mini_too_small",
                            MESSAGE_ARGS(MESSAGE_NUM("rows", mini), MESSAGE_NUM("ranks", ranks)));
    else if (micro > mine)
        preflight_sizes_say(z, "micro_too_large",
                            MESSAGE_ARGS(MESSAGE_STR("key", micro_key.text),
                                         MESSAGE_NUM("value", micro), MESSAGE_NUM("rows", mine)));
    else if (micro > 0 && mine % micro != 0)
        preflight_sizes_say(z, "micro_not_divide",
                            MESSAGE_ARGS(MESSAGE_STR("key", micro_key.text),
                                         MESSAGE_NUM("value", micro), MESSAGE_NUM("rows", mine)));
}

static void judge_ppo_batches(const struct sizes *z)
{
    struct batch b = {.train = preflight_sizes_number(z, "data.train_batch_size"),
                      .mini = preflight_sizes_number(z, ACTOR "ppo_mini_batch_size")};
    int64_t n = preflight_sizes_number(z, ROLLOUT "n");
    b.samples = n > 0 ? n : z->s->workload == WORKLOAD_GRPO ? 8 : 1;
    if (b.train > 0 && b.mini > b.train)
        preflight_sizes_say(
            z, "mini_above_train",
            MESSAGE_ARGS(MESSAGE_NUM("mini", b.mini), MESSAGE_NUM("train", b.train)));
    if (b.train > 0 && b.train * b.samples % z->world != 0)
        preflight_sizes_say(z, "train_not_divide",
                            MESSAGE_ARGS(MESSAGE_NUM("train", b.train),
                                         MESSAGE_NUM("samples", b.samples),
                                         MESSAGE_NUM("gpus", z->world)));
    judge_micro(z, &b, ACTOR, b.mini);
    if (z->s->workload == WORKLOAD_PPO)
        judge_micro(z, &b, "critic.", preflight_sizes_number(z, "critic.ppo_mini_batch_size"));
    if (z->s->workload == WORKLOAD_GRPO && n == 1)
        problems_add(z->ps, PROBLEM_WARNING, "overrides", 0, 0, "grpo_one_sample", MESSAGE_NO_ARGS);
}

/* Sizes by tokens: one whole answer must fit. */
static void judge_tokens(const struct sizes *z)
{
    enum { LENGTH = 512 }; /* verl's default of both */
    int64_t prompt = preflight_sizes_number(z, "data.max_prompt_length");
    int64_t answer = preflight_sizes_number(z, "data.max_response_length");
    int64_t tokens = preflight_sizes_number(z, ACTOR "ppo_max_token_len_per_gpu");
    int64_t sp = at_least_one(preflight_sizes_number(z, ACTOR "ulysses_sequence_parallel_size"));
    int64_t longest = (prompt ? prompt : LENGTH) + (answer ? answer : LENGTH);
    if (tokens > 0 && is_true(z, ACTOR "use_dynamic_bsz") && tokens * sp < longest)
        preflight_sizes_say(
            z, "tokens_too_few",
            MESSAGE_ARGS(MESSAGE_NUM("tokens", tokens), MESSAGE_NUM("longest", longest)));
}

static void judge_ppo(const struct sizes *z)
{
    static const char *const both[][2] = {
        {ACTOR, "ppo_micro_batch_size"},
        {REF, "log_prob_micro_batch_size"},
        {ROLLOUT, "log_prob_micro_batch_size"},
        {"critic.", "ppo_micro_batch_size"},
    };
    for (size_t i = 0; i < array_len(both); i++)
        judge_both(z, both[i][0], both[i][1]);
    judge_tensor_parallel(z);
    judge_parallel(z, ACTOR "ulysses_sequence_parallel_size");
    judge_parallel(z, REF "ulysses_sequence_parallel_size");
    judge_parallel(z, "critic.ulysses_sequence_parallel_size");
    judge_megatron(z, ACTOR);
    judge_megatron(z, "critic.");
    judge_ppo_batches(z);
    judge_tokens(z);
}

/* Older advice for a driver without a GPU. The trainers' bundles then ask for a resource that no
 * node has by itself, and the job runs for ever without a step. Whoever gave it to his nodes may go
 * on. */
static void judge_sft_device(const struct sizes *z, const struct verl_version *v)
{
    if (v->sft_cpu_is_resource && str_eq(spec_override_find(z->s, "trainer.device"), "cpu"))
        problems_add(z->ps, PROBLEM_WARNING, "overrides", 0, 0, "sft_device_cpu",
                     MESSAGE_ARGS(MESSAGE_STR("verl", v->name)));
}

static void judge_sft(const struct sizes *z, const struct verl_version *v)
{
    const char *sp_key = v->sft_is_engine ? "engine.ulysses_sequence_parallel_size"
                                          : "ulysses_sequence_parallel_size";
    int64_t batch = preflight_sizes_number(z, "data.train_batch_size");
    int64_t micro = preflight_sizes_number(z, "data.micro_batch_size_per_gpu");
    int64_t sp = at_least_one(preflight_sizes_number(z, sp_key));
    judge_sft_device(z, v);
    judge_parallel(z, sp_key);
    if (z->world % sp != 0)
        return;
    int64_t ranks = z->world / sp;
    if (batch > 0 && batch % ranks != 0)
        preflight_sizes_say(z, "sft_train_not_divide",
                            MESSAGE_ARGS(MESSAGE_NUM("train", batch), MESSAGE_NUM("ranks", ranks)));
    else if (batch > 0 && micro > 0 && !v->sft_is_engine && batch / ranks % micro != 0)
        preflight_sizes_say(
            z, "sft_micro_not_divide",
            MESSAGE_ARGS(MESSAGE_NUM("micro", micro), MESSAGE_NUM("rows", (batch / ranks))));
}

void preflight_judge_sizes(const struct spec *s, const struct verl_version *v, struct problems *ps)
{
    struct sizes z = {.s = s, .ps = ps, .world = (int64_t)(s->gpus_per_node * (double)s->nnodes)};
    if (z.world < 1)
        return;
    if (s->workload == WORKLOAD_PPO || s->workload == WORKLOAD_GRPO)
        judge_ppo(&z);
    else if (s->workload == WORKLOAD_SFT)
        judge_sft(&z, v);
    else if (s->workload == WORKLOAD_GENERATE)
        judge_parallel(&z, v->generate_is_server ? ROLLOUT "tensor_model_parallel_size"
                                                 : "rollout.tensor_model_parallel_size");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* verdict_kind.h - the kinds of what may be wrong with a training: their words, in the order of how
 * bad they are, and the key that each one's advice names. Pure. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* X(enumerator, word, severe, the key that its advice names): the sentence of each is the message
 * "verdict_" and its word. The worst kinds first: of what stands the first is the verdict. A set of
 * kinds is kept as bits, so there are 64 at most. */
#define VERDICT_KIND_TABLE(X)                                                                      \
    X(VERDICT_NOT_FINITE, "not_finite", true, "actor_rollout_ref.actor.optim.lr")                  \
    X(VERDICT_GRAD_JUMP, "grad_jump", true, "actor_rollout_ref.actor.grad_clip")                   \
    X(VERDICT_KL_HIGH, "kl_high", true, "actor_rollout_ref.actor.optim.lr")                        \
    X(VERDICT_KL_SPIKE, "kl_spike", true, "actor_rollout_ref.actor.kl_loss_coef")                  \
    X(VERDICT_KL_NEGATIVE, "kl_negative", true, "actor_rollout_ref.actor.kl_loss_type")            \
    X(VERDICT_GAP, "gap", true, "algorithm.rollout_correction.rollout_is")                         \
    X(VERDICT_REWARD_FELL, "reward_fell", true, "actor_rollout_ref.actor.optim.lr")                \
    X(VERDICT_REWARD_SINKS, "reward_sinks", true, "reward_fn_path")                                \
    X(VERDICT_ANSWERS_EMPTY, "answers_empty", true, "reward_fn_path")                              \
    X(VERDICT_TEMPLATE, "template", true, "actor_rollout_ref.model.custom_chat_template")          \
    X(VERDICT_ENTROPY_COLLAPSE, "entropy_collapse", true, "actor_rollout_ref.actor.entropy_coeff") \
    X(VERDICT_ENTROPY_RISE, "entropy_rise", true, "actor_rollout_ref.actor.entropy_coeff")         \
    X(VERDICT_NO_UPDATE, "no_update", true, "actor_rollout_ref.actor.optim.lr")                    \
    X(VERDICT_REWARD_FLAT, "reward_flat", true, "reward_fn_path")                                  \
    X(VERDICT_REWARD_NOISE, "reward_noise", true, "reward_fn_path")                                \
    X(VERDICT_ONE_ANSWER, "one_answer", true, "reward_fn_path")                                    \
    X(VERDICT_SAME_ANSWERS, "same_answers", true, "actor_rollout_ref.rollout.temperature")         \
    X(VERDICT_GROUPS_FLAT, "groups_flat", true, "algorithm.filter_groups.enable")                  \
    X(VERDICT_REPETITION, "repetition", true, "actor_rollout_ref.actor.optim.lr")                  \
    X(VERDICT_LANGUAGE, "language", true, "data.train_files")                                      \
    X(VERDICT_ABORTED, "aborted", true, "actor_rollout_ref.rollout.gpu_memory_utilization")        \
    X(VERDICT_NO_END, "no_end", true, "data.max_response_length")                                  \
    X(VERDICT_LENGTH_LIMIT, "length_limit", true, "data.max_response_length")                      \
    X(VERDICT_MEMORY, "memory", true, "actor_rollout_ref.actor.ppo_max_token_len_per_gpu")         \
    X(VERDICT_LOSS_JUMP, "loss_jump", true, "optim.lr")                                            \
    X(VERDICT_WARMUP, "warmup", false, "actor_rollout_ref.actor.optim.lr_warmup_steps_ratio")      \
    X(VERDICT_PROMPTS_CUT, "prompts_cut", false, "data.max_prompt_length")                         \
    X(VERDICT_ANSWERS_CUT, "answers_cut", false, "data.max_response_length")                       \
    X(VERDICT_LENGTH_DRIFT, "length_drift", false, "actor_rollout_ref.actor.optim.lr")             \
    X(VERDICT_LOSS_FLAT, "loss_flat", false, "optim.lr")                                           \
    X(VERDICT_CRITIC_BLIND, "critic_blind", false, "critic.optim.lr")                              \
    X(VERDICT_GROUPS_SOLVED, "groups_solved", false, "algorithm.filter_groups.enable")             \
    X(VERDICT_REWARD_FULL, "reward_full", false, "data.train_files")                               \
    X(VERDICT_GROUPS_WASTED, "groups_wasted", false, "algorithm.filter_groups.enable")             \
    X(VERDICT_DATA_REPEATS, "data_repeats", false, "data.train_files")                             \
    X(VERDICT_PROMPTS_TWICE, "prompts_twice", false, "data.train_files")                           \
    X(VERDICT_CLIPPED, "clipped", false, "actor_rollout_ref.actor.clip_ratio")                     \
    X(VERDICT_STALE, "stale", false, "trainer.v1.sampler.max_off_policy_threshold")                \
    X(VERDICT_FOLLOWS_ANSWER, "follows_answer", false, "reward_fn_path")                           \
    X(VERDICT_PARTED, "parted", false, "reward_fn_path")
#define VERDICT_KIND_ROW(e, ...) e,
enum verdict_kind { VERDICT_KIND_TABLE(VERDICT_KIND_ROW) VERDICT_KINDS };
#undef VERDICT_KIND_ROW
/* The bit of a kind in a set of them. */
uint64_t verdict_kind_bit(enum verdict_kind k);
const char *verdict_kind_to_string(enum verdict_kind k);
enum verdict_kind verdict_kind_from_string(const char *word); /* VERDICT_KINDS: none of them */
bool verdict_kind_is_severe(enum verdict_kind k);
/* is_sft: of a training on given answers, which has no actor. */
const char *verdict_kind_key(enum verdict_kind k, bool is_sft);

/* What a trend of memory is judged by, in GB as verl tells memory; 0: not known. */
struct verdict_bounds {
    double gpu_gb, host_gb;
    int64_t total; /* steps of the training */
};

/* SPDX-License-Identifier: Apache-2.0 */
/* training_figure.c - the table of names; see training_figure.h. */
#include "core/training/training_figure.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

#define AGENT "timing_s/agent_loop/"
const struct training_name training_names[] = {
    {TRAIN_STEP, "timing_s/step", "0.4.1", NULL, "s", "the whole step"},
    {TRAIN_STEP, "perf/time_per_step", "0.4.1", NULL, "s", "the whole step"},
    {TRAIN_GEN, "timing_s/gen", "0.4.1", NULL, "s", "answers, tools, and scores of agent loops"},
    {TRAIN_GEN_BASELINE, "timing_s/gen_max", "0.4.1", NULL, "s", "greedy answers of ReMax"},
    {TRAIN_REWARD_S, "timing_s/reward", "0.4.1", NULL, "s", "scores after generation"},
    {TRAIN_OLD_LOG_PROB, "timing_s/old_log_prob", "0.4.1", NULL, "s",
     "log-probabilities anew; none in bypass mode"},
    {TRAIN_REF, "timing_s/ref", "0.4.1", NULL, "s", "log-probabilities of the reference"},
    {TRAIN_VALUES, "timing_s/values", "0.4.1", NULL, "s", "values of the critic"},
    {TRAIN_ADVANTAGE, "timing_s/adv", "0.4.1", NULL, "s", "advantages"},
    {TRAIN_UPDATE_ACTOR, "timing_s/update_actor", "0.4.1", NULL, "s", "update of the actor"},
    {TRAIN_UPDATE_CRITIC, "timing_s/update_critic", "0.4.1", NULL, "s", "update of the critic"},
    {TRAIN_WEIGHTS, "timing_s/update_weights", "0.7.0", NULL, "s", "weights to the rollout"},
    {TRAIN_WEIGHTS_SYNC, "timing_s/sync_rollout_weights", "0.5.0", NULL, "s",
     "weights to the rollout, one step off policy"},
    {TRAIN_SAVE, "timing_s/save_checkpoint", "0.4.1", NULL, "s", "a checkpoint"},
    {TRAIN_VALIDATE, "timing_s/testing", "0.4.1", NULL, "s", "a validation"},
    {TRAIN_SAMPLE_GEN_MEAN, AGENT "generate_sequences/mean", "0.5.0", NULL, "s",
     "generation of one sample, mean"},
    {TRAIN_SAMPLE_GEN_MAX, AGENT "generate_sequences/max", "0.5.0", NULL, "s",
     "generation of one sample, longest"},
    {TRAIN_SLOWEST_GEN, AGENT "slowest/generate_sequences", "0.5.0", NULL, "s",
     "generation of the sample that took longest in all"},
    {TRAIN_SLOWEST_TOOLS, AGENT "slowest/tool_calls", "0.5.0", NULL, "s", "its tools"},
    {TRAIN_SLOWEST_SCORE, AGENT "slowest/compute_score", "0.8.0", NULL, "s", "its score"},
    {TRAIN_SLOWEST_PROMPT, AGENT "slowest/prompt_length", "0.5.0", NULL, "tokens", "its prompt"},
    {TRAIN_SLOWEST_RESPONSE, AGENT "slowest/response_length", "0.5.0", NULL, "tokens",
     "its answer"},
    {TRAIN_TOKENS, "perf/total_num_tokens", "0.4.1", NULL, "tokens", "of the step"},
    {TRAIN_THROUGHPUT, "perf/throughput", "0.4.1", NULL, "tokens/s",
     "tokens by seconds and GPUs of the step"},
    {TRAIN_REWARD, "critic/score/mean", "0.4.1", NULL, "", "score of the answers, mean"},
    {TRAIN_REWARD, "critic/rewards/mean", "0.4.1", NULL, "", "score less the KL penalty, mean"},
    {TRAIN_REWARD_MIN, "critic/score/min", "0.4.1", NULL, "", "score, smallest"},
    {TRAIN_REWARD_MAX, "critic/score/max", "0.4.1", NULL, "", "score, greatest"},
    {TRAIN_ADVANTAGE_MIN, "critic/advantages/min", "0.4.1", NULL, "", "advantage, smallest"},
    {TRAIN_ADVANTAGE_MAX, "critic/advantages/max", "0.4.1", NULL, "", "advantage, greatest"},
    {TRAIN_ENTROPY, "actor/entropy", "0.5.0", NULL, "", "entropy of the policy per token"},
    {TRAIN_ENTROPY, "actor/entropy_loss", "0.4.1", "0.4.1", "", "entropy of the policy per token"},
    {TRAIN_PPO_KL, "actor/ppo_kl", "0.4.1", NULL, "", "KL between the policies of one step"},
    {TRAIN_KL_LOSS, "actor/kl_loss", "0.4.1", NULL, "", "KL to the reference, in the loss"},
    {TRAIN_KL_PENALTY, "actor/reward_kl_penalty", "0.4.1", NULL, "",
     "KL to the reference, in the reward"},
    {TRAIN_GRAD_NORM, "actor/grad_norm", "0.4.1", NULL, "", "norm of the actor's gradient"},
    {TRAIN_GRAD_NORM, "train/grad_norm", "0.6.0", NULL, "", "norm of the gradient (SFT)"},
    {TRAIN_CLIPPED, "actor/pg_clipfrac", "0.4.1", NULL, "share", "tokens whose ratio was clipped"},
    {TRAIN_LEARNING_RATE, "actor/lr", "0.4.1", NULL, "", "learning rate"},
    {TRAIN_LEARNING_RATE, "train/lr", "0.6.0", NULL, "", "learning rate (SFT)"},
    {TRAIN_LENGTH, "response_length/mean", "0.4.1", NULL, "tokens", "length of answers, mean"},
    {TRAIN_LENGTH_MOST, "response_length/max", "0.4.1", NULL, "tokens", "longest answer"},
    {TRAIN_CUT, "response_length/clip_ratio", "0.4.1", NULL, "share",
     "answers that end at the limit"},
    {TRAIN_ABORTED, "response/aborted_ratio", "0.6.0", NULL, "share", "answers without a token"},
    {TRAIN_IS_MEAN, "rollout_corr/rollout_is_mean", "0.6.1", NULL, "", "importance weight, mean"},
    {TRAIN_IS_STD, "rollout_corr/rollout_is_std", "0.6.1", NULL, "", "importance weight, spread"},
    {TRAIN_IS_SIZE, "rollout_corr/rollout_is_eff_sample_size", "0.6.1", NULL, "share",
     "effective sample size"},
    {TRAIN_GAP_KL, "rollout_corr/kl", "0.6.1", NULL, "", "KL between sampler and trainer"},
    {TRAIN_GAP_CHI2, "rollout_corr/chi2_token", "0.6.1", NULL, "",
     "chi-squared between sampler and trainer"},
    {TRAIN_PROBS_DIFF, "training/rollout_probs_diff_mean", "0.4.1", NULL, "",
     "distance of the tokens' probabilities between sampler and trainer, mean"},
    {TRAIN_PROBS_ALIKE, "training/rollout_actor_probs_pearson_corr", "0.4.1", NULL, "",
     "correlation of the tokens' probabilities between sampler and trainer"},
    {TRAIN_STALENESS, "training/off_policy/trajectory_staleness/mean", "0.9.0", NULL, "versions",
     "age of the weights that answered, mean"},
    {TRAIN_STALENESS_MOST, "training/off_policy/trajectory_staleness/max", "0.9.0", NULL,
     "versions", "age of the weights that answered, greatest"},
    {TRAIN_GPU_MEMORY, "actor/perf/max_memory_reserved_gb", "0.8.0", NULL, "GB",
     "memory that torch holds on a GPU"},
    {TRAIN_GPU_MEMORY, "perf/max_memory_reserved_gb", "0.4.1", NULL, "GB",
     "memory that torch holds on a GPU"},
    {TRAIN_LOSS, "train/loss", "0.5.0", NULL, "", "loss (SFT)"},
    {TRAIN_EXPLAINED, "critic/vf_explained_var", "0.4.1", NULL, "",
     "of the spread of the returns, what the critic explains"},
    {TRAIN_PROMPTS_CUT, "prompt_length/clip_ratio", "0.4.1", NULL, "share",
     "prompts that are as long as the longest may be, or is"},
    {TRAIN_PROMPT_LEAST, "prompt_length/min", "0.4.1", NULL, "tokens", "shortest prompt"},
    {TRAIN_PROMPT_MOST, "prompt_length/max", "0.4.1", NULL, "tokens", "longest prompt"},
    {TRAIN_TURNS, "num_turns/mean", "0.5.0", NULL, "", "turns of a sample, mean; 2 without tools"},
    {TRAIN_KL_COEF, "actor/kl_coef", "0.4.1", NULL, "",
     "weight of the KL in the loss; none is told where it is not in it"},
    {TRAIN_FLAT_GROUPS, METRIC_OF_SAMPLES "flat_groups", "0.4.1", NULL, "share",
     "prompts whose answers all have the same score"},
    {TRAIN_SOLVED_GROUPS, METRIC_OF_SAMPLES "solved_groups", "0.4.1", NULL, "share",
     "prompts whose answers all have the best score"},
    {TRAIN_SAME_ANSWERS, METRIC_OF_SAMPLES "same_answers", "0.4.1", NULL, "share",
     "prompts whose answers are all the same text"},
    {TRAIN_ONE_ANSWER, METRIC_OF_SAMPLES "one_answer", "0.4.1", NULL, "share",
     "answers that are the step's most frequent text"},
    {TRAIN_REPEATS, METRIC_OF_SAMPLES "repeats", "0.4.1", NULL, "share",
     "of an answer, what stood in it before"},
    {TRAIN_FRESH_PROMPTS, METRIC_OF_SAMPLES "fresh_prompts", "0.4.1", NULL, "share",
     "prompts that the two steps before did not have"},
    {TRAIN_BY_PROMPT, METRIC_OF_SAMPLES "score_by_prompt", "0.4.1", NULL, "share",
     "of the spread of the scores, what follows the prompt"},
    {TRAIN_BY_ANSWER, METRIC_OF_SAMPLES "score_by_answer", "0.4.1", NULL, "share",
     "of the spread of the scores to one prompt, what follows the answer"},
    {TRAIN_WIDE_ANSWERS, METRIC_OF_SAMPLES "wide_answers", "0.4.1", NULL, "share",
     "of the answers, bytes that are not ASCII"},
    {TRAIN_WIDE_PROMPTS, METRIC_OF_SAMPLES "wide_prompts", "0.4.1", NULL, "share",
     "of the prompts, bytes that are not ASCII"},
    {TRAIN_BLANK_ANSWERS, METRIC_OF_SAMPLES "blank_answers", "0.4.1", NULL, "share",
     "answers without a word"},
    {TRAIN_TEMPLATE_ANSWERS, METRIC_OF_SAMPLES "template_answers", "0.4.1", NULL, "share",
     "answers with the marks of a chat's turns in them"},
    {TRAIN_TWIN_PROMPTS, METRIC_OF_SAMPLES "twin_prompts", "0.4.1", NULL, "share",
     "groups whose prompt another group of the step has, too"},
    {TRAIN_HOST_MEMORY, "actor/perf/cpu_memory_used_gb", "0.8.0", NULL, "GB",
     "memory in use on a machine"},
    {TRAIN_HOST_MEMORY, "perf/cpu_memory_used_gb", "0.4.1", NULL, "GB",
     "memory in use on a machine"},
};
const size_t training_names_n = array_len(training_names);

static const char VALIDATIONS[] = "val-core/";

/* NULL: it has no such name. A record that was read has its names in order. */
static const struct metric_value *look_for(const struct metric_record *r, const char *name)
{
    size_t rank;
    if (r->order.n == r->n && r->n)
        return metric_order_find(&r->order, r->v, sizeof(*r->v), name, strlen(name), &rank)
                   ? &r->v[metric_order_place(&r->order, rank)]
                   : NULL;
    for (size_t i = 0; i < r->n; i++)
        if (str_eq(r->v[i].name, name))
            return &r->v[i];
    return NULL;
}

bool training_is_validation(const char *name)
{
    return str_starts(name, VALIDATIONS);
}

static void look_for_validation(const struct metric_record *r, struct training_look *ret)
{
    const char **name = &ret->name[TRAIN_VALIDATION];
    for (size_t i = 0; i < r->n; i++)
        if (training_is_validation(r->v[i].name) && (!*name || strcmp(r->v[i].name, *name) < 0)) {
            *name = r->v[i].name;
            ret->v[TRAIN_VALIDATION] = r->v[i].value;
        }
}

void training_look(const struct metric_record *r, struct training_look *ret)
{
    for (size_t i = 0; i < TRAINING_FIGURES; i++) {
        ret->v[i] = NAN;
        ret->name[i] = NULL;
    }
    for (size_t i = 0; i < training_names_n; i++) {
        const struct training_name *n = &training_names[i];
        const struct metric_value *v = ret->name[n->figure] ? NULL : look_for(r, n->name);
        if (!v)
            continue;
        ret->v[n->figure] = v->value;
        ret->name[n->figure] = n->name;
    }
    look_for_validation(r, ret);
}

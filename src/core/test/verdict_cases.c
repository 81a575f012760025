/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of verdict.h, on single courses of a training: healthy ones that look ill to a rule that
 * knows less, each beside the ill one that looks alike. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/unit.h"
#include "core/training/training.h"

enum { TOLD_MAX = 16 };

struct course {
    struct training *t;
    struct metric_watch *w;
    struct metric_value v[TOLD_MAX];
    size_t n;
};

static struct course course_begin(void)
{
    struct course c = {.t = training_new(), .w = metric_watch_new()};
    const struct verdict_bounds bounds = {.gpu_gb = 80, .total = 1000};
    verdict_set_bounds(c.t->verdict, &bounds);
    return c;
}

static void course_end(struct course *c)
{
    training_free(c->t);
    metric_watch_free(c->w);
}

static void tell(struct course *c, const char *name, double value)
{
    assert_true(c->n < TOLD_MAX);
    c->v[c->n++] = (struct metric_value){(char *)(uintptr_t)name, value}; /* only read */
}

/* All that was told since the last step. */
static void told_step(struct course *c, int64_t step)
{
    const struct metric_record r = {.step = step, .v = c->v, .n = c->n, .attempt = 1};
    metric_watch_add(c->w, &r);
    training_add(c->t, &r, c->w);
    c->n = 0;
}

/* From -1 to 1, evenly, without an order. */
static double wave(int64_t step)
{
    return (double)(step * 41 % 101 - 50) / 50;
}

static void tell_reward(struct course *c, double mean, double least, double most)
{
    tell(c, "critic/score/mean", mean);
    tell(c, "critic/score/min", least);
    tell(c, "critic/score/max", most);
}

static void tell_learning(struct course *c, double grad, double advantage)
{
    tell(c, "actor/grad_norm", grad);
    tell(c, "critic/advantages/max", advantage);
    tell(c, "critic/advantages/min", -advantage);
}

static bool is_seen(const struct course *c, enum verdict_kind k)
{
    return verdict_seen(c->t->verdict) >> k & 1;
}

static void assert_quiet(const struct course *c)
{
    for (int k = 0; k < VERDICT_KINDS; k++)
        if (is_seen(c, (enum verdict_kind)k))
            fail_msg("%s is seen", verdict_kind_to_string((enum verdict_kind)k));
}

static struct verdict_item item_of(const struct course *c, enum verdict_kind k)
{
    struct verdict_item item = {0};
    if (!verdict_item(c->t->verdict, k, &item))
        fail_msg("%s is not seen", verdict_kind_to_string(k));
    return item;
}

static void assert_since(const struct course *c, enum verdict_kind k, int64_t onset)
{
    struct verdict_item item = item_of(c, k);
    if (llabs(item.onset - onset) > 5)
        fail_msg("%s since %lld, not %lld", verdict_kind_to_string(k), (long long)item.onset,
                 (long long)onset);
}

static void is_quiet_on_a_solved_run(void **state)
{
    struct course c = course_begin();
    (void)state;
    for (int64_t i = 1; i <= 80; i++) {
        bool is_done = i > 20;
        tell_reward(&c, is_done ? 1 : (double)i / 20, is_done, 1);
        tell_learning(&c, is_done ? 0 : 0.5 + 0.1 * wave(i), is_done ? 0 : 2);
        told_step(&c, i);
    }
    assert_quiet(&c);
    course_end(&c);
}

static void is_quiet_on_a_sparse_start(void **state)
{
    struct course c = course_begin();
    (void)state;
    for (int64_t i = 1; i <= 80; i++) {
        double x = i > 14 ? fmin(0.02 * (double)(i - 14), 0.7) : 0;
        tell_reward(&c, x > 0 ? x + 0.005 * wave(i) : 0, 0, x > 0);
        tell_learning(&c, x > 0 ? 0.5 + 0.1 * wave(i) : 0, x > 0 ? 2 : 0);
        told_step(&c, i);
    }
    assert_quiet(&c);
    course_end(&c);
}

/* No answer ever scores: that is told once a hard task should have begun. */
static void tells_a_reward_that_never_comes(void **state)
{
    struct course c = course_begin();
    (void)state;
    for (int64_t i = 1; i <= 100; i++) {
        tell_reward(&c, 0, 0, 0);
        tell_learning(&c, 0, 0);
        told_step(&c, i);
        if (i == 20)
            assert_quiet(&c);
    }
    assert_since(&c, VERDICT_REWARD_FLAT, 1);
    assert_true(item_of(&c, VERDICT_REWARD_FLAT).stands);
    course_end(&c);
}

/* All answers have the same score from the start: that is no solved task. */
static void tells_a_constant_reward(void **state)
{
    struct course c = course_begin();
    (void)state;
    for (int64_t i = 1; i <= 100; i++) {
        tell_reward(&c, 0.5, 0.5, 0.5);
        tell_learning(&c, 0, 0);
        told_step(&c, i);
    }
    assert_since(&c, VERDICT_REWARD_FLAT, 1);
    assert_since(&c, VERDICT_GROUPS_FLAT, 1);
    assert_true(item_of(&c, VERDICT_REWARD_FLAT).stands);
    course_end(&c);
}

static void knows_mixed_languages(void **state)
{
    struct course mixed = course_begin(), turned = course_begin();
    (void)state;
    for (int64_t i = 1; i <= 90; i++) {
        tell(&mixed, "samples/wide_prompts", 0.5 + 0.3 * wave(i));
        tell(&turned, "samples/wide_prompts", (i < 50 ? 0.1 : 0.6) + 0.05 * wave(i));
        tell_reward(&mixed, 0.3 + 0.02 * wave(i), 0, 1);
        tell_reward(&turned, 0.3 + 0.02 * wave(i), 0, 1);
        told_step(&mixed, i);
        told_step(&turned, i);
    }
    assert_false(is_seen(&mixed, VERDICT_LANGUAGE));
    assert_since(&turned, VERDICT_LANGUAGE, 50);
    course_end(&mixed);
    course_end(&turned);
}

static void feed_benchmarks(struct course *c, double rise)
{
    for (int64_t i = 1; i <= 100; i++) {
        tell_reward(c, 0.1 + 0.008 * (double)i + 0.01 * wave(i), 0, 1.5);
        if (i % 10 == 0) {
            tell(c, "val-core/aime/acc/mean@1", 0);
            tell(c, "val-core/gsm8k/acc/mean@1", 0.2 + rise * (double)i);
        }
        told_step(c, i);
    }
}

static void asks_all_benchmarks(void **state)
{
    struct course rising = course_begin(), parted = course_begin();
    (void)state;
    feed_benchmarks(&rising, 0.004);
    feed_benchmarks(&parted, 0);
    assert_false(is_seen(&rising, VERDICT_PARTED));
    assert_true(is_seen(&parted, VERDICT_PARTED));
    course_end(&rising);
    course_end(&parted);
}

/* twice: a second value follows at once; both: the gradient has one, too. */
static void feed_kl(struct course *c, int64_t at, bool twice, bool both)
{
    for (int64_t i = 1; i <= 100; i++) {
        bool is_tail = i % 17 == 0 || i == at || (twice && i == at + 1);
        tell(c, "actor/kl_loss", is_tail ? 0.2 : 0.01 * (1 + 0.3 * wave(i)));
        tell(c, "actor/grad_norm", both && i == at ? 10 : 0.5 * (1 + 0.3 * wave(i)));
        told_step(c, i);
    }
}

static void knows_heavy_tails(void **state)
{
    struct course tails = course_begin(), twice = course_begin(), both = course_begin();
    (void)state;
    feed_kl(&tails, 0, false, false);
    feed_kl(&twice, 60, true, false);
    feed_kl(&both, 60, false, true);
    assert_false(is_seen(&tails, VERDICT_KL_SPIKE));
    assert_since(&twice, VERDICT_KL_SPIKE, 60);
    assert_since(&both, VERDICT_KL_SPIKE, 60);
    course_end(&tails);
    course_end(&twice);
    course_end(&both);
}

/* 600 steps, in ten of which the reward rises by less than its noise. */
static void is_patient_with_long_runs(void **state)
{
    struct course slow = course_begin(), stuck = course_begin();
    (void)state;
    for (int64_t i = 1; i <= 600; i++) {
        double part = (double)i / 600, noise = 0.015 * wave(i);
        tell_reward(&slow, 0.2 + 0.4 * part + noise, 0, 1);
        tell_reward(&stuck, 0.2 + noise, 0, 1);
        tell(&slow, "actor/entropy", 1 - 0.95 * part);
        tell(&stuck, "actor/entropy", 1 - 0.95 * part);
        told_step(&slow, i);
        told_step(&stuck, i);
    }
    assert_quiet(&slow);
    assert_true(is_seen(&stuck, VERDICT_ENTROPY_COLLAPSE));
    course_end(&slow);
    course_end(&stuck);
}

static void waits_for_memory_to_fill(void **state)
{
    struct course c = course_begin();
    (void)state;
    for (int64_t i = 1; i <= 90; i++) {
        tell_reward(&c, 0.3 + 0.02 * wave(i), 0, 1);
        tell(&c, "perf/max_memory_reserved_gb", 20 + fmin((double)i, 30) + 0.05 * wave(i));
        told_step(&c, i);
    }
    assert_quiet(&c);
    course_end(&c);
}

static void lets_a_number_come_back(void **state)
{
    struct course c = course_begin();
    (void)state;
    for (int64_t i = 1; i <= 60; i++) {
        tell_reward(&c, 0.3 + 0.02 * wave(i), 0, 1);
        tell(&c, "actor/pg_loss", i >= 20 && i < 25 ? (double)NAN : 0.01 * wave(i));
        told_step(&c, i);
        if (i == 30)
            assert_true(item_of(&c, VERDICT_NOT_FINITE).stands);
    }
    struct verdict_item item = item_of(&c, VERDICT_NOT_FINITE);
    assert_false(item.stands);
    assert_int_equal(item.onset, 20);
    assert_in_range(item.ended, 30, 40);
    course_end(&c);
}

static void lets_a_reward_come_back(void **state)
{
    struct course c = course_begin();
    (void)state;
    for (int64_t i = 1; i <= 120; i++) {
        bool is_low = i < 10 || (i >= 45 && i < 65);
        tell_reward(&c, (is_low ? 0.1 : 0.7) + 0.01 * wave(i), 0, 1);
        told_step(&c, i);
        if (i == 64)
            assert_true(item_of(&c, VERDICT_REWARD_FELL).stands);
    }
    assert_false(item_of(&c, VERDICT_REWARD_FELL).stands);
    course_end(&c);
}

static json_t *course_shown(const struct course *c)
{
    struct buf out = BUF_INIT(1 << 20);
    struct jout j = jout_begin(&out);
    json_t *o = NULL;
    assert_true(verdict_to_json(c->t->verdict, &j, NULL));
    assert_int_equal(json_parse(out.data, out.len, out.max, &o, NULL), 0);
    buf_release(&out);
    return o;
}

static void names_the_keys_of_sft(void **state)
{
    struct course c = course_begin();
    (void)state;
    for (int64_t i = 1; i <= 60; i++) {
        tell(&c, "train/loss", 3 * exp(-(double)i / 30) + 0.02 * wave(i));
        tell(&c, "train/grad_norm", (i >= 50 ? 60 : 1) * (1 + 0.3 * wave(i)));
        told_step(&c, i);
    }
    json_t *o = course_shown(&c);
    const json_t *item = json_array_get(json_get_array(o, "items"), 0);
    assert_string_equal(json_get_str(item, "kind", ""), "grad_jump");
    assert_string_equal(json_get_str(item, "key", ""), "optim.clip_grad");
    assert_null(strstr(json_get_str(item, "fix", "actor"), "actor"));
    json_decref(o);
    course_end(&c);
}

static void says_the_limit_of_answers(void **state)
{
    struct course c = course_begin();
    (void)state;
    for (int64_t i = 1; i <= 30; i++) {
        tell_reward(&c, 0.3 + 0.02 * wave(i), 0, 1);
        tell(&c, "response_length/max", 2048);
        tell(&c, "response_length/clip_ratio", 0.41 + 0.004 * wave(i));
        told_step(&c, i);
    }
    json_t *o = course_shown(&c);
    assert_string_equal(json_get_str(o, "text", ""),
                        "41 % of the answers end at the limit of 2048 tokens since step 1");
    json_decref(o);
    course_end(&c);
}

/* A reward that pays for one answer, whatever was asked, is as good as it can be. */
static void tells_a_hack_that_succeeded(void **state)
{
    struct course c = course_begin();
    (void)state;
    for (int64_t i = 1; i <= 80; i++) {
        double share = i >= 40 ? 0.95 : 0.02;
        tell_reward(&c, i >= 40 ? 1 : 0.3 + 0.02 * wave(i), i >= 40, 1);
        tell(&c, "samples/one_answer", share);
        told_step(&c, i);
    }
    assert_since(&c, VERDICT_ONE_ANSWER, 40);
    course_end(&c);
}

/* Half of the answers to questions of yes and no are the same from the start. */
static void knows_short_answers(void **state)
{
    struct course c = course_begin();
    (void)state;
    for (int64_t i = 1; i <= 80; i++) {
        tell_reward(&c, 0.5 + 0.002 * (double)i + 0.01 * wave(i), 0, 1);
        tell(&c, "samples/one_answer", 0.58 + 0.05 * wave(i));
        told_step(&c, i);
    }
    assert_quiet(&c);
    course_end(&c);
}

static void compares_probabilities(void **state)
{
    struct course c = course_begin();
    (void)state;
    for (int64_t i = 1; i <= 80; i++) {
        tell_reward(&c, 0.3 + 0.02 * wave(i), 0, 1);
        tell(&c, "training/rollout_probs_diff_mean", 0.01);
        tell(&c, "training/rollout_actor_probs_pearson_corr", i >= 50 ? 0.6 : 0.995);
        told_step(&c, i);
        if (i == 49)
            assert_quiet(&c);
    }
    assert_since(&c, VERDICT_GAP, 50);
    course_end(&c);
}

static void feed_prompts(struct course *c, double least)
{
    for (int64_t i = 1; i <= 40; i++) {
        tell_reward(c, 0.3 + 0.02 * wave(i), 0, 1);
        tell(c, "prompt_length/min", least);
        tell(c, "prompt_length/max", 512);
        tell(c, "prompt_length/clip_ratio", i >= 20 ? 0.5 : 0.01);
        told_step(c, i);
    }
}

/* verl counts prompts that are as long as the longest: where all are equally long these are all. */
static void knows_prompts_of_one_length(void **state)
{
    struct course equal = course_begin(), near = course_begin(), cut = course_begin();
    (void)state;
    feed_prompts(&equal, 500);
    feed_prompts(&near, 300);
    feed_prompts(&cut, 60);
    assert_quiet(&equal);
    assert_quiet(&near);
    assert_since(&cut, VERDICT_PROMPTS_CUT, 20);
    course_end(&equal);
    course_end(&near);
    course_end(&cut);
}

static void feed_turns(struct course *c, double turns)
{
    for (int64_t i = 1; i <= 40; i++) {
        tell_reward(c, 0.3 + 0.02 * wave(i), 0, 1);
        tell(c, "num_turns/mean", turns);
        tell(c, "samples/template_answers", 0.9);
        told_step(c, i);
    }
}

static void knows_conversations(void **state)
{
    struct course talks = course_begin(), answers = course_begin();
    (void)state;
    feed_turns(&talks, 5.5);
    feed_turns(&answers, 2);
    assert_quiet(&talks);
    assert_since(&answers, VERDICT_TEMPLATE, 1);
    course_end(&talks);
    course_end(&answers);
}

/* There are gradients and a learning rate, and yet the policy stays the reference. */
static void tells_weights_that_stand_still(void **state)
{
    struct course still = course_begin(), slow = course_begin();
    (void)state;
    for (int64_t i = 1; i <= 60; i++) {
        tell_reward(&still, 0.3 + 0.02 * wave(i), 0, 1);
        tell_reward(&slow, 0.3 + 0.02 * wave(i), 0, 1);
        tell_learning(&still, 0.5, 2);
        tell_learning(&slow, 0.5, 2);
        tell(&still, "actor/kl_loss", 0);
        tell(&still, "actor/kl_coef", 0.001);
        tell(&slow, "actor/kl_coef", 0.001);
        tell(&slow, "actor/kl_loss", i < 6 ? 0 : 1e-6 * (double)i);
        told_step(&still, i);
        told_step(&slow, i);
    }
    assert_quiet(&slow);
    assert_since(&still, VERDICT_NO_UPDATE, 1);
    assert_string_equal(item_of(&still, VERDICT_NO_UPDATE).metric, "actor/kl_loss");
    course_end(&still);
    course_end(&slow);
}

/* Some versions of verl write a KL of 0 where none is in the loss; and the first steps of a long
 * warm-up may be too small to be seen. */
static void knows_a_kl_of_nothing(void **state)
{
    struct course without = course_begin(), warms = course_begin();
    (void)state;
    for (int64_t i = 1; i <= 60; i++) {
        tell_reward(&without, 0.3 + 0.02 * wave(i), 0, 1);
        tell_reward(&warms, 0.3 + 0.02 * wave(i), 0, 1);
        tell(&without, "actor/kl_loss", 0);
        tell(&warms, "actor/kl_loss", 0);
        tell(&warms, "actor/kl_coef", 0.001);
        tell(&warms, "actor/lr", 1e-9 * (double)i);
        told_step(&without, i);
        told_step(&warms, i);
    }
    assert_quiet(&without);
    assert_quiet(&warms);
    course_end(&without);
    course_end(&warms);
}

/* A critic begins worse than a constant: one that learns is not blind, nor is one without a score
 * to learn from. */
static void knows_a_critic_that_learns(void **state)
{
    struct course slow = course_begin(), blind = course_begin(), waits = course_begin();
    (void)state;
    for (int64_t i = 1; i <= 80; i++) {
        tell_reward(&slow, 0.3 + 0.02 * wave(i), 0, 1);
        tell_reward(&blind, 0.3 + 0.02 * wave(i), 0, 1);
        tell_reward(&waits, 0, 0, 0);
        tell(&slow, "critic/vf_explained_var", -2 * exp(-(double)i / 60) + 0.05 * wave(i));
        tell(&blind, "critic/vf_explained_var", -0.4 + 0.1 * wave(i));
        tell(&waits, "critic/vf_explained_var", -50 + wave(i));
        told_step(&slow, i);
        told_step(&blind, i);
        told_step(&waits, i);
    }
    assert_quiet(&slow);
    assert_false(is_seen(&waits, VERDICT_CRITIC_BLIND));
    assert_since(&blind, VERDICT_CRITIC_BLIND, 1);
    course_end(&slow);
    course_end(&blind);
    course_end(&waits);
}

/* Scores from -1 to 1, whose mean is below 0 from the start. */
static void tells_a_reward_that_sinks(void **state)
{
    struct course sinks = course_begin(), rests = course_begin();
    (void)state;
    for (int64_t i = 1; i <= 80; i++) {
        double lost = i >= 40 ? 0.03 * fmin((double)(i - 39), 20) : 0;
        tell_reward(&sinks, -0.2 - lost + 0.01 * wave(i), -1, 1);
        tell_reward(&rests, -0.2 - lost / 8 + 0.01 * wave(i), -1, 1);
        told_step(&sinks, i);
        told_step(&rests, i);
    }
    assert_quiet(&rests);
    assert_since(&sinks, VERDICT_REWARD_SINKS, 40);
    course_end(&sinks);
    course_end(&rests);
}

/* A task that is solved at last had something to learn; one that was from the start had not. Scores
 * that begin far above 0 are near the best one in any case. */
static void tells_a_reward_with_nothing_to_learn(void **state)
{
    struct course full = course_begin(), solved = course_begin(), far = course_begin();
    (void)state;
    for (int64_t i = 1; i <= 60; i++) {
        tell_reward(&full, 0.99 + 0.005 * wave(i), 0, 1);
        tell_reward(&solved, fmin(0.5 + 0.02 * (double)i, 0.99), 0, 1);
        tell_reward(&far, 100.2 + 0.05 * wave(i), 100, 101);
        told_step(&full, i);
        told_step(&solved, i);
        told_step(&far, i);
    }
    assert_quiet(&solved);
    assert_quiet(&far);
    assert_since(&full, VERDICT_REWARD_FULL, 1);
    course_end(&full);
    course_end(&solved);
    course_end(&far);
}

/* verl's schedule counts from 0: after 400 of 1,000 steps it is a long warm-up, after 500 too long
 * a one. One that has come to its end is well. */
static void tells_a_warmup_without_end(void **state)
{
    struct course cold = course_begin(), warm = course_begin();
    (void)state;
    for (int64_t i = 1; i <= 520; i++) {
        tell_reward(&cold, 0.3 + 0.02 * wave(i), 0, 1);
        tell_reward(&warm, 0.3 + 0.02 * wave(i), 0, 1);
        tell(&cold, "actor/lr", 1e-9 * (double)(i - 1));
        tell(&warm, "actor/lr", 1e-9 * fmin((double)(i - 1), 450));
        told_step(&cold, i);
        told_step(&warm, i);
        if (i == 499)
            assert_quiet(&cold);
    }
    assert_quiet(&warm);
    assert_since(&cold, VERDICT_WARMUP, 1);
    course_end(&cold);
    course_end(&warm);
}

/* The worst of two that stand is the verdict, whichever began first; the other one stays in reach.
 * One that is over comes behind those that stand. */
static void says_the_worst_of_two_first(void **state)
{
    struct course c = course_begin();
    (void)state;
    for (int64_t i = 1; i <= 80; i++) {
        tell_reward(&c, 0.3 + 0.02 * wave(i), 0, 1);
        tell(&c, "actor/pg_clipfrac", i >= 20 ? 0.7 : 0.01);
        tell(&c, "response/aborted_ratio", i >= 40 && i < 60 ? 0.5 : 0);
        told_step(&c, i);
        if (i != 50 && i != 80)
            continue;
        json_t *o = course_shown(&c);
        const json_t *items = json_get_array(o, "items");
        const char *first = i == 50 ? "aborted" : "clipped";
        const char *next = i == 50 ? "clipped" : "aborted";
        assert_int_equal(json_array_size(items), 2);
        assert_string_equal(json_get_str(o, "kind", ""), first);
        assert_string_equal(json_get_str(o, "state", ""), i == 50 ? "bad" : "warn");
        assert_string_equal(json_get_str(json_array_get(items, 0), "kind", ""), first);
        assert_string_equal(json_get_str(json_array_get(items, 1), "kind", ""), next);
        assert_non_null(json_get_str(json_array_get(items, 1), "fix", NULL));
        json_decref(o);
    }
    course_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_quiet_on_a_solved_run),
        cmocka_unit_test(is_quiet_on_a_sparse_start),
        cmocka_unit_test(tells_a_reward_that_never_comes),
        cmocka_unit_test(tells_a_constant_reward),
        cmocka_unit_test(knows_mixed_languages),
        cmocka_unit_test(asks_all_benchmarks),
        cmocka_unit_test(knows_heavy_tails),
        cmocka_unit_test(is_patient_with_long_runs),
        cmocka_unit_test(waits_for_memory_to_fill),
        cmocka_unit_test(lets_a_number_come_back),
        cmocka_unit_test(lets_a_reward_come_back),
        cmocka_unit_test(names_the_keys_of_sft),
        cmocka_unit_test(says_the_limit_of_answers),
        cmocka_unit_test(tells_a_hack_that_succeeded),
        cmocka_unit_test(knows_short_answers),
        cmocka_unit_test(compares_probabilities),
        cmocka_unit_test(knows_prompts_of_one_length),
        cmocka_unit_test(knows_conversations),
        cmocka_unit_test(tells_weights_that_stand_still),
        cmocka_unit_test(knows_a_kl_of_nothing),
        cmocka_unit_test(knows_a_critic_that_learns),
        cmocka_unit_test(tells_a_reward_that_sinks),
        cmocka_unit_test(tells_a_reward_with_nothing_to_learn),
        cmocka_unit_test(tells_a_warmup_without_end),
        cmocka_unit_test(says_the_worst_of_two_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

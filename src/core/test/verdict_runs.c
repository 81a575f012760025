/* SPDX-License-Identifier: Apache-2.0 */
/* verdict_runs.c - see verdict_runs.h. */
#include "verdict_runs.h"

#include <math.h>

#include "base/mem.h"
#include "base/unit.h"
#include "core/sample/sample_figures.h"

enum { VALIDATES_EVERY = 10, NAMES_MAX = 64 };
static const double GPU_GB = 80;

struct dice {
    uint64_t state;
};

/* From 0 to 1 (xorshift64*). */
static double dice_unit(struct dice *d)
{
    d->state ^= d->state >> 12;
    d->state ^= d->state << 25;
    d->state ^= d->state >> 27;
    return (double)(d->state * 0x2545f4914f6cdd1dULL >> 11) / 9007199254740992.0;
}

static double dice_between(struct dice *d, double least, double most)
{
    return least + (most - least) * dice_unit(d);
}

/* About 0, of spread 1. */
static double dice_normal(struct dice *d)
{
    return sqrt(-2 * log(dice_unit(d) + 1e-300)) * cos(2 * 3.14159265358979323846 * dice_unit(d));
}

/* What differs from run to run. */
struct habits {
    double reward_from, reward_to, reward_noise, pace;
    double entropy, entropy_left, entropy_noise;
    double grad, kl, cut, cut_drift, length, memory, warm;
    bool cools; /* its learning rate goes down to 0 at the end */
};

static void habits_roll(struct dice *d, struct habits *h)
{
    h->reward_from = dice_between(d, 0, 0.4);
    h->reward_to = h->reward_from + dice_between(d, 0, 0.55);
    h->reward_noise = dice_between(d, 0.005, 0.06);
    h->pace = dice_between(d, 15, 90);
    h->entropy = dice_between(d, 0.2, 4.7);
    h->entropy_left = dice_between(d, 0.3, 1.3);
    h->entropy_noise = dice_between(d, 0.01, 0.08);
    h->grad = dice_between(d, 0.05, 8);
    h->kl = dice_unit(d) < 0.3 ? 0 : exp(dice_between(d, log(1e-5), log(3e-3)));
    h->cut = dice_unit(d) < 0.2 ? 0.16 : dice_between(d, 0, 0.15);
    h->cut_drift = dice_between(d, -0.03, 0.08);
    h->length = dice_between(d, 100, 1500);
    h->memory = dice_between(d, 20, 60);
    h->warm = dice_between(d, 1, 3);
    h->cools = dice_unit(d) < 0.3;
}

/* What differs in its samples. */
struct sample_habits {
    double flat, repeats, fresh, wide, by_prompt, by_answer;
};

static void sample_habits_roll(struct dice *d, struct sample_habits *h)
{
    h->flat = dice_between(d, 0, 0.45);
    h->repeats = dice_between(d, 0, 0.25);
    h->fresh = dice_unit(d) < 0.3 ? dice_between(d, 0.3, 1) : 1;
    h->wide = dice_unit(d) < 0.3 ? dice_between(d, 0.5, 0.9) : dice_between(d, 0, 0.02);
    h->by_prompt = dice_unit(d) < 0.2 ? 0 : dice_between(d, 0.15, 0.6);
    h->by_answer = h->by_prompt > 0 ? dice_between(d, 0, 0.4) : dice_between(d, 0.15, 0.4);
}

struct making {
    struct dice dice, of_samples, of_rest;
    struct habits is;
    struct sample_habits has;
    const struct made_run *run;
    struct metric_value v[NAMES_MAX];
    size_t n;
};

static void put(struct making *m, const char *name, double value)
{
    assert_true(m->n < NAMES_MAX);
    m->v[m->n++] = (struct metric_value){(char *)(uintptr_t)name, value}; /* only read */
}

static double clamp(double x, double least, double most)
{
    return x < least ? least : x > most ? most : x;
}

/* Steps since the fault began; below 0: it has not. */
static double since(const struct making *m, enum verdict_kind kind, int64_t step)
{
    return m->run->fault == kind ? (double)(step - m->run->onset) : -1;
}

static bool has_begun(const struct making *m, enum verdict_kind kind, int64_t step)
{
    return since(m, kind, step) >= 0;
}

static double skill(const struct habits *is, double steps)
{
    return is->reward_from + (is->reward_to - is->reward_from) * (1 - exp(-steps / is->pace));
}

/* Each tenth step. alone: steps since the reward rises without it; early: what it stays at. */
static void put_validation(struct making *m, int64_t step, double early, double alone)
{
    double known = alone >= 0 ? early : skill(&m->is, (double)step);
    if (step % VALIDATES_EVERY)
        return;
    double x = clamp(0.7 * known + 0.01 * dice_normal(&m->dice), 0, 1);
    if (alone > 0)
        x = 0.7 * early - 0.02 - 0.01 * dice_unit(&m->dice);
    put(m, "val-core/made/acc/mean@1", x);
}

/* The mean score of this step, without its noise; well: what a run without a fault would have. */
static double mean_score(const struct making *m, int64_t step, double well)
{
    double t = (double)step, early = skill(&m->is, (double)m->run->onset);
    double begun = (double)(step - m->run->onset); /* below 0: the fault has not */
    switch (m->run->fault) {
    case VERDICT_ENTROPY_COLLAPSE:
    case VERDICT_ENTROPY_RISE:
    case VERDICT_LENGTH_DRIFT:
        return begun >= 0 ? early : well;
    case VERDICT_PARTED:
        return begun >= 0 ? early + 0.8 * (1 - exp(-begun / 25)) : well;
    case VERDICT_REPETITION:
        return m->is.reward_from;
    case VERDICT_FOLLOWS_ANSWER:
        return 0.1 + 0.9 * (1 - exp(-t / 20));
    case VERDICT_REWARD_FULL:
        return 1.49;
    case VERDICT_REWARD_SINKS:
        return begun >= 0 ? 0.5 * exp(-(begun + 1) / 8) : 0.5;
    case VERDICT_REWARD_FELL:
        return begun >= 0 ? 0.1 : 0.1 + 0.6 * (1 - exp(-t / 10));
    default:
        return well;
    }
}

static void put_reward(struct making *m, int64_t step)
{
    double x = mean_score(m, step, skill(&m->is, (double)step));
    bool is_flat = has_begun(m, VERDICT_REWARD_FLAT, step);
    x += m->is.reward_noise * dice_normal(&m->dice);
    put(m, "critic/score/mean", is_flat ? 0.25 : clamp(x, 0, 1.5));
    put(m, "critic/score/max", 1.5);
    put(m, "critic/score/min", is_flat ? 0.25 : 0);
    bool is_even = has_begun(m, VERDICT_GROUPS_FLAT, step) || is_flat;
    put(m, "critic/advantages/max", is_even ? 0 : 2 + 0.3 * dice_normal(&m->dice));
    put(m, "critic/advantages/min", is_even ? 0 : -2 + 0.3 * dice_normal(&m->dice));
    put_validation(m, step, skill(&m->is, (double)m->run->onset), since(m, VERDICT_PARTED, step));
}

static void put_policy(struct making *m, int64_t step)
{
    const struct habits *is = &m->is;
    double t = (double)step, warm = 1 + is->warm * exp(-t / 2);
    double fell = since(m, VERDICT_ENTROPY_COLLAPSE, step);
    double rose = since(m, VERDICT_ENTROPY_RISE, step);
    double entropy = is->entropy * (is->entropy_left + (1 - is->entropy_left) * exp(-t / is->pace));
    if (fell >= 0)
        entropy *= exp(-(fell + 1) / 6);
    if (rose >= 0)
        entropy += 0.3 + entropy * fmin(exp((rose + 1) / 8) - 1, 10);
    put(m, "actor/entropy", fmax(entropy * (1 + is->entropy_noise * dice_normal(&m->dice)), 0));
    double kl = is->kl * exp(0.6 * dice_normal(&m->dice));
    if (since(m, VERDICT_KL_SPIKE, step) == 0)
        kl = 0.6;
    if (has_begun(m, VERDICT_KL_HIGH, step))
        kl = 0.5 + 0.3 * dice_unit(&m->dice);
    put(m, "actor/ppo_kl", kl);
    double moved = 1e-3 + 0.3 * (1 - exp(-t / 100)) * (1 + 0.1 * dice_normal(&m->dice));
    put(m, "actor/kl_loss", has_begun(m, VERDICT_KL_NEGATIVE, step) ? -0.2 : moved);
    double grad = is->grad * warm * exp(0.35 * dice_normal(&m->dice));
    if (has_begun(m, VERDICT_GRAD_JUMP, step))
        grad *= 60;
    put(m, "actor/grad_norm", has_begun(m, VERDICT_NO_UPDATE, step) ? 0 : grad);
    double done = t / (double)m->run->steps;
    double cooled = is->cools ? 0.5 * (1 + cos(3.14159 * done)) : 1;
    bool is_cold = m->run->fault == VERDICT_WARMUP;
    put(m, "actor/lr", is_cold ? 1e-9 * t : 1e-6 * fmin(t / 5, 1) * cooled);
    put(m, "actor/pg_clipfrac",
        has_begun(m, VERDICT_CLIPPED, step) ? 0.7 : 0.02 * dice_unit(&m->dice));
    put(m, "actor/pg_loss",
        has_begun(m, VERDICT_NOT_FINITE, step) ? NAN : 0.01 * dice_normal(&m->dice));
}

static void put_answers(struct making *m, int64_t step)
{
    const struct habits *is = &m->is;
    double t = (double)step, grown = since(m, VERDICT_LENGTH_LIMIT, step);
    double times = grown >= 0 ? exp(0.05 * (grown + 1)) : 1;
    bool is_short = has_begun(m, VERDICT_LENGTH_DRIFT, step);
    double length = is->length * (1 + 0.3 * (1 - exp(-t / is->pace))) * times;
    double base = m->run->fault == VERDICT_LENGTH_LIMIT ? 0.03 : is->cut;
    double cut = base + is->cut_drift * (1 - exp(-t / is->pace)) + (times > 1.5 ? times - 1.5 : 0);
    cut = clamp(cut + 0.02 * dice_normal(&m->dice), 0, 0.98);
    if (is_short)
        length *= 0.15;
    if (has_begun(m, VERDICT_ANSWERS_CUT, step))
        cut = 0.41;
    put(m, "response_length/mean", fmin(length, 2000) * (1 + 0.03 * dice_normal(&m->dice)));
    put(m, "response_length/max", 2048);
    put(m, "response_length/clip_ratio", has_begun(m, VERDICT_NO_END, step) ? 1 : cut);
    put(m, "response/aborted_ratio",
        has_begun(m, VERDICT_ABORTED, step) ? 0.4 : 0.005 * dice_unit(&m->dice));
    put(m, "rollout_corr/kl", has_begun(m, VERDICT_GAP, step) ? 0.3 : 1e-3 * dice_normal(&m->dice));
    put(m, "rollout_corr/chi2_token", 5e-3 * dice_normal(&m->dice));
    put(m, "training/off_policy/trajectory_staleness/max",
        has_begun(m, VERDICT_STALE, step) ? 6 : floor(2.9 * dice_unit(&m->dice)));
}

static void put_prompts(struct making *m, int64_t step)
{
    bool is_cut = has_begun(m, VERDICT_PROMPTS_CUT, step);
    put(m, "prompt_length/min", 40 + floor(20 * dice_unit(&m->of_rest)));
    put(m, "prompt_length/max", is_cut ? 512 : 300 + floor(200 * dice_unit(&m->of_rest)));
    put(m, "prompt_length/clip_ratio", is_cut ? 0.6 : 0.02 * dice_unit(&m->of_rest));
}

/* It learns after some steps; before them it is worse than a constant. */
static void put_critic(struct making *m, int64_t step)
{
    double t = (double)step, known = 0.4 * (1 - exp(-t / 30)) - 3 * exp(-t / 6);
    bool is_blind = has_begun(m, VERDICT_CRITIC_BLIND, step);
    put(m, "critic/vf_explained_var",
        is_blind ? -0.3 - 0.2 * dice_unit(&m->of_rest) : known + 0.05 * dice_normal(&m->of_rest));
}

static void put_memory(struct making *m, int64_t step)
{
    double grown = since(m, VERDICT_MEMORY, step), t = (double)step;
    double gb = m->is.memory * (1 - 0.2 * exp(-t / 4)) + 0.1 * dice_normal(&m->dice);
    put(m, "perf/max_memory_reserved_gb", grown >= 0 ? fmin(gb + 0.5 * grown, GPU_GB) : gb);
}

static void put_sft(struct making *m, int64_t step)
{
    double t = (double)step, loss = 0.5 + 4 * exp(-t / m->is.pace);
    if (m->run->fault == VERDICT_LOSS_FLAT)
        loss = 4;
    if (has_begun(m, VERDICT_LOSS_JUMP, step))
        loss *= 3;
    put(m, "train/loss", loss * (1 + 0.05 * dice_normal(&m->dice)));
    put(m, "train/grad_norm", m->is.grad * exp(0.4 * dice_normal(&m->dice)));
    put(m, "train/lr", 1e-5);
}

static void put_sample(struct making *m, enum sample_figure f, double value)
{
    put(m, sample_figure_names[f], clamp(value, 0, 1));
}

static void put_samples(struct making *m, int64_t step)
{
    const struct sample_habits *has = &m->has;
    struct dice *d = &m->of_samples;
    double repeated = since(m, VERDICT_REPETITION, step);
    bool is_same = has_begun(m, VERDICT_SAME_ANSWERS, step);
    bool is_wasted = has_begun(m, VERDICT_GROUPS_WASTED, step);
    bool is_foreign = has_begun(m, VERDICT_LANGUAGE, step);
    double wide = is_foreign ? fabs(has->wide - 0.5) + (has->wide < 0.5 ? 0.1 : -0.1) : has->wide;
    put_sample(m, SAMPLE_FLAT, (is_wasted ? 0.75 : has->flat) + 0.04 * dice_normal(d));
    put_sample(m, SAMPLE_SOLVED, has_begun(m, VERDICT_GROUPS_SOLVED, step) ? 0.75 : 0.1);
    put_sample(m, SAMPLE_ONE, has_begun(m, VERDICT_ONE_ANSWER, step) ? 0.95 : 0.05);
    put_sample(m, SAMPLE_BLANK, has_begun(m, VERDICT_ANSWERS_EMPTY, step) ? 0.9 : 0.02);
    put_sample(m, SAMPLE_TEMPLATE, has_begun(m, VERDICT_TEMPLATE, step) ? 0.8 : 0.1);
    put_sample(m, SAMPLE_TWINS, has_begun(m, VERDICT_PROMPTS_TWICE, step) ? 0.5 : 0.05);
    put_sample(m, SAMPLE_SAME, is_same ? 1 : 0.05 * dice_unit(d));
    put_sample(m, SAMPLE_REPEATS,
               has->repeats + 0.02 * dice_normal(d) +
                   (repeated >= 0 ? fmin(0.04 * (repeated + 1), 0.7) : 0));
    put_sample(m, SAMPLE_FRESH,
               has_begun(m, VERDICT_DATA_REPEATS, step) ? 0 : has->fresh - 0.1 * dice_unit(d));
    bool is_noise = has_begun(m, VERDICT_REWARD_NOISE, step);
    double by_answer = has_begun(m, VERDICT_FOLLOWS_ANSWER, step) ? 0.9 : has->by_answer;
    put(m, sample_figure_names[SAMPLE_BY_PROMPT],
        (is_noise ? 0 : has->by_prompt) + 0.06 * dice_normal(d));
    put(m, sample_figure_names[SAMPLE_BY_ANSWER],
        (is_noise ? 0 : by_answer) + 0.08 * dice_normal(d));
    put_sample(m, SAMPLE_WIDE_ANSWERS, has->wide + 0.03 * dice_normal(d));
    put_sample(m, SAMPLE_WIDE_PROMPTS, wide + 0.03 * dice_normal(d));
}

/* What the samples of the step before say. */
static void feed_samples(struct making *m, int64_t step, struct metric_watch *w, struct training *t)
{
    m->n = 0;
    put_samples(m, step);
    const struct metric_record r = {
        .step = step, .v = m->v, .n = m->n, .attempt = 1, .is_made = true};
    metric_watch_add(w, &r);
    training_add(t, &r, w);
}

static void feed_step(struct making *m, int64_t step, struct metric_watch *w, struct training *t)
{
    m->n = 0;
    if (m->run->is_sft) {
        put_sft(m, step);
    } else {
        put_reward(m, step);
        put_policy(m, step);
        put_answers(m, step);
        put_prompts(m, step);
        put_critic(m, step);
    }
    put_memory(m, step);
    const struct metric_record r = {.step = step, .v = m->v, .n = m->n, .attempt = 1};
    metric_watch_add(w, &r);
    training_add(t, &r, w);
}

bool made_run_is_sft(enum verdict_kind fault)
{
    return fault == VERDICT_LOSS_JUMP || fault == VERDICT_LOSS_FLAT;
}

int64_t made_run_onset(enum verdict_kind fault, int64_t wanted)
{
    return fault == VERDICT_LOSS_FLAT || fault == VERDICT_REWARD_FULL || fault == VERDICT_WARMUP
               ? 1
               : wanted;
}

void made_run_feed(const struct made_run *run, struct training *t)
{
    struct making m = {.dice = {run->seed * 0x9e3779b97f4a7c15ULL + 1},
                       .of_samples = {run->seed * 0xd1342543de82ef95ULL + 1},
                       .of_rest = {run->seed * 0x2545f4914f6cdd1dULL + 1},
                       .run = run};
    struct metric_watch *w = metric_watch_new();
    const struct verdict_bounds bounds = {.gpu_gb = GPU_GB, .total = run->steps};
    verdict_set_bounds(t->verdict, &bounds);
    habits_roll(&m.dice, &m.is);
    sample_habits_roll(&m.of_samples, &m.has);
    if (run->fault == VERDICT_MEMORY)
        m.is.memory = 55;
    if (run->fault == VERDICT_REWARD_SINKS)
        m.is.reward_noise = fmin(m.is.reward_noise, 0.03);
    if (run->fault == VERDICT_REWARD_FULL)
        m.is.reward_noise = fmin(m.is.reward_noise, 0.01);
    if (run->fault == VERDICT_LENGTH_LIMIT)
        m.is.length = fmin(m.is.length, 500);
    for (int64_t step = 1; step <= run->steps; step++) {
        feed_step(&m, step, w, t);
        if (step > 1 && !run->is_sft)
            feed_samples(&m, step - 1, w, t);
    }
    metric_watch_free(w);
}

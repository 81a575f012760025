/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of training_figure.h: what each version calls a figure. */
#include "core/training/training_figure.h"

#include <math.h>
#include <string.h>

#include "base/str.h"
#include "base/unit.h"

static void look_at(const char *line, struct training_look *ret)
{
    struct metric_record r;
    assert_int_equal(metric_read_line(line, strlen(line), &r), METRIC_RECORD);
    training_look(&r, ret);
    metric_record_release(&r);
}

/* A line of each version as its trainer writes it, with the figures that it must give. */
static const struct {
    const char *version, *line;
    enum training_figure figures[12];
    size_t n;
} versions[] = {
    {"0.5.0",
     "step:3 - actor/entropy:4.5 - actor/pg_clipfrac:0.0 - actor/ppo_kl:0.0 - actor/grad_norm:0.79 "
     "- perf/max_memory_reserved_gb:1.5 - actor/lr:0.001 - critic/score/mean:0.07 - "
     "response_length/clip_ratio:0.9 - timing_s/gen:0.2 - timing_s/step:0.27",
     {TRAIN_ENTROPY, TRAIN_CLIPPED, TRAIN_PPO_KL, TRAIN_GRAD_NORM, TRAIN_GPU_MEMORY, TRAIN_REWARD,
      TRAIN_CUT, TRAIN_GEN, TRAIN_STEP},
     9},
    {"0.7.1",
     "step:3 - actor/entropy:4.5 - rollout_corr/kl:0.01 - rollout_corr/chi2_token:0.0 - "
     "training/rollout_probs_diff_mean:0.0001 - training/rollout_actor_probs_pearson_corr:0.99 - "
     "response/aborted_ratio:0.0 - timing_s/agent_loop/slowest/tool_calls:0.0 - "
     "timing_s/agent_loop/generate_sequences/max:0.9 - timing_s/update_weights:0.3 - "
     "critic/advantages/min:-1.0 - critic/score/mean:0.1 - timing_s/step:4.5",
     {TRAIN_GAP_KL, TRAIN_GAP_CHI2, TRAIN_PROBS_DIFF, TRAIN_PROBS_ALIKE, TRAIN_ABORTED,
      TRAIN_SLOWEST_TOOLS, TRAIN_SAMPLE_GEN_MAX, TRAIN_WEIGHTS, TRAIN_ADVANTAGE_MIN},
     9},
    {"0.8.0",
     "step:3 - actor/perf/max_memory_reserved_gb:2.0 - actor/perf/cpu_memory_used_gb:5.9 - "
     "timing_s/agent_loop/slowest/compute_score:0.1 - critic/score/mean:0.1 - timing_s/step:2.5",
     {TRAIN_GPU_MEMORY, TRAIN_HOST_MEMORY, TRAIN_SLOWEST_SCORE, TRAIN_STEP},
     4},
    {"0.9.1",
     "step:3 - training/off_policy/trajectory_staleness/max:np.int64(0) - "
     "training/off_policy/trajectory_staleness/mean:np.float64(0.0) - "
     "val-core/toy/digits/acc/mean@1:np.float64(1.0) - perf/throughput:505.5 - "
     "perf/total_num_tokens:1733 - timing_s/step:3.4",
     {TRAIN_STALENESS, TRAIN_STALENESS_MOST, TRAIN_VALIDATION, TRAIN_THROUGHPUT, TRAIN_TOKENS},
     5},
    {"0.9.1 SFT",
     "step:57 - perf/max_memory_reserved_gb:0.0 - train/loss:0.69 - train/grad_norm:1.1 - "
     "train/lr:0.003",
     {TRAIN_LOSS, TRAIN_GRAD_NORM, TRAIN_LEARNING_RATE},
     3},
};

static void knows_the_names_of_each_version(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_len(versions); i++) {
        struct training_look l;
        look_at(versions[i].line, &l);
        for (size_t k = 0; k < versions[i].n; k++) {
            if (!isfinite(l.v[versions[i].figures[k]]))
                print_message("verl %s: figure %d\n", versions[i].version,
                              (int)versions[i].figures[k]);
            assert_true(isfinite(l.v[versions[i].figures[k]]));
            assert_non_null(l.name[versions[i].figures[k]]);
        }
    }
}

static void prefers_the_first_name_and_tells_nothing_else(void **state)
{
    struct training_look l;
    (void)state;
    look_at("step:1 - perf/time_per_step:4.0 - timing_s/step:3.0 - x:1 - val-core/b/acc:0.2 - "
            "val-core/a/acc:0.1",
            &l);
    assert_true(l.v[TRAIN_STEP] < 3.5);
    assert_string_equal(l.name[TRAIN_STEP], "timing_s/step");
    assert_true(l.v[TRAIN_VALIDATION] < 0.15);
    assert_true(isnan(l.v[TRAIN_ENTROPY]));
    assert_null(l.name[TRAIN_ENTROPY]);
}

/* A record made by hand has its names in no order. */
static void reads_a_record_without_an_order(void **state)
{
    char step[] = "timing_s/step";
    struct metric_value v[] = {{step, 2}};
    const struct metric_record r = {.step = 1, .v = v, .n = 1};
    struct training_look l;
    (void)state;
    training_look(&r, &l);
    assert_true(l.v[TRAIN_STEP] > 1.5);
}

static void each_row_is_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < training_names_n; i++) {
        const struct training_name *n = &training_names[i];
        assert_true(*n->name && *n->since && n->unit && *n->meaning);
        assert_true(n->figure < TRAIN_VALIDATION);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(n->name, training_names[k].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_the_names_of_each_version),
        cmocka_unit_test(prefers_the_first_name_and_tells_nothing_else),
        cmocka_unit_test(reads_a_record_without_an_order),
        cmocka_unit_test(each_row_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

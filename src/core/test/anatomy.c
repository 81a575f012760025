/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of anatomy.h. */
#include "core/training/anatomy.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/said.h"
#include "base/unit.h"

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-6 * (1 + fabs(b));
}

static void feed(struct anatomy *a, const char *line)
{
    struct metric_record r;
    struct training_look look;
    assert_int_equal(metric_read_line(line, strlen(line), &r), METRIC_RECORD);
    training_look(&r, &look);
    anatomy_add(a, &r, &look);
    assert_null(anatomy_check(a));
    metric_record_release(&r);
}

static json_t *shown(const struct anatomy *a, double gpus)
{
    struct buf out = BUF_INIT(1 << 20);
    struct jout j = jout_begin(&out);
    json_t *o = NULL;
    assert_true(anatomy_to_json(a, gpus, &j, NULL));
    assert_int_equal(json_parse(out.data, out.len, out.max, &o, NULL), 0);
    buf_release(&out);
    return o;
}

/* Eight GPUs: tokens / (10 s x 8) = 100. */
#define STEP "timing_s/step:10.0 - perf/total_num_tokens:8000 - perf/throughput:100.0 - "

static void splits_a_step(void **state)
{
    struct anatomy *a = anatomy_new();
    struct anatomy_sums s;
    (void)state;
    feed(a,
         "step:1 - " STEP "timing_s/gen:4.0 - timing_s/reward:1.0 - timing_s/old_log_prob:0.5 - "
         "timing_s/ref:0.4 - timing_s/values:0.3 - timing_s/adv:0.2 - timing_s/update_actor:1.0 - "
         "timing_s/update_critic:0.6 - timing_s/update_weights:0.5 - "
         "timing_s/save_checkpoint:0.5 - timing_s/testing:0.6");
    anatomy_sum(a, 0, &s);
    static const double want[ANATOMY_STAGES] = {4,   0,   1,   0.5, 0.4, 0.3,
                                                0.2, 1.6, 0.5, 0.5, 0.6, 0.4};
    for (size_t i = 0; i < ANATOMY_STAGES; i++)
        assert_true(near(s.stage[i], want[i]));
    assert_true(near(s.seconds, 10));
    assert_true(near(s.ranks, 8));
    assert_false(s.overlaps);
    assert_true(near(s.bubble_hours, 8 * (1 + 0.5 + 0.4) / 3600)); /* reward, save, rest */
    assert_int_equal(s.n_levers, ANATOMY_LEVERS);
    assert_int_equal(s.levers[0].lever, ANATOMY_LEVER_REWARD);
    assert_true(near(s.levers[0].seconds, 1));
    assert_int_equal(s.levers[1].lever, ANATOMY_LEVER_VALIDATE);
    assert_true(isnan(s.slowest.seconds));
    assert_true(isnan(s.early_s));
    anatomy_free(a);
}

/* A tool that sleeps 20 s in one sample of 64 is that sample's, and all GPUs wait for it. */
static void names_the_sample_that_waits_for_its_tool(void **state)
{
    struct anatomy *a = anatomy_new();
    struct anatomy_sums s;
    (void)state;
    for (int i = 1; i <= 4; i++) {
        _cleanup_(freep) char *line = xasprintf(
            "step:%d - timing_s/step:30.0 - perf/total_num_tokens:24000 - "
            "perf/throughput:100.0 - timing_s/gen:%s - timing_s/update_actor:%s - "
            "timing_s/agent_loop/generate_sequences/mean:4.0 - "
            "timing_s/agent_loop/generate_sequences/max:5.0 - "
            "timing_s/agent_loop/slowest/generate_sequences:4.8 - "
            "timing_s/agent_loop/slowest/tool_calls:%s - "
            "timing_s/agent_loop/slowest/prompt_length:120 - "
            "timing_s/agent_loop/slowest/response_length:%d",
            i, i == 3 ? "25.0" : "5.2", i == 3 ? "5.0" : "24.8", i == 3 ? "20.0" : "0.2", 500 + i);
        feed(a, line);
    }
    anatomy_sum(a, 0, &s);
    assert_int_equal(s.slowest.step, 3);
    assert_true(near(s.slowest.tools, 20));
    assert_true(near(s.slowest.response_tokens, 503));
    assert_true(near(s.stage[ANATOMY_TOOLS], 20.6));
    size_t i = 0;
    while (i < s.n_levers && s.levers[i].lever != ANATOMY_LEVER_TOOLS)
        i++;
    assert_true(i < s.n_levers);
    /* The loss: 20 s of 8 GPUs, within 5 %. */
    assert_true(fabs(s.levers[i].seconds * 4 - 20) < 1);
    anatomy_free(a);
}

static void knows_steps_that_overlap(void **state)
{
    struct anatomy *a = anatomy_new();
    struct anatomy_sums s;
    (void)state;
    feed(a, "step:1 - " STEP "timing_s/gen:9.0 - timing_s/update_actor:8.0");
    anatomy_sum(a, 0, &s);
    assert_true(s.overlaps);
    assert_true(isnan(s.bubble_hours));
    assert_int_equal(s.n_levers, 0);
    json_t *o = shown(a, 0);
    assert_true(json_is_null(json_object_get(o, "bubble")));
    json_decref(o);
    anatomy_free(a);
}

/* Some versions count saving and validation beside the step. */
static void adds_what_is_counted_beside_the_step(void **state)
{
    struct anatomy *a = anatomy_new();
    struct anatomy_sums s;
    (void)state;
    feed(a, "step:1 - " STEP "timing_s/gen:6.0 - timing_s/update_actor:4.0 - "
            "timing_s/save_checkpoint:5.0");
    anatomy_sum(a, 0, &s);
    assert_false(s.overlaps);
    assert_true(near(s.seconds, 15));
    assert_true(near(s.stage[ANATOMY_REST], 0));
    anatomy_free(a);
}

static void keeps_a_long_run_in_few_rows(void **state)
{
    struct anatomy *a = anatomy_new();
    struct anatomy_row rows[ANATOMY_ROWS];
    struct anatomy_sums s;
    (void)state;
    feed(a, "step:0 - val-core/toy/acc/mean@1:0.5"); /* no step */
    for (int i = 1; i <= 1000; i++) {
        _cleanup_(freep) char *line = xasprintf(
            "step:%d - timing_s/step:%d - timing_s/gen:%d - timing_s/update_actor:2", i, 3 + i, i);
        feed(a, line);
    }
    size_t n = anatomy_rows(a, rows);
    assert_in_range(n, ANATOMY_ROWS / 2, ANATOMY_ROWS);
    assert_int_equal(rows[0].first, 1);
    assert_int_equal(rows[n - 1].last, 1000);
    anatomy_sum(a, 4, &s);
    assert_int_equal(s.steps, 1000);
    assert_true(near(s.ranks, 4)); /* the caller's */
    assert_true(s.late_s > 3 * s.early_s);
    assert_int_equal(s.grown, ANATOMY_GENERATE);
    assert_true(s.grown_s > 500);
    anatomy_free(a);
}

static void shows_it(void **state)
{
    struct anatomy *a = anatomy_new();
    struct buf out = BUF_INIT(1 << 10);
    struct jout j = jout_begin(&out);
    (void)state;
    assert_false(anatomy_to_json(a, 0, &j, NULL));
    buf_release(&out);
    feed(a, "step:1 - " STEP "timing_s/gen:5.0 - timing_s/reward:2.5 - timing_s/update_actor:2.5");
    json_t *o = shown(a, 0);
    assert_int_equal(json_get_int(o, "steps", 0), 1);
    const json_t *stages = json_get_array(o, "stages");
    assert_int_equal(json_array_size(stages), ANATOMY_STAGES);
    assert_string_equal(json_get_str(json_array_get(stages, 0), "stage", ""), "generate");
    assert_true(near(json_get_real(json_array_get(stages, 0), "share", 0), 0.5));
    assert_true(near(json_get_real(json_array_get(stages, 2), "median_share", 0), 0.25));
    const json_t *bubble = json_get_object(o, "bubble");
    assert_true(near(json_get_real(bubble, "share", 0), 0.25));
    assert_true(json_is_true(json_object_get(bubble, "at_least")));
    const json_t *lever = json_array_get(json_get_array(o, "levers"), 0);
    assert_string_equal(json_get_str(lever, "lever", ""), "reward");
    assert_string_equal(json_get_str(lever, "text", ""),
                        "the GPUs wait for the reward: at most 2.5 s of a step (25 %), 0.00556 "
                        "GPU-hours so far");
    said_in(o, MESSAGE_CHINESE);
    assert_string_equal(json_get_str(lever, "text", ""),
                        "GPU 在等待奖励：每步最多 2.5 秒（25 %），至今 0.00556 GPU 小时");
    const json_t *bar = json_array_get(json_get_array(o, "bars"), 0);
    assert_true(near(json_get_real(bar, "reward", 0), 2.5));
    json_decref(o);
    anatomy_free(a);
}

/* Without GPUs told, the sentence has no GPU-hours. */
static void says_no_hours_that_it_does_not_know(void **state)
{
    struct anatomy *a = anatomy_new();
    (void)state;
    feed(a, "step:1 - timing_s/step:10.0 - timing_s/gen:5.0 - timing_s/ref:5.0");
    json_t *o = shown(a, 0);
    const json_t *lever = json_array_get(json_get_array(o, "levers"), 0);
    assert_string_equal(json_get_str(lever, "text", ""),
                        "the reference model computes: at most 5 s of a step (50 %)");
    assert_true(json_is_null(json_object_get(lever, "gpu_hours")));
    assert_true(json_is_null(json_object_get(o, "bubble")));
    json_decref(o);
    anatomy_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits_a_step),
        cmocka_unit_test(names_the_sample_that_waits_for_its_tool),
        cmocka_unit_test(knows_steps_that_overlap),
        cmocka_unit_test(adds_what_is_counted_beside_the_step),
        cmocka_unit_test(keeps_a_long_run_in_few_rows),
        cmocka_unit_test(shows_it),
        cmocka_unit_test(says_no_hours_that_it_does_not_know),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

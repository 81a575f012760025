/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of metric_watch.h. */
#include "core/metric/metric_watch.h"

#include <math.h>
#include <string.h>

#include "base/unit.h"

/* One line of the console, as if it were read at this time (seconds) from this attempt. */
static void feed(struct metric_watch *w, int attempt, uint64_t at, const char *line)
{
    struct metric_record r;
    assert_int_equal(metric_read_line(line, strlen(line), &r), METRIC_RECORD);
    r.attempt = attempt;
    r.at = at * USEC_SEC;
    metric_watch_add(w, &r);
    metric_record_release(&r);
}

static void feed_reward(struct metric_watch *w, int step, double reward)
{
    _cleanup_(freep) char *line = xasprintf("step:%d - critic/score/mean:%g", step, reward);
    feed(w, 1, 1000, line);
}

static json_t *page(const struct metric_watch *w)
{
    struct buf out = BUF_INIT(1 << 20);
    struct jout j = jout_begin(&out);
    json_t *o = NULL;
    metric_watch_to_json(w, &j, NULL);
    assert_int_equal(json_parse(out.data, out.len, out.max, &o, NULL), 0);
    buf_release(&out);
    return o;
}

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-6;
}

static void tells_how_it_goes(void **state)
{
    (void)state;
    struct metric_watch *w = metric_watch_new();
    assert_int_equal(metric_watch_step(w), -1);
    metric_watch_set_total(w, 77, false);
    metric_watch_set_total(w, 30, true);
    metric_watch_set_total(w, 78, false); /* what is sure stays */
    feed(w, 1, 100, "step:0 - val-core/toy/acc/mean@1:0.1");
    for (int i = 1; i <= 10; i++) {
        _cleanup_(freep) char *line =
            xasprintf("step:%d - critic/score/mean:0.%d - timing_s/step:%d - "
                      "perf/total_num_tokens:1000 - perf/mfu/actor:0.4",
                      i, i, i == 1 ? 100 : 2);
        feed(w, 1, 100 + 2 * (uint64_t)i, line);
    }
    json_t *o = page(w);
    assert_int_equal(json_get_int(o, "step", 0), 10);
    assert_int_equal(json_get_int(o, "total_steps", 0), 30);
    assert_true(near(json_get_real(o, "progress", 0), 1.0 / 3));
    assert_true(
        near(json_get_real(o, "step_seconds", 0), 2)); /* the slow first step is one of ten */
    assert_true(near(json_get_real(o, "eta_s", 0), 40));
    assert_string_equal(json_get_str(o, "eta", ""), "1970-01-01T00:02:40.000Z");
    assert_true(near(json_get_real(o, "tokens_per_s", 0), 500));
    assert_true(near(json_get_real(o, "mfu", 0), 0.4));
    const json_t *reward = json_get_object(o, "reward");
    assert_string_equal(json_get_str(reward, "key", ""), "critic/score/mean");
    assert_true(near(json_get_real(reward, "value", 0), 0.1)); /* "0.10" */
    assert_int_equal(json_array_size(json_get_array(reward, "spark")), 10);
    assert_string_equal(json_get_str(json_get_object(o, "validation"), "key", ""),
                        "val-core/toy/acc/mean@1");
    assert_true(json_is_null(json_object_get(o, "loss")));
    assert_true(json_is_null(json_object_get(o, "not_finite")));
    assert_true(json_is_null(json_object_get(o, "collapse")));
    json_decref(o);
    metric_watch_free(w);
}

/* Attempt 1 had reached step 4; attempt 2 goes on behind step 2, and attempt 3 behind step 5. */
static void tells_what_is_run_again(void **state)
{
    static const struct {
        int attempt, step;
        bool redoes;
    } told[] = {{1, 1, false}, {1, 4, false}, {1, 4, false}, {2, 3, true}, {2, 4, true},
                {2, 5, false}, {2, 6, false}, {3, 6, true},  {3, 7, false}};
    (void)state;
    struct metric_watch *w = metric_watch_new();
    assert_false(metric_watch_redoes(w));
    for (size_t i = 0; i < array_len(told); i++) {
        _cleanup_(freep) char *line = xasprintf("step:%d - train/loss:1", told[i].step);
        feed(w, told[i].attempt, 1000 + i, line);
        assert_int_equal(metric_watch_redoes(w), told[i].redoes);
        feed(w, told[i].attempt, 1000 + i, "step:1 - val-core/toy/acc/mean@1:0.1");
        assert_int_equal(metric_watch_redoes(w), told[i].redoes); /* no step of training */
    }
    metric_watch_free(w);
}

static void measures_what_is_not_told(void **state)
{
    (void)state;
    struct metric_watch *w = metric_watch_new();
    for (int i = 1; i <= 200; i++) {
        _cleanup_(freep) char *line =
            xasprintf("step:%d - train/loss:1 - train/global_tokens:600", i);
        feed(w, 1, 1000 + 3 * (uint64_t)i, line);
    }
    assert_true(near(metric_watch_step_seconds(w), 3));
    json_t *o = page(w);
    assert_true(near(json_get_real(o, "tokens_per_s", 0), 200));
    assert_true(json_is_null(json_object_get(o, "eta")));
    assert_true(json_is_null(json_object_get(o, "progress")));
    assert_int_equal(json_get_int(json_get_object(o, "loss"), "value", 0), 1);
    assert_true(json_array_size(json_get_array(json_get_object(o, "loss"), "spark")) <= 64);
    json_decref(o);
    feed(w, 2, 999999, "step:201 - train/loss:1"); /* no pace from one record */
    assert_true(isnan(metric_watch_step_seconds(w)));
    metric_watch_free(w);
}

static void names_the_first_that_is_no_number(void **state)
{
    (void)state;
    struct metric_watch *w = metric_watch_new();
    feed(w, 1, 1, "step:1 - val-core/x/loss:nan - critic/vf_explained_var:nan - actor/pg_loss:1");
    json_t *o = page(w);
    assert_true(json_is_null(json_object_get(o, "not_finite")));
    json_decref(o);
    feed(w, 1, 2, "step:2 - actor/grad_norm:inf - actor/pg_loss:1");
    feed(w, 1, 3, "step:3 - actor/pg_loss:nan");
    o = page(w);
    assert_string_equal(json_get_str(json_get_object(o, "not_finite"), "key", ""),
                        "actor/grad_norm");
    assert_int_equal(json_get_int(json_get_object(o, "not_finite"), "step", 0), 2);
    struct metric_trouble t;
    metric_watch_trouble(w, &t);
    assert_int_equal(t.kinds, METRIC_NOT_FINITE);
    assert_string_equal(t.bad_key, "actor/grad_norm");
    assert_int_equal(t.bad_step, 2);
    assert_int_equal(metric_trouble_from_json(o), t.kinds);
    json_decref(o);
    metric_watch_free(w);
}

/* What came back was no illness, and an older attempt's is none of this one. */
static void tells_what_is_no_number_until_now(void **state)
{
    (void)state;
    struct metric_pace p;
    struct metric_watch *w = metric_watch_new();
    feed(w, 1, 1, "step:1 - actor/grad_norm:inf - actor/pg_loss:1");
    metric_watch_pace(w, &p);
    assert_string_equal(p.bad_key, "actor/grad_norm");
    feed(w, 1, 2, "step:2 - actor/grad_norm:1 - actor/pg_loss:nan");
    feed(w, 1, 3, "step:3 - critic/score/mean:0.5");
    metric_watch_pace(w, &p);
    assert_string_equal(p.bad_key, "actor/pg_loss");
    assert_int_equal(p.bad_step, 2);
    feed(w, 2, 4, "step:3 - critic/score/mean:0.5");
    metric_watch_pace(w, &p);
    assert_string_equal(p.bad_key, "");
    metric_watch_free(w);
}

static bool collapsed(const struct metric_watch *w)
{
    json_t *o = page(w);
    bool is = json_get_object(o, "collapse") != NULL;
    struct metric_trouble t;
    metric_watch_trouble(w, &t);
    assert_int_equal(metric_trouble_from_json(o), t.kinds);
    assert_int_equal(t.kinds, is ? METRIC_COLLAPSED : 0);
    json_decref(o);
    return is;
}

static void sees_a_reward_fall_back(void **state)
{
    (void)state;
    struct metric_watch *w = metric_watch_new();
    int step = 0;
    for (int i = 0; i < 30; i++)
        feed_reward(w, ++step, 0.1 + 0.02 * i);
    for (int i = 0; i < 7; i++)
        feed_reward(w, ++step, 0.1); /* a dip is none */
    feed_reward(w, ++step, 0.6);
    assert_false(collapsed(w));
    for (int i = 0; i < 8; i++)
        feed_reward(w, ++step, 0.05);
    assert_true(collapsed(w));
    metric_watch_free(w);
}

static void a_flat_or_rising_reward_is_fine(void **state)
{
    (void)state;
    struct metric_watch *flat = metric_watch_new(), *rising = metric_watch_new();
    for (int i = 1; i < 300; i++) {
        feed_reward(flat, i, 0.5 + (i % 7) * 0.004);
        feed_reward(rising, i, 0.001 * i + (i % 5) * 0.02);
    }
    assert_false(collapsed(flat));
    assert_false(collapsed(rising));
    metric_watch_free(flat);
    metric_watch_free(rising);
}

/* A reward of noise alone: a mean of eight that is higher by chance is no rise to fall back from.
 */
static void noise_is_no_collapse(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 20; seed++) {
        struct metric_watch *w = metric_watch_new();
        uint32_t dice = seed;
        for (int i = 1; i <= 400; i++) {
            dice = (dice * 1103515245u + 12345u) & 0x7fffffffu;
            feed_reward(w, i, 0.05 + 0.1 * (dice >> 16 & 0x3ff) / 1023);
        }
        assert_false(collapsed(w));
        metric_watch_free(w);
    }
}

static void a_restart_voids_what_it_runs_again(void **state)
{
    (void)state;
    struct metric_value v = {.name = (char[]){"a"}, .value = 1};
    struct metric_value check = {.name = (char[]){"val-core/x"}, .value = 1};
    struct metric_watch *w = metric_watch_new();
    for (int i = 1; i <= 12; i++) {
        const struct metric_record r = {.step = i, .attempt = 1, .v = &v, .n = 1};
        metric_watch_add(w, &r);
    }
    const struct metric_record again = {.step = 11, .attempt = 2, .v = &v, .n = 1};
    const struct metric_record validation = {.step = 10, .attempt = 2, .v = &check, .n = 1};
    const struct metric_record later = {.step = 13, .attempt = 2, .v = &v, .n = 1};
    assert_true(metric_watch_goes_back(w, &again) && metric_watch_goes_back(w, &validation));
    assert_false(metric_watch_goes_back(w, &later));
    /* Scores have no step: they make nothing void, nor hide that a later record does. */
    struct metric_value score = {.name = (char[]){"test_score/x"}, .value = 1};
    const struct metric_record scores = {.attempt = 2, .v = &score, .n = 1};
    assert_false(metric_watch_goes_back(w, &scores));
    metric_watch_add(w, &scores);
    assert_true(metric_watch_goes_back(w, &again));
    struct metric_record old = {.step = 10, .attempt = 1, .v = &v, .n = 1};
    assert_false(metric_is_void(&old, &validation)); /* the step that it goes on from */
    assert_false(metric_is_void(&old, &again));
    old.step = 11;
    assert_true(metric_is_void(&old, &again) && metric_is_void(&old, &validation));
    old.superseded = true;
    metric_watch_add(w, &old);
    json_t *o = page(w);
    assert_int_equal(json_get_int(o, "superseded", 0), 1);
    assert_int_equal(json_get_int(o, "step", 0), 12);
    json_decref(o);
    metric_watch_free(w);
}

static void knows_its_pace(void **state)
{
    (void)state;
    struct metric_watch *w = metric_watch_new();
    struct metric_pace p;
    metric_watch_pace(w, &p);
    assert_true(!p.attempt && !p.records && isnan(p.median_s) && isnan(p.longest_s));
    assert_true(isnan(p.reward) && !p.ends_at);
    metric_watch_set_total(w, 30, true);
    feed(w, 1, 90, "step:0 - val-core/toy/acc/mean@1:0.1");
    metric_watch_pace(w, &p);
    assert_int_equal(p.records, 0); /* a validation is no step */
    feed(w, 1, 100, "step:1 - critic/score/mean:0.1 - timing_s/step:2");
    feed(w, 1, 102, "step:2 - critic/score/mean:0.1 - timing_s/step:2");
    feed(w, 1, 162, "step:3 - critic/score/mean:0.1 - timing_s/step:2"); /* it validated between */
    metric_watch_pace(w, &p);
    assert_true(p.attempt == 1 && p.records == 3 && p.step == 3 && p.total == 30);
    assert_true(near(p.median_s, 2) && near(p.longest_s, 60) && near(p.reward, 0.1));
    assert_int_equal(p.ends_at / USEC_SEC, 162 + 27 * 2);
    feed(w, 2, 900, "step:4 - critic/score/mean:0.1");
    metric_watch_pace(w, &p);
    assert_true(p.attempt == 2 && p.records == 1 && isnan(p.longest_s));
    metric_watch_free(w);
}

/* As verl 0.9.1 tells it, and as 0.5.0, where the step has it. */
static void a_validation_is_no_wait_for_data(void **state)
{
    (void)state;
    struct metric_watch *w = metric_watch_new();
    feed(w, 1, 100, "step:1 - critic/score/mean:0.1 - timing_s/step:4");
    feed(w, 1, 166, "step:2 - critic/score/mean:0.1 - timing_s/step:4 - timing_s/testing:60");
    feed(w, 1, 229, "step:3 - critic/score/mean:0.1 - timing_s/step:4 - timing_s/testing:60");
    feed(w, 1, 296, "step:4 - critic/score/mean:0.1 - timing_s/step:64 - timing_s/testing:60");
    feed(w, 1, 301, "step:5 - critic/score/mean:0.1 - timing_s/step:4");
    json_t *o = page(w);
    const json_t *one = json_array_get(json_get_array(o, "attempts"), 0);
    assert_true(near(json_get_real(one, "between_s", 0), 2 - 1 + 3 + 1));
    json_decref(o);
    metric_watch_free(w);
}

static void sums_up_attempts(void **state)
{
    (void)state;
    struct metric_watch *w = metric_watch_new();
    struct metric_record r;
    static const char void_line[] = "step:3 - critic/score/mean:0.1 - timing_s/step:4";
    feed(w, 1, 100, "step:1 - critic/score/mean:0.1 - timing_s/step:4");
    feed(w, 1, 104,
         "step:2 - critic/score/mean:0.1 - timing_s/step:4 - timing_s/save_checkpoint:1");
    assert_int_equal(metric_read_line(void_line, strlen(void_line), &r), METRIC_RECORD);
    r.attempt = 1;
    r.superseded = true;
    metric_watch_add(w, &r);
    metric_record_release(&r);
    feed(w, 2, 200, "step:3 - critic/score/mean:0.1");
    feed(w, 2, 205, "step:4 - critic/score/mean:0.1"); /* no time is told: it came 5 s later */
    json_t *o = page(w);
    const json_t *all = json_get_array(o, "attempts");
    const json_t *one = json_array_get(all, 0), *two = json_array_get(all, 1);
    assert_int_equal(json_array_size(all), 2);
    assert_int_equal(json_get_int(one, "steps", 0), 3);
    assert_int_equal(json_get_int(one, "lost", 0), 1);
    assert_true(near(json_get_real(one, "good_s", 0), 8) &&
                near(json_get_real(one, "lost_s", 0), 4));
    assert_int_equal(json_get_int(one, "saves", 0), 1);
    assert_true(near(json_get_real(two, "good_s", 0), 5));
    json_decref(o);
    metric_watch_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_its_pace),
        cmocka_unit_test(sums_up_attempts),
        cmocka_unit_test(a_validation_is_no_wait_for_data),
        cmocka_unit_test(tells_how_it_goes),
        cmocka_unit_test(tells_what_is_run_again),
        cmocka_unit_test(measures_what_is_not_told),
        cmocka_unit_test(names_the_first_that_is_no_number),
        cmocka_unit_test(tells_what_is_no_number_until_now),
        cmocka_unit_test(sees_a_reward_fall_back),
        cmocka_unit_test(a_flat_or_rising_reward_is_fine),
        cmocka_unit_test(noise_is_no_collapse),
        cmocka_unit_test(a_restart_voids_what_it_runs_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

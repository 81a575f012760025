/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of verdict.h, on made runs. */
#include "core/training/verdict.h"

#include <math.h>
#include <string.h>

#include "base/message.h"
#include "base/said.h"
#include "base/unit.h"
#include "core/training/training.h"
#include "verdict_runs.h"

enum { HEALTHY = 100, SEEDS = 5, NEAR = 5 };

static json_t *shown(const struct training *t)
{
    struct buf out = BUF_INIT(1 << 20);
    struct jout j = jout_begin(&out);
    json_t *o = NULL;
    assert_true(verdict_to_json(t->verdict, &j, NULL));
    assert_int_equal(json_parse(out.data, out.len, out.max, &o, NULL), 0);
    buf_release(&out);
    return o;
}

static void is_quiet_on_healthy_runs(void **state)
{
    int alarms = 0;
    (void)state;
    for (int i = 0; i < HEALTHY; i++) {
        const struct made_run run = {.seed = 1000 + (uint64_t)i,
                                     .fault = VERDICT_KINDS,
                                     .steps = 40 + 3 * i,
                                     .is_sft = i % 10 == 9};
        struct training *t = training_new();
        made_run_feed(&run, t);
        struct verdict_item item;
        for (int k = 0; k < VERDICT_KINDS; k++)
            if (verdict_item(t->verdict, (enum verdict_kind)k, &item))
                print_message("seed %d: %s at %lld: %g, %g\n", 1000 + i,
                              verdict_kind_to_string(item.kind), (long long)item.onset, item.value,
                              item.base);
        alarms += verdict_seen(t->verdict) != 0;
        training_free(t);
    }
    assert_in_range(alarms, 0, HEALTHY / 50);
}

/* A few steps after its onset each fault is found, with the step at which it began. */
static void finds_what_is_wrong(enum verdict_kind kind, uint64_t seed)
{
    const struct made_run run = {.seed = seed,
                                 .fault = kind,
                                 .onset = made_run_onset(kind, 40 + (int64_t)(7 * seed % 30)),
                                 .steps = 120,
                                 .is_sft = made_run_is_sft(kind)};
    struct training *t = training_new();
    struct verdict_item item;
    made_run_feed(&run, t);
    bool is_seen = verdict_item(t->verdict, kind, &item);
    /* Validations come each tenth step, and one may be low by chance; a reward that fell is told of
     * once nothing is left of its rise, and a trend began where its line turned, about. */
    bool is_late = kind == VERDICT_REWARD_FELL || kind == VERDICT_MEMORY;
    int64_t near = kind == VERDICT_PARTED ? 4 * NEAR : is_late ? 2 * NEAR : NEAR;
    if (!is_seen || llabs(item.onset - run.onset) > near)
        print_message("%s of seed %d: onset %lld, told %lld\n", verdict_kind_to_string(kind),
                      (int)seed, (long long)run.onset, is_seen ? (long long)item.onset : -1);
    assert_true(is_seen);
    assert_true(llabs(item.onset - run.onset) <= near);
    assert_true(item.told >= item.onset);
    assert_true(item.certainty > 0 && item.certainty < 1);
    training_free(t);
}

static void finds_each_kind(void **state)
{
    (void)state;
    for (int k = 0; k < VERDICT_KINDS; k++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
            finds_what_is_wrong((enum verdict_kind)k, seed);
}

static void says_each_kind_in_both_languages(void **state)
{
    (void)state;
    for (int k = 0; k < VERDICT_KINDS; k++) {
        const struct made_run run = {.seed = 1,
                                     .fault = (enum verdict_kind)k,
                                     .onset = 40,
                                     .steps = 110,
                                     .is_sft = made_run_is_sft((enum verdict_kind)k)};
        struct training *t = training_new();
        char args[512];
        struct verdict_item item;
        made_run_feed(&run, t);
        assert_true(verdict_item(t->verdict, run.fault, &item));
        const char *code = verdict_message(&item, args, sizeof(args));
        for (int l = 0; l < MESSAGE_LANGUAGES; l++) {
            const struct message_listener to = {.language = (enum message_language)l};
            struct message_page page;
            message_page(code, args, &to, &page);
            assert_true(page.is_whole);
            assert_non_null(page.fix);
            message_page_release(&page);
        }
        training_free(t);
    }
}

static void shows_it(void **state)
{
    const struct made_run run = {.seed = 3, .fault = VERDICT_ABORTED, .onset = 50, .steps = 80};
    struct training *t = training_new();
    (void)state;
    made_run_feed(&run, t);
    json_t *o = shown(t);
    assert_string_equal(json_get_str(o, "state", ""), "bad");
    assert_string_equal(json_get_str(o, "kind", ""), "aborted");
    assert_string_equal(json_get_str(o, "text", ""),
                        "40 % of the answers were aborted since step 50");
    const json_t *item = json_array_get(json_get_array(o, "items"), 0);
    assert_true(json_is_true(json_object_get(item, "stands")));
    assert_int_equal(json_get_int(item, "step", 0), 50);
    assert_string_equal(json_get_str(item, "metric", ""), "response/aborted_ratio");
    assert_string_equal(json_get_str(item, "key", ""),
                        "actor_rollout_ref.rollout.gpu_memory_utilization");
    assert_int_equal(verdict_seen_from_json(o), verdict_kind_bit(VERDICT_ABORTED));
    said_in(o, MESSAGE_CHINESE);
    assert_string_equal(json_get_str(o, "text", ""), "从第 50 步起 40 % 的回答被中止");
    json_decref(o);
    training_free(t);
}

static void feed_line(struct training *t, struct metric_watch *w, const char *line)
{
    struct metric_record r;
    assert_int_equal(metric_read_line(line, strlen(line), &r), METRIC_RECORD);
    metric_watch_add(w, &r);
    training_add(t, &r, w);
    metric_record_release(&r);
}

/* Few steps are too few; and what nobody tells is not measured, the gap of zeros too. */
static void says_what_it_cannot_say(void **state)
{
    struct training *t = training_new();
    struct metric_watch *w = metric_watch_new();
    struct buf out = BUF_INIT(1 << 10);
    struct jout j = jout_begin(&out);
    (void)state;
    assert_false(verdict_to_json(t->verdict, &j, NULL));
    buf_release(&out);
    for (int i = 1; i <= 12; i++) {
        _cleanup_(freep) char *line =
            xasprintf("step:%d - critic/score/mean:0.%d - actor/entropy:1.0 - rollout_corr/kl:0.0",
                      i, i + 10);
        feed_line(t, w, line);
        if (i == 3) {
            json_t *o = shown(t);
            assert_string_equal(json_get_str(o, "state", ""), "early");
            assert_string_equal(json_get_str(o, "text", ""),
                                "3 steps are too few for a verdict: it begins with 10");
            assert_int_equal(json_array_size(json_get_array(o, "not_measured")), 0);
            json_decref(o);
        }
    }
    json_t *o = shown(t);
    assert_string_equal(json_get_str(o, "state", ""), "fine");
    assert_string_equal(json_get_str(o, "text", ""), "nothing wrong is seen in 12 steps");
    assert_true(verdict_blind(t->verdict) >> VERDICT_BLIND_GAP & 1);
    assert_false(verdict_blind(t->verdict) >> VERDICT_BLIND_ENTROPY & 1);
    assert_int_equal(json_array_size(json_get_array(o, "not_measured")), 6);
    json_decref(o);
    metric_watch_free(w);
    training_free(t);
}

/* VERDICT_KINDS: nothing wrong is seen. */
static enum verdict_kind worst_of(const struct verdict *v)
{
    struct verdict_item item;
    for (int k = 0; k < VERDICT_KINDS; k++)
        if (verdict_item(v, (enum verdict_kind)k, &item) && item.stands)
            return item.kind;
    return VERDICT_KINDS;
}

/* What holds no more is over after ten steps, and told still. */
static void lets_go_of_what_is_over(void **state)
{
    struct training *t = training_new();
    struct metric_watch *w = metric_watch_new();
    struct verdict_item item;
    (void)state;
    for (int i = 1; i <= 60; i++) {
        _cleanup_(freep) char *line = xasprintf("step:%d - critic/score/mean:0.%d - "
                                                "response/aborted_ratio:%s",
                                                i, i + 10, i >= 20 && i < 30 ? "0.5" : "0.0");
        feed_line(t, w, line);
        if (i == 29)
            assert_int_equal(worst_of(t->verdict), VERDICT_ABORTED);
    }
    assert_int_equal(worst_of(t->verdict), VERDICT_KINDS);
    assert_true(verdict_item(t->verdict, VERDICT_ABORTED, &item));
    assert_false(item.stands);
    assert_int_equal(item.onset, 20);
    assert_in_range(item.ended, 36, 44);
    json_t *o = shown(t);
    assert_string_equal(json_get_str(o, "state", ""), "fine");
    assert_int_equal(json_array_size(json_get_array(o, "items")), 1);
    json_decref(o);
    metric_watch_free(w);
    training_free(t);
}

static void has_words(void **state)
{
    (void)state;
    for (int k = 0; k < VERDICT_KINDS; k++)
        assert_int_equal(verdict_kind_from_string(verdict_kind_to_string((enum verdict_kind)k)), k);
    assert_int_equal(verdict_kind_from_string("none"), VERDICT_KINDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_quiet_on_healthy_runs),
        cmocka_unit_test(finds_each_kind),
        cmocka_unit_test(says_each_kind_in_both_languages),
        cmocka_unit_test(shows_it),
        cmocka_unit_test(says_what_it_cannot_say),
        cmocka_unit_test(lets_go_of_what_is_over),
        cmocka_unit_test(has_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

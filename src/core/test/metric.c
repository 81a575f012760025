/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of metric.h: a line of each form, and lines that are none. */
#define _GNU_SOURCE
#include "core/metric/metric.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/unit.h"

static enum metric_line read_text(const char *line, struct metric_record *ret)
{
    *ret = (struct metric_record){0};
    return metric_read_line(line, strlen(line), ret);
}

static void assert_value(const struct metric_record *r, const char *name, double want)
{
    assert_true(fabs(metric_value(r, name) - want) < 1e-12);
}

#define ACTOR "\033[36m(TaskRunner pid=970, ip=10.0.0.2)\033[0m "

static void reads_the_console(void **state)
{
    (void)state;
    struct metric_record r;
    assert_int_equal(read_text(ACTOR "step:12 - actor/lr:1e-06 - critic/score/mean:0.5 - "
                                     "val-core/openai/gsm8k: a - b/acc/mean@1:1_000 - done:True",
                               &r),
                     METRIC_RECORD);
    assert_int_equal(r.step, 12);
    assert_int_equal(r.n, 4); /* the part without a number is none */
    assert_value(&r, "actor/lr", 1e-6);
    assert_value(&r, "critic/score/mean", 0.5);
    assert_value(&r, "b/acc/mean@1", 1000);
    assert_value(&r, "done", 1);
    metric_record_release(&r);
}

static void reads_numpy(void **state)
{
    (void)state;
    struct metric_record r;
    assert_int_equal(read_text("step:0 - num_turns/min:np.int32(2) - "
                               "val-core/toy/acc/mean@1:np.float64(0.25) - x:np.float64(nan)",
                               &r),
                     METRIC_RECORD);
    assert_value(&r, "num_turns/min", 2);
    assert_value(&r, "val-core/toy/acc/mean@1", 0.25);
    assert_true(isnan(metric_value(&r, "x")) && r.n == 3);
    assert_true(metric_is_training(&r));
    metric_record_release(&r);
}

static void reads_behind_a_progress_bar(void **state)
{
    (void)state;
    struct metric_record r;
    assert_int_equal(read_text("\rEpoch 1/3:  80%|███| 16/20 [00:11<00:02, 1.98it/s]step:57 - "
                               "train/loss:0.69 - train/total_tokens(B):4.96e-07 [repeated 2x "
                               "across cluster]\rEpoch 1/3:  85% - x:1",
                               &r),
                     METRIC_RECORD);
    assert_int_equal(r.step, 57);
    assert_int_equal(r.n, 2);
    assert_value(&r, "train/loss", 0.69);
    assert_value(&r, "train/total_tokens(B)", 4.96e-7);
    metric_record_release(&r);
}

static void reads_what_is_no_number(void **state)
{
    (void)state;
    struct metric_record r;
    assert_int_equal(read_text("step:3 - a:nan - b:inf - c:-inf - d:2", &r), METRIC_RECORD);
    assert_true(isnan(metric_value(&r, "a")));
    assert_true(isinf(metric_value(&r, "b")) && isinf(metric_value(&r, "c")));
    assert_value(&r, "d", 2);
    metric_record_release(&r);
}

static void reads_verls_file(void **state)
{
    (void)state;
    struct metric_record r;
    assert_int_equal(read_text("{\"step\":20,\"data\":{\"val/loss\":0.75,\"actor/grad_norm\":null,"
                               "\"deep\":{\"er\":1}}}",
                               &r),
                     METRIC_RECORD);
    assert_int_equal(r.step, 20);
    assert_value(&r, "val/loss", 0.75);
    assert_value(&r, "deep/er", 1);
    assert_true(isnan(metric_value(&r, "actor/grad_norm")) && r.n == 3);
    metric_record_release(&r);
}

static void reads_plain_json(void **state)
{
    (void)state;
    struct metric_record r;
    const char *line = "(train pid=7) {\"global_step\": 5, \"loss\": NaN, \"note\": \"NaN \\\" "
                       "{\", \"lr\": -Infinity,"
                       " \"ok\": true, \"list\": [1]}";
    assert_int_equal(read_text(line, &r), METRIC_RECORD);
    assert_int_equal(r.step, 5);
    assert_true(isnan(metric_value(&r, "loss")) && isinf(metric_value(&r, "lr")));
    assert_value(&r, "ok", 1);
    assert_int_equal(r.n, 3);
    metric_record_release(&r);
}

static void reads_the_total_of_plain_json(void **state)
{
    (void)state;
    struct metric_record r;
    assert_int_equal(read_text("{\"step\": 5, \"total_steps\": 90, \"loss\": 1}", &r),
                     METRIC_RECORD);
    assert_int_equal(r.total, 90);
    assert_int_equal(r.n, 1);
    metric_record_release(&r);
    assert_int_equal(read_text("{\"step\": 5, \"max_steps\": -1, \"loss\": 1}", &r), METRIC_RECORD);
    assert_int_equal(r.total, 0);
    metric_record_release(&r);
    assert_int_equal(read_text("{\"step\": 5, \"total_steps\": 90}", &r), METRIC_NOTHING);
}

static void reads_the_total(void **state)
{
    (void)state;
    struct metric_record r;
    assert_int_equal(read_text(ACTOR "INFO:2026-01-01 04:20:00,041:Total training steps: 30", &r),
                     METRIC_TOTAL);
    assert_int_equal(r.step, 30);
    assert_int_equal(read_text("Total steps: 200, num_warmup_steps: 0", &r), METRIC_TOTAL_MAYBE);
    assert_int_equal(r.step, 200);
    assert_int_equal(read_text("Total training steps: ", &r), METRIC_NOTHING);
    assert_int_equal(read_text("Total steps: 9", &r), METRIC_NOTHING);
}

static void passes_over_the_rest(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "",
        "step",
        "step:",
        "step:1",
        "step:1 - ",
        "step:1 - no number: here",
        "step:x - a:1",
        "global_step:12 - a:1",
        "step:12345678901234567890 - a:1",
        "local_global_step_folder: /x/global_step_10",
        "{\"step\":1}",
        "{\"step\":-1,\"a\":1}",
        "{\"step\":\"1\",\"a\":1}",
        "{\"step\":1,\"a\":1",
        "{\"step\":1,\"data\":{\"text\":\"x\"}}",
        "x{\"step\":1,\"a\":1}",
        "config={\"step\":1,\"a\":1}",
        "log({\"step\":1,\"a\":1})",
        "[{\"step\":1,\"a\":1}]",
        "\"{\"step\":1,\"a\":1}\"",
    };
    for (size_t i = 0; i < array_len(lines); i++) {
        struct metric_record r;
        assert_int_equal(read_text(lines[i], &r), METRIC_NOTHING);
        assert_null(r.v);
    }
}

static void reads_json_behind_anything(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "{\"step\":3,\"loss\":0.5}",
        "  {\"step\":3,\"loss\":0.5}",
        " 12%|#2  | 3/24 [00:03<00:21,  1.1it/s]{\"step\":3,\"loss\":0.5}",
        "\r100%|####| 3/3\r{\"step\":3,\"loss\":0.5}",
        "INFO:root:{\"step\":3,\"loss\":0.5}",
        "2026-01-01 | INFO | {\"step\":3,\"loss\":0.5} | done",
        "\033[32mINFO\033[0m>{\"step\":3,\"loss\":0.5}",
        "{\"event\":\"begin\"} {\"step\":3,\"loss\":0.5}",
        "{half {\"step\":3,\"loss\":0.5}",
        "{\"step\":3,\"loss\":0.5,\"text\":\"\\ud83d \\u0000\"}",
        "{\"step\":3,\"loss\":0.5,\"text\":\"\xff\xfe\"}",
        "{\"step\":3.0,\"loss\":9,\"loss\":0.5}",
    };
    for (size_t i = 0; i < array_len(lines); i++) {
        struct metric_record r;
        assert_int_equal(read_text(lines[i], &r), METRIC_RECORD);
        assert_int_equal(r.step, 3);
        assert_int_equal(r.n, 1);
        assert_int_equal(r.n_unread, 0);
        assert_value(&r, "loss", 0.5);
        metric_record_release(&r);
    }
}

static void a_value_that_is_none_costs_itself(void **state)
{
    (void)state;
    struct metric_record r, back;
    struct buf out = BUF_INIT(1 << 12);
    assert_int_equal(read_text("{\"step\":7,\"big\":1e999,\"huge\":99999999999999999999,"
                               "\"a \\\"b\":tensor(1.0, device='cuda'),\"c\":?,\"loss\":2}",
                               &r),
                     METRIC_RECORD);
    assert_int_equal(r.step, 7);
    assert_int_equal(r.n_unread, 2);
    assert_string_equal(r.unread, "a \"b");
    assert_true(isinf(metric_value(&r, "big")) && metric_value(&r, "huge") > 9e19);
    assert_value(&r, "loss", 2);
    metric_record_to_json(&r, &out); /* argusd reads it again after a restart */
    assert_int_equal(metric_read_line(out.data, out.len - 1, &back), METRIC_RECORD);
    assert_string_equal(back.unread, "a \"b");
    assert_int_equal(back.n_unread, 2);
    assert_value(&back, "loss", 2);
    metric_record_release(&r);
    metric_record_release(&back);
    assert_int_equal(read_text("{\"step\":7,\"loss\":tensor(1.0)}", &r), METRIC_RECORD);
    assert_int_equal(r.step, 7); /* the step at least */
    assert_int_equal(r.n, 0);
    metric_record_release(&r);
    buf_release(&out);
}

static void ceilings_hold(void **state)
{
    (void)state;
    struct metric_record r;
    struct buf line = BUF_INIT(METRIC_LINE_MAX + 10);
    (void)buf_adds(&line, "step:1"); /* all of this fits */
    for (int i = 0; i < METRIC_VALUES_MAX + 7; i++)
        (void)buf_addf(&line, " - key%d:%d", i, i);
    (void)buf_addf(&line, " - %0300d:1 - key0:5", 0);
    assert_int_equal(metric_read_line(line.data, line.len, &r), METRIC_RECORD);
    assert_int_equal(r.n, METRIC_VALUES_MAX);
    assert_int_equal(r.left_out, 8);
    assert_value(&r, "key0", 5); /* the last one of a name */
    metric_record_release(&r);
    while (line.len <= METRIC_LINE_MAX)
        (void)buf_addc(&line, ' ');
    assert_int_equal(metric_read_line(line.data, line.len, &r), METRIC_NOTHING);
    buf_release(&line);
}

static void a_record_has_many_values(void **state)
{
    enum { VALUES = 1500 };
    (void)state;
    struct metric_record r;
    struct buf line = BUF_INIT(METRIC_LINE_MAX);
    (void)buf_adds(&line, "{\"step\":3,\"layer\":0,\"layer/\":1"); /* all of this fits */
    for (int twice = 0; twice < 2; twice++)
        for (int i = VALUES; i-- > 2;) /* not in the order of the names */
            (void)buf_addf(&line, ",\"layer/%d\":%d", i, twice ? i : -1);
    (void)buf_addc(&line, '}');
    assert_int_equal(metric_read_line(line.data, line.len, &r), METRIC_RECORD);
    assert_int_equal(r.n, VALUES);
    assert_int_equal(r.left_out, 0);
    assert_string_equal(r.v[2].name, "layer/1499"); /* as they came */
    assert_value(&r, "layer", 0);
    assert_value(&r, "layer/", 1);
    for (int i = 2; i < VALUES; i++)
        assert_true(r.v[i].value > 1.5); /* the last one of a name */
    assert_value(&r, "layer/77", 77);
    metric_record_release(&r);
    buf_release(&line);
}

static void is_written_and_read_back(void **state)
{
    (void)state;
    struct metric_record r, back;
    struct buf out = BUF_INIT(1 << 16);
    assert_int_equal(read_text("step:7 - a b/\"c\":0.1 - loss:nan", &r), METRIC_RECORD);
    r.attempt = 2;
    r.offset = 1ULL << 40;
    r.at = 1796000000123456; /* now, in microseconds: beyond what a step may be */
    r.total = 30;
    r.from_log = r.is_made = r.superseded = true;
    metric_record_to_json(&r, &out);
    assert_int_equal(out.data[out.len - 1], '\n');
    assert_int_equal(metric_read_line(out.data, out.len - 1, &back), METRIC_RECORD);
    assert_int_equal(back.step, 7);
    assert_int_equal(back.attempt, 2);
    assert_true(back.offset == r.offset && back.at == r.at && back.total == 30);
    assert_true(back.from_log && back.is_made && back.superseded);
    assert_value(&back, "a b/\"c\"", 0.1);
    assert_true(isnan(metric_value(&back, "loss")) && back.n == 2);
    metric_record_release(&r);
    metric_record_release(&back);
    buf_release(&out);
}

static void a_key_may_look_like_a_line(void **state)
{
    (void)state;
    struct metric_record r;
    assert_int_equal(read_text("{\"step\":1,\"data\":{\"x step:3 - a:2 - \":1,"
                               "\"Total training steps: 9\":2}}",
                               &r),
                     METRIC_RECORD);
    assert_int_equal(r.step, 1);
    assert_int_equal(r.n, 2);
    metric_record_release(&r);
}

static void knows_a_validation(void **state)
{
    (void)state;
    struct metric_record r;
    assert_int_equal(read_text("step:0 - val-core/x:1 - val-aux/y:2 - val/loss:3", &r),
                     METRIC_RECORD);
    assert_false(metric_is_training(&r));
    metric_record_release(&r);
}

static void reads_the_scores_of_an_eval(void **state)
{
    (void)state;
    struct metric_record r;
    assert_int_equal(read_text("{'test_score/openai/gsm8k': np.float64(0.25), "
                               "\"test_score/it's\": 1, 'test_score/a, {b}: c': nan}",
                               &r),
                     METRIC_RECORD);
    assert_int_equal(r.step, 0);
    assert_int_equal(r.n, 3);
    assert_value(&r, "test_score/openai/gsm8k", 0.25);
    assert_value(&r, "test_score/it's", 1);
    assert_true(isnan(metric_value(&r, "test_score/a, {b}: c")));
    assert_false(metric_is_training(&r) || metric_has_step(&r));
    metric_record_release(&r);
    /* Behind a bar that did not end its line; a name that looks like a line of the console. */
    assert_int_equal(read_text("100%|##| 20/20 [00:47<00:00, 2.36s/it]"
                               "{'test_score/step:7 - x:2': 0.5, 'test_score/\\'': array(1, 2)}  ",
                               &r),
                     METRIC_RECORD);
    assert_int_equal(r.step, 0);
    assert_int_equal(r.n, 1);
    assert_value(&r, "test_score/step:7 - x:2", 0.5);
    assert_int_equal(r.n_unread, 1);
    assert_string_equal(r.unread, "test_score/'");
    metric_record_release(&r);
    static const char *const others[] = {
        "test_score/x: 0.5",          "'test_score/x': 0.5",
        "{'test_score/x': 0.5",       "{'test_score/x",
        "{'test_score/x': 0.5} more", "{'test_score/x': 0.5, 'loss': 1}",
        "f({'test_score/x': 0.5})",   "{'loss': 1, 'test_score/x': 0.5}",
        "{'test_score/x': (0.5}",     "{'test_score/x' 0.5}",
    };
    for (size_t i = 0; i < array_len(others); i++)
        assert_int_equal(read_text(others[i], &r), METRIC_NOTHING);
    /* With a step it is a line of JSON as any other. */
    assert_int_equal(read_text("{\"test_score/x\": 0.5, \"step\": 3}", &r), METRIC_RECORD);
    assert_int_equal(r.step, 3);
    metric_record_release(&r);
}

static void finds_what_may_be_a_line(void **state)
{
    (void)state;
    static const char text[] = "the first list, {'test_score/x': 1}";
    assert_ptr_equal(metric_find(text, strlen(text)), strstr(text, "st_score/"));
    assert_null(metric_find(text, strlen("the first list, {'test_score")));
    assert_non_null(metric_find("stst step", 9));
    assert_null(metric_find("list of ste", 11));
    assert_null(metric_find("st", 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_console),
        cmocka_unit_test(reads_numpy),
        cmocka_unit_test(reads_behind_a_progress_bar),
        cmocka_unit_test(reads_what_is_no_number),
        cmocka_unit_test(reads_verls_file),
        cmocka_unit_test(reads_plain_json),
        cmocka_unit_test(reads_the_total_of_plain_json),
        cmocka_unit_test(reads_the_total),
        cmocka_unit_test(passes_over_the_rest),
        cmocka_unit_test(reads_json_behind_anything),
        cmocka_unit_test(a_value_that_is_none_costs_itself),
        cmocka_unit_test(ceilings_hold),
        cmocka_unit_test(a_record_has_many_values),
        cmocka_unit_test(is_written_and_read_back),
        cmocka_unit_test(knows_a_validation),
        cmocka_unit_test(reads_the_scores_of_an_eval),
        cmocka_unit_test(finds_what_may_be_a_line),
        cmocka_unit_test(a_key_may_look_like_a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

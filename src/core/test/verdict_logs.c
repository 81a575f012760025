/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of training.h on whole logs of the console (tests/golden/training): the lines as verl
 * prints them, read as a job's are. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/unit.h"
#include "core/training/training.h"

static struct training *training_of_log(const char *name)
{
    _cleanup_(freep) char *path = xasprintf("%s/training/%s", GOLDEN_DIR, name);
    struct training *t = training_new();
    struct metric_watch *w = metric_watch_new();
    struct metric_record r;
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    while ((n = getline(&line, &room, f)) > 0) {
        n -= line[n - 1] == '\n';
        if (metric_read_line(line, (size_t)n, &r) != METRIC_RECORD)
            continue;
        metric_watch_add(w, &r);
        training_add(t, &r, w);
        metric_record_release(&r);
    }
    free(line);
    (void)fclose(f);
    metric_watch_free(w);
    return t;
}

static struct anatomy_sums sums_of(const struct training *t)
{
    struct anatomy_sums s;
    anatomy_sum(t->anatomy, 0, &s);
    return s;
}

static void says_nothing_of_healthy_logs(void **state)
{
    static const char *const names[] = {"healthy-grpo-0.5.0.log", "healthy-grpo-0.9.1.log",
                                        "healthy-sft-0.9.1.log", "tool-sleeps-grpo-0.5.0.log"};
    (void)state;
    for (size_t i = 0; i < array_len(names); i++) {
        struct training *t = training_of_log(names[i]);
        for (int k = 0; k < VERDICT_KINDS; k++)
            if (verdict_seen(t->verdict) & verdict_kind_bit((enum verdict_kind)k))
                fail_msg("%s: %s", names[i], verdict_kind_to_string((enum verdict_kind)k));
        struct buf out = BUF_INIT(1 << 16);
        struct jout j = jout_begin(&out);
        json_t *o = NULL;
        assert_true(verdict_to_json(t->verdict, &j, NULL));
        assert_int_equal(json_parse(out.data, out.len, out.max, &o, NULL), 0);
        assert_string_equal(json_get_str(o, "state", ""), "fine"); /* all steps were read */
        json_decref(o);
        buf_release(&out);
        training_free(t);
    }
}

static void names_what_is_wrong_in_a_log(void **state)
{
    struct training *t = training_of_log("aborted-grpo-0.9.1.log");
    struct verdict_item item;
    (void)state;
    assert_true(verdict_seen(t->verdict) == verdict_kind_bit(VERDICT_ABORTED));
    assert_true(verdict_item(t->verdict, VERDICT_ABORTED, &item));
    assert_int_equal(item.onset, 16);
    assert_true(fabs(item.value - 0.375) < 1e-9);
    training_free(t);
}

/* One tool slept for 20 s in one sample of one step: its step and its length are named, and what it
 * cost within 5 %. */
static void names_the_sample_whose_tool_slept(void **state)
{
    struct training *t = training_of_log("tool-sleeps-grpo-0.5.0.log");
    struct anatomy_sums s = sums_of(t);
    double lost = 0;
    (void)state;
    assert_int_equal(s.steps, 40);
    assert_int_equal(s.slowest.step, 23);
    assert_true(fabs(s.slowest.tools - 20.3) < 1e-6);
    assert_true(fabs(s.slowest.response_tokens - 431) < 1e-6);
    for (size_t i = 0; i < s.n_levers; i++)
        if (s.levers[i].lever == ANATOMY_LEVER_TOOLS)
            lost = s.levers[i].seconds * (double)s.steps;
    assert_true(fabs(lost - 20) < 1);
    assert_true(fabs(s.ranks - 8) < 1e-9);
    training_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_nothing_of_healthy_logs),
        cmocka_unit_test(names_what_is_wrong_in_a_log),
        cmocka_unit_test(names_the_sample_whose_tool_slept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The text that Prometheus scrapes: escapes, empty labels, whole numbers, histograms. */
#include "http/expo.h"
#include "base/unit.h"

static void samples(void **state)
{
    (void)state;
    struct buf out = BUF_INIT(4096);
    struct expo e = {.out = &out, .prefix = "argus_"};
    expo_family(&e, EXPO_GAUGE, "jobs", "Jobs by state.");
    EXPO_PUT(&e, 3, {"state", "QUEUED"});
    EXPO_PUT(&e, 0.25, {"state", "a\"b\\c\nd"}, {"pool", ""});
    expo_one(&e, EXPO_COUNTER, "sent_bytes_total", "Bytes sent.", 1e14);
    assert_string_equal(buf_str(&out), "# HELP argus_jobs Jobs by state.\n"
                                       "# TYPE argus_jobs gauge\n"
                                       "argus_jobs{state=\"QUEUED\"} 3\n"
                                       "argus_jobs{state=\"a\\\"b\\\\c\\nd\",pool=\"none\"} 0.25\n"
                                       "# HELP argus_sent_bytes_total Bytes sent.\n"
                                       "# TYPE argus_sent_bytes_total counter\n"
                                       "argus_sent_bytes_total 100000000000000\n");
    buf_release(&out);
}

static void histogram(void **state)
{
    (void)state;
    static const usec_t bounds[] = {1000, 500000};
    struct expo_spans s = {.bounds = bounds, .n = 2};
    struct buf out = BUF_INIT(4096);
    struct expo e = {.out = &out, .prefix = ""};
    expo_spans_add(&s, 1000);
    expo_spans_add(&s, 1001);
    expo_spans_add(&s, 2000000);
    expo_family(&e, EXPO_HISTOGRAM, "pass_seconds", "A pass.");
    expo_spans_put(&e, &s, (const struct expo_label[]){{"pool", "a"}}, 1);
    assert_string_equal(buf_str(&out), "# HELP pass_seconds A pass.\n"
                                       "# TYPE pass_seconds histogram\n"
                                       "pass_seconds_bucket{pool=\"a\",le=\"0.001\"} 1\n"
                                       "pass_seconds_bucket{pool=\"a\",le=\"0.5\"} 2\n"
                                       "pass_seconds_bucket{pool=\"a\",le=\"+Inf\"} 3\n"
                                       "pass_seconds_sum{pool=\"a\"} 2.002001\n"
                                       "pass_seconds_count{pool=\"a\"} 3\n");
    buf_release(&out);
}

static void too_long(void **state)
{
    (void)state;
    struct buf out = BUF_INIT(40);
    struct expo e = {.out = &out, .prefix = "argus_"};
    for (int i = 0; i < 3; i++)
        expo_one(&e, EXPO_GAUGE, "ray_up", "1 while Ray answers.", 1);
    assert_true(out.failed);
    assert_true(out.len <= 40);
    buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples),
        cmocka_unit_test(histogram),
        cmocka_unit_test(too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of metric_alarm.h. */
#include "core/training/metric_alarm.h"

#include <math.h>
#include <string.h>

#include "base/unit.h"

static struct metric_alarms *alarms_of(const char *first, const char *second)
{
    struct strv texts = {0};
    strv_add(&texts, first);
    if (second)
        strv_add(&texts, second);
    struct metric_alarms *as = metric_alarms_new(&texts, NULL);
    strv_release(&texts);
    return as;
}

static void feed(struct metric_alarms *as, int64_t step, const char *name, double value)
{
    struct metric_value v = {(char *)(uintptr_t)name, value}; /* only read */
    const struct metric_record r = {.step = step, .v = &v, .n = 1};
    metric_alarms_add(as, &r);
}

static bool stands(const struct metric_alarms *as, size_t i)
{
    struct metric_alarm a;
    metric_alarms_get(as, i, &a);
    return a.stands;
}

static void holds_for_so_many_steps(void **state)
{
    struct metric_alarms *as = alarms_of("x < 0.5 for 3 steps", "nobody understands this");
    struct metric_alarm a;
    (void)state;
    assert_int_equal(metric_alarms_count(as), 1); /* the other is left out */
    for (int i = 1; i <= 2; i++)
        feed(as, i, "x", 0.4);
    assert_false(stands(as, 0));
    feed(as, 3, "other", 9); /* steps that told it count */
    feed(as, 4, "x", 0.3);
    assert_true(stands(as, 0));
    metric_alarms_get(as, 0, &a);
    assert_int_equal(a.step, 1);
    assert_string_equal(a.metric, "x");
    assert_true(fabs(a.value - 0.3) < 1e-12);
    feed(as, 5, "x", NAN); /* no number is not below anything */
    assert_false(stands(as, 0));
    assert_int_equal(metric_alarms_seen(as), 1);
    metric_alarms_free(as);
}

static void measures_from_best_and_first(void **state)
{
    struct metric_alarms *as = alarms_of("v/* falls 20 % from best", "v/a rises 50 % from first");
    struct metric_alarm a;
    (void)state;
    feed(as, 1, "v/a", 0.4);
    feed(as, 2, "v/b", 1);
    feed(as, 3, "v/a", 0.5);
    feed(as, 4, "v/a", 0.41);
    assert_false(stands(as, 0));
    feed(as, 5, "v/a", 0.4);
    assert_true(stands(as, 0));
    metric_alarms_get(as, 0, &a);
    assert_string_equal(a.metric, "v/a");
    assert_true(fabs(a.from - 0.5) < 1e-12);
    assert_false(stands(as, 1));
    feed(as, 6, "v/a", 0.6);
    assert_true(stands(as, 1));
    assert_false(stands(as, 0));
    metric_alarms_free(as);
}

static void knows_what_is_no_number(void **state)
{
    struct metric_alarms *as = alarms_of("loss is nan", NULL);
    (void)state;
    feed(as, 1, "loss", 1);
    assert_false(stands(as, 0));
    feed(as, 2, "loss", INFINITY);
    assert_true(stands(as, 0));
    metric_alarms_free(as);
}

static void passes_over_what_was_run_again(void **state)
{
    struct metric_alarms *as = alarms_of("x > 1", NULL);
    char name[] = "x";
    struct metric_value v = {name, 5};
    const struct metric_record r = {.step = 1, .v = &v, .n = 1, .superseded = true};
    (void)state;
    metric_alarms_add(as, &r);
    assert_false(stands(as, 0));
    feed(as, 1, "x", 5);
    struct metric_alarms *anew = metric_alarms_like(as);
    assert_int_equal(metric_alarms_count(anew), 1);
    assert_false(stands(anew, 0));
    metric_alarms_free(anew);
    metric_alarms_free(as);
    metric_alarms_add(NULL, &r);
    assert_null(metric_alarms_like(NULL));
    assert_int_equal(metric_alarms_count(NULL), 0);
}

static void takes_those_of_the_project(void **state)
{
    struct strv own = {0}, of_project = {0};
    struct metric_alarm a;
    (void)state;
    for (int i = 0; i < METRIC_ALERTS_MAX + 4; i++) {
        strv_addf(&own, "x > %d", i);
        strv_addf(&of_project, "x > %d", i + 2); /* the first ones are the job's own, too */
    }
    struct metric_alarms *first = metric_alarms_new(&own, &of_project);
    struct metric_alarms *as = metric_alarms_like(first);
    metric_alarms_free(first);
    assert_int_equal(metric_alarms_count(as), METRIC_ALERTS_MAX + 6);
    feed(as, 1, "x", 1e6);
    assert_int_equal(metric_alarms_seen(as), (1u << (METRIC_ALERTS_MAX + 6)) - 1);
    metric_alarms_get(as, METRIC_ALERTS_MAX - 1, &a);
    assert_string_equal(a.alert, "x > 15");
    assert_false(a.of_project);
    metric_alarms_get(as, METRIC_ALERTS_MAX, &a);
    assert_string_equal(a.alert, "x > 16");
    assert_true(a.of_project);
    metric_alarms_free(as);
    strv_release(&own);
    strv_release(&of_project);
}

static void assert_span(const struct metric_alarms *as,
                        size_t at,
                        const char *metric,
                        int64_t since,
                        int64_t told,
                        int64_t ended)
{
    struct metric_alarm a;
    metric_alarms_get(as, 0, &a);
    assert_true(at < a.n_spans);
    assert_string_equal(a.spans[at].metric, metric);
    assert_int_equal(a.spans[at].since, since);
    assert_int_equal(a.spans[at].told, told);
    assert_int_equal(a.spans[at].ended, ended);
}

static void keeps_when_it_held_of_each_metric(void **state)
{
    struct metric_alarms *as = alarms_of("v/* < 0.5 for 2 steps", NULL);
    struct metric_alarm a;
    (void)state;
    feed(as, 1, "v/a", 0.1);
    feed(as, 2, "v/a", 1); /* one step is not two */
    metric_alarms_get(as, 0, &a);
    assert_int_equal(a.n_spans, 0);
    feed(as, 3, "v/a", 0.2);
    feed(as, 4, "v/a", 0.3);
    feed(as, 5, "v/b", 0.1);
    feed(as, 6, "v/b", 0.1);
    feed(as, 7, "v/a", 0.4); /* it goes on: no span of its own */
    assert_span(as, 0, "v/a", 3, 4, 0);
    assert_span(as, 1, "v/b", 5, 6, 0);
    feed(as, 8, "v/a", 1);
    assert_span(as, 0, "v/a", 3, 4, 8);
    assert_span(as, 1, "v/b", 5, 6, 0);
    metric_alarms_get(as, 0, &a);
    assert_true(a.stands && a.n_spans == 2); /* by the other metric */
    assert_true(fabs(a.spans[0].value - 0.3) < 1e-12);
    metric_alarms_free(as);
}

static void keeps_the_newest_spans(void **state)
{
    struct metric_alarms *as = alarms_of("v/* is nan", NULL);
    struct metric_alarm a;
    (void)state;
    feed(as, 1, "v/long", NAN);
    for (int i = 1; i <= METRIC_ALARM_SPANS; i++) {
        feed(as, 2 * i, "v/b", NAN);
        feed(as, 2 * i + 1, "v/b", 1);
    }
    feed(as, 100, "v/long", 1); /* its span has made room */
    metric_alarms_get(as, 0, &a);
    assert_int_equal(a.n_spans, METRIC_ALARM_SPANS);
    for (int i = 0; i < METRIC_ALARM_SPANS; i++)
        assert_span(as, (size_t)i, "v/b", 2 * i + 2, 2 * i + 2, 2 * i + 3);
    assert_true(isnan(a.spans[0].value));
    metric_alarms_free(as);
}

static void shows_them(void **state)
{
    struct metric_alarms *as = alarms_of("x falls 50 % from best", "y > 1");
    struct buf out = BUF_INIT(1 << 16);
    struct jout j = jout_begin(&out);
    json_t *o = NULL;
    (void)state;
    feed(as, 1, "x", 8);
    feed(as, 2, "x", 2);
    metric_alarms_to_json(as, &j, NULL);
    assert_int_equal(json_parse(out.data, out.len, out.max, &o, NULL), 0);
    assert_string_equal(json_get_str(json_array_get(o, 0), "text", ""),
                        "x falls 50 % from best: 'x' is 2 since step 2, 8 before");
    assert_string_equal(json_get_str(json_array_get(o, 0), "curve", ""),
                        "\xe2\x96\x88\xe2\x96\x81"); /* full and empty */
    assert_string_equal(json_get_str(json_array_get(o, 1), "text", ""), "y > 1: it never held");
    assert_true(json_is_null(json_object_get(json_array_get(o, 1), "value")));
    assert_true(fabs(json_get_real(json_array_get(o, 0), "limit", 0) - 4) < 1e-12);
    const json_t *points = json_get_array(json_array_get(o, 0), "points");
    assert_int_equal(json_array_size(points), 2);
    assert_int_equal(json_integer_value(json_array_get(points, 0)), 8);
    assert_null(json_object_get(json_array_get(o, 1), "points"));
    assert_null(json_object_get(json_array_get(o, 1), "limit"));
    const json_t *span = json_array_get(json_get_array(json_array_get(o, 0), "spans"), 0);
    assert_string_equal(json_get_str(span, "metric", ""), "x");
    assert_int_equal(json_integer_value(json_object_get(span, "seen_at")), 2);
    assert_int_equal(json_integer_value(json_object_get(span, "ended_at")), 0);
    assert_true(fabs(json_get_real(span, "value", 0) - 2) < 1e-12);
    assert_null(json_object_get(json_array_get(o, 1), "spans"));
    assert_int_equal(metric_alarms_seen_from_json(o), 1);
    json_decref(o);
    buf_release(&out);
    metric_alarms_free(as);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holds_for_so_many_steps),
        cmocka_unit_test(measures_from_best_and_first),
        cmocka_unit_test(knows_what_is_no_number),
        cmocka_unit_test(passes_over_what_was_run_again),
        cmocka_unit_test(takes_those_of_the_project),
        cmocka_unit_test(keeps_when_it_held_of_each_metric),
        cmocka_unit_test(keeps_the_newest_spans),
        cmocka_unit_test(shows_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of sample_pick.h, and of when a training asks for samples. */
#include "core/sample/sample_pick.h"

#include <math.h>
#include <string.h>

#include "base/unit.h"
#include "core/sample/sample_mark.h"
#include "core/training/training.h"

static const struct sample_place PLACES[] = {
    {.prompt = 1, .score = 0.5, .repeats = 10},
    {.prompt = 2, .score = 0, .wide_answer = 400},
    {.prompt = 2, .score = -1},
    {.prompt = 3, .score = NAN, .repeats = 900},
    {.prompt = 4, .score = 0.5, .marks = SAMPLE_IS_BLANK},
    {.prompt = 5, .score = 1, .repeats = 20},
    {.prompt = 6, .score = 0.25, .marks = SAMPLE_HAS_TEMPLATE},
    {.prompt = 7, .score = 0.75},
};

/* The prompts that are picked, one letter each. */
static void assert_picked(enum sample_pick_by by, const char *want)
{
    struct sample_picks picks = {.wanted = 12};
    char prompts[SAMPLE_PICKS + 1] = "";
    sample_pick(by, "j", 12, PLACES, array_len(PLACES), &picks);
    for (size_t i = 0; i < picks.n; i++)
        prompts[i] = picks.v[i].prompt[15];
    assert_string_equal(prompts, want);
}

static void one_of_each_prompt_in_order(void **state)
{
    (void)state;
    assert_picked(SAMPLE_PICK_WORST, "26147");
    assert_picked(SAMPLE_PICK_BEST, "57146");
    assert_picked(SAMPLE_PICK_REPEATS, "351");
    assert_picked(SAMPLE_PICK_WIDE, "2");
    assert_picked(SAMPLE_PICK_BLANK, "4");
    assert_picked(SAMPLE_PICK_TEMPLATE, "6");
}

static void the_worst_where_there_is_nothing_of_it(void **state)
{
    struct sample_picks picks = {0};
    (void)state;
    sample_pick(SAMPLE_PICK_BLANK, "j", 3, PLACES, 2, &picks);
    assert_int_equal(picks.n, 2);
    assert_string_equal(picks.v[0].prompt, "0000000000000002");
    assert_string_equal(picks.v[0].command, "argus samples j --step 3 --prompt 0000000000000002");
    sample_pick(SAMPLE_PICK_BEST, "j", 3, &PLACES[3], 1, &picks);
    assert_int_equal(picks.n, 0); /* nobody scored it */
}

static void by_the_name_of_a_metric(void **state)
{
    (void)state;
    assert_int_equal(sample_pick_by_metric("samples/repeats"), SAMPLE_PICK_REPEATS);
    assert_int_equal(sample_pick_by_metric("samples/wide_answers"), SAMPLE_PICK_WIDE);
    assert_int_equal(sample_pick_by_metric("samples/blank_answers"), SAMPLE_PICK_BLANK);
    assert_int_equal(sample_pick_by_metric("samples/template_answers"), SAMPLE_PICK_TEMPLATE);
    assert_int_equal(sample_pick_by_metric("actor/entropy"), SAMPLE_PICK_WORST);
}

/* ---- of a training ---- */

/* Samples of steps up to `newest`, and how often they were asked for. */
struct shelf {
    int64_t newest, asked;
    bool is_busy;
};

static void shelf_pick(enum sample_pick_by by, int64_t step, struct sample_picks *ret, void *arg)
{
    struct shelf *s = arg;
    s->asked++;
    if (s->is_busy) {
        ret->stamp = 0;
        return;
    }
    ret->is_last = s->newest >= step;
    sample_pick(by, "j", step < s->newest ? step : s->newest, PLACES, array_len(PLACES), ret);
}

static void feed_metric(struct training *t,
                        struct metric_watch *w,
                        int64_t step,
                        const char *name,
                        double value)
{
    struct metric_record r;
    _cleanup_(freep) char *line =
        xasprintf("step:%d - %s:%.1f - timing_s/step:1.0", (int)step, name, value);
    assert_int_equal(metric_read_line(line, strlen(line), &r), METRIC_RECORD);
    metric_watch_add(w, &r);
    training_add(t, &r, w);
    metric_record_release(&r);
}

static void an_alert_gets_the_samples_of_its_step(void **state)
{
    struct training *t = training_new();
    struct metric_watch *w = metric_watch_new();
    struct shelf shelf = {.newest = 2};
    struct metric_alarm a;
    struct strv texts = {0};
    (void)state;
    strv_add(&texts, "actor/entropy < 0.5");
    training_set_alerts(t, &texts, NULL);
    strv_release(&texts);
    feed_metric(t, w, 1, "actor/entropy", 1);
    feed_metric(t, w, 2, "actor/entropy", 1);
    training_pick(t, 7, shelf_pick, &shelf);
    assert_int_equal(shelf.asked, 0); /* nothing is wrong */
    feed_metric(t, w, 3, "actor/entropy", 0.1);
    training_pick(t, 0, shelf_pick, &shelf);
    assert_int_equal(shelf.asked, 0); /* there are no samples */
    shelf.is_busy = true;
    training_pick(t, 7, shelf_pick, &shelf);
    shelf.is_busy = false;
    training_pick(t, 7, shelf_pick, &shelf);
    assert_int_equal(shelf.asked, 2); /* what was busy is asked again */
    training_pick(t, 7, shelf_pick, &shelf);
    assert_int_equal(shelf.asked, 2); /* no other samples came */
    metric_alarms_get(t->alarms, 0, &a);
    assert_int_equal(a.picks->v[0].step, 2);
    shelf.newest = 4;
    feed_metric(t, w, 4, "actor/entropy", 0.1);
    training_pick(t, 8, shelf_pick, &shelf);
    metric_alarms_get(t->alarms, 0, &a);
    assert_int_equal(a.told, 3);
    assert_int_equal(a.picks->v[0].step, 3);
    training_pick(t, 9, shelf_pick, &shelf);
    assert_int_equal(shelf.asked, 3); /* they are the last of that step */
    metric_watch_free(w);
    training_free(t);
}

static void a_verdict_shows_its_samples(void **state)
{
    struct training *t = training_new();
    struct metric_watch *w = metric_watch_new();
    struct shelf shelf = {.newest = 40};
    struct verdict_item item;
    struct buf out = BUF_INIT(1 << 16);
    struct jout j = jout_begin(&out);
    json_t *o = NULL;
    (void)state;
    for (int64_t step = 1; step <= 30; step++)
        feed_metric(t, w, step, "response/aborted_ratio", step < 15 ? 0 : 0.5);
    training_pick(t, 7, shelf_pick, &shelf);
    assert_true(verdict_item(t->verdict, VERDICT_ABORTED, &item));
    assert_int_equal(verdict_picks(t->verdict, VERDICT_ABORTED)->wanted, item.told);
    assert_true(verdict_to_json(t->verdict, &j, NULL));
    assert_int_equal(json_parse(out.data, out.len, out.max, &o, NULL), 0);
    const json_t *samples =
        json_get_array(json_array_get(json_get_array(o, "items"), 0), "samples");
    assert_int_equal(json_array_size(samples), SAMPLE_PICKS);
    const json_t *first = json_array_get(samples, 0);
    assert_string_equal(json_get_str(first, "prompt", ""), "0000000000000002");
    assert_true(fabs(json_get_real(first, "score", 0) + 1) < 1e-9);
    json_decref(o);
    buf_release(&out);
    metric_watch_free(w);
    training_free(t);
}

/* The closed schema of a row, or of the rows of a list in it. */
static void assert_may_lack_samples(const struct field_table *t, const char *list)
{
    struct buf out = BUF_INIT(1 << 16);
    struct jout j = jout_begin(&out);
    json_t *whole = NULL, *name;
    size_t i;
    field_page_schema(t, FIELD_ALL, &j, NULL);
    assert_int_equal(json_parse(out.data, out.len, out.max, &whole, NULL), 0);
    const json_t *o = whole;
    if (list)
        o = json_get_object(json_get_object(json_get_object(o, "properties"), list), "items");
    assert_non_null(json_get_object(json_get_object(o, "properties"), "samples"));
    assert_true(json_array_size(json_get_array(o, "required")) > 0);
    json_array_foreach (json_get_array(o, "required"), i, name)
        assert_string_not_equal(json_string_value(name), "samples");
    json_decref(whole);
    buf_release(&out);
}

static void what_an_older_version_stored_still_fits(void **state)
{
    (void)state;
    assert_may_lack_samples(&verdict_table, "items");
    assert_may_lack_samples(&metric_alarm_table, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_of_each_prompt_in_order),
        cmocka_unit_test(the_worst_where_there_is_nothing_of_it),
        cmocka_unit_test(by_the_name_of_a_metric),
        cmocka_unit_test(an_alert_gets_the_samples_of_its_step),
        cmocka_unit_test(a_verdict_shows_its_samples),
        cmocka_unit_test(what_an_older_version_stored_still_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

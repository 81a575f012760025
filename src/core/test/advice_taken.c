/* SPDX-License-Identifier: Apache-2.0 */
/* An advice beside what the job that took it got: which job is the next one, and what it shows. */
#include "core/account/advice_taken.h"

#include <math.h>

#include "base/mem.h"
#include "base/unit.h"
#include "saving_facts.h"

#define HOUR 3600.0
enum { MANY = 8 };

static bool is_near(double a, double b)
{
    return fabs(a - b) < 1e-6;
}

/* Over at `ended` and queued one before it; half of its GPUs were idle, where idle says so. */
static struct advice_taken_job ran_on(size_t row,
                                      usec_t ended,
                                      double gpus,
                                      double held_hours,
                                      bool idle)
{
    struct advice_taken_job j = {.kind = "k",
                                 .row = row,
                                 .queued_at = ended - 1,
                                 .ended_at = ended,
                                 .facts = {.held_s = held_hours * HOUR,
                                           .idle_s = idle ? held_hours * HOUR / 2 : 0,
                                           .gpus = gpus,
                                           .succeeded = true}};
    waste_judge(&j.facts, &j.waste);
    return j;
}

static void test_fewer_gpus(void **state)
{
    struct advice_taken_job jobs[] = {ran_on(1, 20, 4, 4.4, false), ran_on(0, 10, 8, 8, true)};
    struct advice_taken pairs[MANY];
    (void)state;
    assert_int_equal(advice_taken_find(jobs, 2, pairs), 1);
    assert_int_equal(pairs[0].advised, 0);
    assert_int_equal(pairs[0].next, 1);
    assert_true(pairs[0].ended_at == 20 && is_near(pairs[0].foreseen_s, 4 * HOUR));
    assert_true(is_near(pairs[0].got_s, 3.6 * HOUR)); /* 4 GPUs took longer */
    assert_true(is_near(advice_taken_error(pairs, 1), 0.1));
    /* Six of eight are half of the way to four: two hours were to be had, and none was. */
    jobs[0] = ran_on(0, 10, 8, 8, true);
    jobs[1] = ran_on(1, 20, 6, 9, false);
    assert_int_equal(advice_taken_find(jobs, 2, pairs), 1);
    assert_true(is_near(pairs[0].foreseen_s, 2 * HOUR) && is_near(pairs[0].got_s, -HOUR));
    assert_int_equal(advice_taken_find(jobs, 0, pairs), 0);
}

/* What shows nothing of the advice is no pair. */
static void test_no_next_job(void **state)
{
    const struct advice_taken_job advised = ran_on(0, 10, 8, 8, true);
    const struct advice_taken_job took = ran_on(1, 20, 4, 4, false);
    struct advice_taken_job other = took;
    struct advice_taken_job others[MANY];
    struct advice_taken pairs[2];
    size_t n = 0;
    (void)state;
    others[n++] = ran_on(1, 20, 8, 8, false); /* it did not take it */
    others[n++] = ran_on(1, 20, 7, 7, false); /* nor did this one, really */
    others[n++] = ran_on(1, 20, 3, 3, false); /* nobody advised that */
    others[n++] = ran_on(1, 10, 4, 4, false); /* queued before there was an advice */
    other.ended_at = 0;
    others[n++] = other; /* it runs yet */
    other = took;
    other.kind = "l";
    others[n++] = other;
    other = took;
    other.facts.succeeded = false; /* and it tells of no steps: it may have done half of the work */
    others[n++] = other;
    other = took;
    other.facts.held_s = 0;
    others[n++] = other;
    for (size_t i = 0; i < n; i++) {
        struct advice_taken_job jobs[] = {advised, others[i]};
        assert_int_equal(advice_taken_find(jobs, 2, pairs), 0);
    }
    struct advice_taken_job jobs[] = {advised, took};
    assert_int_equal(advice_taken_find(jobs, 2, pairs), 1);
    jobs[0] = advised;
    jobs[0].ended_at = 0; /* what it is advised may change yet */
    jobs[1] = took;
    assert_int_equal(advice_taken_find(jobs, 2, pairs), 0);
}

/* Each advice is tested once, by the first that took it; the newest advice is the one taken. */
static void test_once(void **state)
{
    struct advice_taken pairs[MANY];
    struct advice_taken_job jobs[] = {ran_on(0, 10, 8, 8, true),    ran_on(1, 20, 16, 16, true),
                                      ran_on(2, 30, 8, 8.8, false), ran_on(3, 40, 8, 9, false),
                                      ran_on(4, 50, 8, 8, true),    ran_on(5, 60, 4, 3, false)};
    (void)state;
    assert_int_equal(advice_taken_find(jobs, array_len(jobs), pairs), 2);
    /* The one whose next job ended last stands first. */
    assert_true(pairs[0].advised == 4 && pairs[0].next == 5 && is_near(pairs[0].got_s, 5 * HOUR));
    assert_true(pairs[1].advised == 1 && pairs[1].next == 2 && is_near(pairs[1].got_s, 7.2 * HOUR));
}

static void steps_of(struct advice_taken_job *j, struct goodput_sums *sums, int steps)
{
    *sums = (struct goodput_sums){0};
    for (int i = 0; i < steps; i++)
        goodput_add(sums, 1, false, 10, 0);
    j->facts.sums = sums;
    j->facts.succeeded = false;
}

/* Jobs that tell of steps are compared by the price of a step. */
static void test_by_step(void **state)
{
    struct goodput_sums a, b;
    struct advice_taken pairs[2];
    struct advice_taken_job first[] = {ran_on(0, 10, 8, 8, true), ran_on(1, 20, 4, 3, false)};
    struct advice_taken_job jobs[2];
    (void)state;
    steps_of(&first[0], &a, 100);
    steps_of(&first[1], &b, 60);
    jobs[0] = first[0];
    jobs[1] = first[1];
    assert_int_equal(advice_taken_find(jobs, 2, pairs), 1);
    assert_true(is_near(pairs[0].got_s, 3 * HOUR)); /* 100 steps would have been 5 hours */
    /* Too short to be compared, or only one of them tells of steps. */
    steps_of(&first[1], &b, 49);
    jobs[0] = first[0];
    jobs[1] = first[1];
    assert_int_equal(advice_taken_find(jobs, 2, pairs), 0);
    first[1].facts.sums = NULL;
    first[1].facts.succeeded = true;
    jobs[0] = first[0];
    jobs[1] = first[1];
    assert_int_equal(advice_taken_find(jobs, 2, pairs), 0);
}

static struct advice_taken_job saves_each(size_t row,
                                          usec_t ended,
                                          struct goodput_sums *sums,
                                          int every)
{
    struct advice_taken_job j = ran_on(row, ended, 4, 0, false);
    j.facts = saving_facts(sums, every);
    waste_judge(&j.facts, &j.waste);
    return j;
}

static void test_saves(void **state)
{
    struct goodput_sums a, b;
    struct advice_taken pairs[2];
    struct advice_taken_job advised = saves_each(0, 10, &a, 100);
    int freq = (int)advised.waste.save_freq;
    (void)state;
    assert_int_equal(advised.waste.advice, WASTE_SAVE_MORE_OFTEN);
    assert_in_range(freq, 10, 40);
    struct advice_taken_job jobs[] = {advised, saves_each(1, 20, &b, freq)};
    struct waste w = jobs[1].waste;
    assert_int_equal(advice_taken_find(jobs, 2, pairs), 1);
    assert_true(is_near(pairs[0].foreseen_s, advised.waste.gain_s));
    assert_true(is_near(pairs[0].got_s, 4 * 1500 - w.redone_s - w.failed_s)); /* as many failed */
    /* It never failed; it saves as seldom as before; far more often than anybody advised. */
    jobs[0] = advised;
    jobs[1] = saves_each(1, 20, &b, freq);
    jobs[1].facts.failures = 0;
    assert_int_equal(advice_taken_find(jobs, 2, pairs), 0);
    jobs[0] = advised;
    jobs[1] = saves_each(1, 20, &b, 100);
    assert_int_equal(advice_taken_find(jobs, 2, pairs), 0);
    jobs[0] = advised;
    jobs[1] = saves_each(1, 20, &b, freq / 3);
    assert_int_equal(advice_taken_find(jobs, 2, pairs), 0);
}

/* That data came faster is seen by what came of it alone; a time limit foresees no GPU time. */
static void test_not_testable(void **state)
{
    struct advice_taken pairs[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct advice_taken_job jobs[] = {ran_on(0, 10, 8, 8, true), ran_on(1, 20, 4, 4, false)};
        jobs[0].waste.advice = i ? WASTE_FASTER_DATA : WASTE_SHORTER_TIME_LIMIT;
        assert_int_equal(advice_taken_find(jobs, 2, pairs), 0);
    }
}

static void test_median(void **state)
{
    const struct advice_taken pairs[] = {{.foreseen_s = 10, .got_s = 9},
                                         {.foreseen_s = 10, .got_s = -10},
                                         {.foreseen_s = 4, .got_s = 5},
                                         {.foreseen_s = 2, .got_s = 3}};
    (void)state;
    assert_true(isnan(advice_taken_error(pairs, 0)));
    assert_true(is_near(advice_taken_error(pairs, 1), 0.1));
    assert_true(is_near(advice_taken_error(pairs, 3), 0.25));
    assert_true(is_near(advice_taken_error(pairs, 4), 0.375));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fewer_gpus), cmocka_unit_test(test_no_next_job),
        cmocka_unit_test(test_once),       cmocka_unit_test(test_by_step),
        cmocka_unit_test(test_saves),      cmocka_unit_test(test_not_testable),
        cmocka_unit_test(test_median),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

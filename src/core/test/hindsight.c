/* SPDX-License-Identifier: Apache-2.0 */
/* The advice of one week on the jobs of the next: known cases, and a simulated ledger of people who
 * run the same thing each week, in which the advice is worth what it promised, and one of people
 * who do not, in which it is seen to be wrong. */
#include "core/account/hindsight.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/unit.h"
#include "saving_facts.h"

#define HOUR 3600.0

static bool is_near(double a, double b)
{
    return fabs(a - b) < 1e-6;
}

static struct hindsight_job idle_job(const char *kind, bool later, double gpus, double share)
{
    struct hindsight_job j = {
        .kind = kind,
        .later = later,
        .facts = {.held_s = gpus * HOUR, .idle_s = gpus * HOUR * share, .gpus = gpus}};
    waste_judge(&j.facts, &j.waste);
    return j;
}

static void test_fewer(void **state)
{
    (void)state;
    struct hindsight h;
    struct hindsight_job jobs[] = {
        idle_job("a", true, 8, 0.5),    /* as before: 4 would have done */
        idle_job("a", false, 8, 0.5),   /* advice: 4 */
        idle_job("a", true, 8, 0.75),   /* idler yet: 4 of 6 idle ones are saved */
        idle_job("a", true, 8, 0.25),   /* 6 were busy: wrong */
        idle_job("a", true, 4, 0.5),    /* it followed the advice by itself: nothing to save */
        idle_job("b", false, 8, 0.1),   /* no advice */
        idle_job("b", true, 8, 0.9),    /* so it is not tried, whatever it would be advised now */
        idle_job("c", false, 8, 0.875), /* advice: 1; nobody ran it again */
    };
    hindsight_judge(jobs, array_len(jobs), &h);
    assert_int_equal(h.advised, 2);
    assert_int_equal(h.tried, 4);
    assert_int_equal(h.too_small, 1);
    assert_true(is_near(h.promised_s, 4 * HOUR));
    assert_true(is_near(h.saved_s, 8 * HOUR));
    assert_true(is_near(h.held_s, (8 + 8 + 8 + 4) * HOUR));
    hindsight_judge(jobs, 0, &h);
    assert_int_equal(h.advised, 0);
}

/* A shorter timeout saves no GPU time by definition: neither it nor what such jobs held is counted,
 * and advice that can be tried is tried though such a one is newer. */
static void test_timeout(void **state)
{
    (void)state;
    struct hindsight h;
    struct hindsight_job jobs[5];
    for (int i = 0; i < 3; i++) {
        jobs[i] = (struct hindsight_job){.kind = "a",
                                         .later = i > 0,
                                         .order = i,
                                         .facts = {.held_s = HOUR,
                                                   .unknown_s = HOUR,
                                                   .gpus = 1,
                                                   .timeout = 24 * USEC_HOUR,
                                                   .ran = i == 2 ? 2 * USEC_HOUR : USEC_HOUR,
                                                   .succeeded = true}};
        waste_judge(&jobs[i].facts, &jobs[i].waste);
        assert_int_equal(jobs[i].waste.advice, WASTE_SHORTER_TIME_LIMIT);
    }
    hindsight_judge(jobs, 3, &h);
    assert_true(!h.advised && !h.tried && !h.too_small && is_near(h.held_s, 0));
    jobs[3] = idle_job("a", false, 8, 0.5);
    jobs[3].order = -1;
    jobs[4] = idle_job("a", true, 8, 0.5);
    hindsight_judge(jobs, 5, &h);
    assert_true(h.advised == 1 && h.tried == 3 && !h.too_small);
    assert_true(is_near(h.saved_s, 4 * HOUR) && is_near(h.promised_s, 4 * HOUR));
}

/* The advised part of the time between steps, on the job's own steps. */
static void test_data(void **state)
{
    (void)state;
    struct goodput_sums sums = {0};
    struct waste advice = {.advice = WASTE_FASTER_DATA, .least_between = 0.2};
    struct hindsight_job job = {.facts = {.gpus = 2, .sums = &sums}};
    for (int i = 0; i < 100; i++) {
        goodput_add(&sums, 1, false, 10, 0);
        goodput_add_between(&sums, 1, 10, 10);
    }
    assert_true(is_near(hindsight_of(&advice, &job), 2 * (1000 - 1000 * 0.25)));
    advice.least_between = 0.6; /* it waits less than that */
    assert_true(is_near(hindsight_of(&advice, &job), 0));
}

/* Two jobs of one kind are advised: the newest says what is tried. */
static void test_the_newest_counts(void **state)
{
    (void)state;
    struct hindsight h;
    struct hindsight_job jobs[] = {
        idle_job("a", false, 8, 0.875),
        idle_job("a", false, 8, 0.5),
        idle_job("a", true, 8, 0.5),
    };
    jobs[0].order = 1;
    jobs[1].order = 2;
    hindsight_judge(jobs, array_len(jobs), &h);
    assert_int_equal(h.too_small, 0);
    assert_true(is_near(h.saved_s, 4 * HOUR));
}

static struct hindsight_job saving_job(struct goodput_sums *sums, bool later, int every)
{
    struct hindsight_job j = {.kind = "s", .later = later, .facts = saving_facts(sums, every)};
    waste_judge(&j.facts, &j.waste);
    return j;
}

static void test_saves(void **state)
{
    (void)state;
    struct goodput_sums a, b;
    struct hindsight h;
    struct hindsight_job jobs[] = {saving_job(&a, false, 100), saving_job(&b, true, 100)};
    /* The third failure ended the job: its 50 steps are as lost as those that were run again. */
    assert_true(is_near(jobs[0].waste.redone_s, 4 * 2 * 500.0));
    assert_true(is_near(jobs[0].waste.failed_s, 4 * 500.0));
    assert_int_equal(jobs[0].waste.advice, WASTE_SAVE_MORE_OFTEN);
    double freq = (double)jobs[0].waste.save_freq;
    assert_true(freq > 1 && freq < 50);
    hindsight_judge(jobs, 2, &h);
    double lost = 3 * freq * 10 / 2, more = 1050 / freq - 9;
    assert_int_equal(h.tried, 1);
    assert_true(is_near(h.saved_s, 4 * (1500 - lost - more * 5)));
    assert_true(h.saved_s > 0);
    /* Who did save that often already would only have paid. */
    jobs[0] = saving_job(&a, false, 100);
    jobs[1] = saving_job(&b, true, 5);
    jobs[1].facts.failures = 0;
    jobs[1].facts.failed = false;
    hindsight_judge(jobs, 2, &h);
    assert_true(h.saved_s <= 4 * 5 * 210 + 1e-6);
}

static double random_unit(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-53;
}

/* A ledger of 40 people and two weeks; how far each one's idle share moves from week to week. */
static struct hindsight simulate_weeks(double moves)
{
    enum { PEOPLE = 40, RUNS = 5, JOBS = PEOPLE * RUNS * 2 };
    static struct hindsight_job jobs[JOBS];
    static char kinds[PEOPLE][16];
    struct hindsight h;
    uint64_t random = 17;
    size_t n = 0;
    for (int p = 0; p < PEOPLE; p++) {
        (void)snprintf(kinds[p], sizeof(kinds[p]), "p%d", p);
        double share = 0.8 * random_unit(&random);
        for (int week = 0; week < 2; week++) {
            for (int i = 0; i < RUNS; i++) {
                jobs[n] = idle_job(kinds[p], week, 8, share);
                jobs[n].order = i;
                n++;
            }
            share = fmax(0, share - moves * random_unit(&random));
        }
    }
    hindsight_judge(jobs, n, &h);
    return h;
}

static void test_simulated(void **state)
{
    (void)state;
    struct hindsight same = simulate_weeks(0), other = simulate_weeks(0.8);
    assert_in_range(same.advised, 20, 40);
    assert_int_equal(same.tried, 5 * same.advised);
    assert_int_equal(same.too_small, 0);
    assert_true(is_near(same.saved_s, 5 * same.promised_s));
    assert_int_equal(other.advised, same.advised);
    assert_true(other.too_small > other.tried / 2);
    assert_true(other.saved_s < 0.5 * same.saved_s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fewer), cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_data),  cmocka_unit_test(test_the_newest_counts),
        cmocka_unit_test(test_saves), cmocka_unit_test(test_simulated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

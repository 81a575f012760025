/* SPDX-License-Identifier: Apache-2.0 */
/* Small replays with known answers, what a tally counts, and random ones against properties. */
#include "core/past/replay.h"

#include <math.h>
#include <stdlib.h>

#include "base/unit.h"

#define S(n) ((usec_t)(n)*USEC_SEC)

static const struct replay_job three[] = {
    {.submit = S(0), .duration = S(100), .limit = S(200), .gpus = 4},
    {.submit = S(10), .duration = S(50), .limit = S(60), .gpus = 8},
    {.submit = S(20), .duration = S(30), .limit = S(40), .gpus = 4},
};

static struct tally_report play(const struct replay_job *jobs,
                                size_t n,
                                int nodes,
                                enum sched_policy policy,
                                usec_t span,
                                uint64_t *ret_digest)
{
    struct replay r = {.jobs = jobs,
                       .n = n,
                       .nodes = nodes,
                       .gpus_per_node = 8,
                       .policy = policy,
                       .learner = true};
    struct tally *t = tally_new(0, span);
    struct tally_report report;
    *ret_digest = replay_run(&r, t);
    tally_report(t, S(60), &report);
    tally_free(t);
    return report;
}

#define assert_near(a, b) assert_true(fabs((a) - (b)) < 1e-6)

/* 0-100 the first, 100-150 the second, 150-180 the third. */
static void strict_order(void **state)
{
    (void)state;
    uint64_t digest;
    struct tally_report r = play(three, 3, 1, SCHED_POLICY_FIFO, S(200), &digest);
    assert_int_equal(r.jobs, 3);
    assert_near(r.wait.mean, (0 + 90 + 130) / 3.0);
    assert_near(r.wait.p50, 90);
    assert_near(r.wait.p95, 130);
    assert_near(r.wait.max, 130);
    assert_int_equal(r.beyond, 2); /* of 60 s */
    assert_near(r.utilisation, (400 + 400 + 120) / 1600.0);
    assert_near(r.under_load, (90 * 4 + 50 * 8) / (140 * 8.0)); /* from 10 to 150 */
    assert_near(r.fragmentation, (80 * 4) / 1600.0);            /* from 20 to 100 */
    assert_near(r.slowdown, (1 + 140 / 50.0 + 160 / 30.0) / 3);
    assert_near(r.last_end, 180);
    assert_int_equal(r.classes[tally_class_of(4)].jobs, 2);
    assert_near(r.classes[tally_class_of(8)].mean, 90);
}

static void the_window_ends_counting(void **state)
{
    (void)state;
    uint64_t digest;
    struct tally_report r = play(three, 3, 1, SCHED_POLICY_FIFO, S(50), &digest);
    assert_near(r.utilisation, 0.5);
    assert_near(r.fragmentation, 30 * 4 / 400.0);
    assert_near(r.wait.max, 130); /* waits are of all jobs */
}

static void odd_jobs(void **state)
{
    (void)state;
    static const struct replay_job jobs[] = {
        {.submit = S(0), .duration = S(10), .limit = S(10), .gpus = 64}, /* never fits */
        {.submit = S(0), .duration = 0, .limit = S(1), .gpus = 8},
        {.submit = S(0), .duration = 0, .limit = S(1), .gpus = 8},
        {.submit = S(0), .duration = S(5), .limit = S(5), .gpus = 0},
        {.submit = S(1), .duration = S(10), .limit = S(20), .gpus = 12}, /* two whole nodes */
        {.submit = S(2), .duration = S(10), .limit = S(20), .gpus = 1},
    };
    uint64_t digest;
    struct tally_report r = play(jobs, array_len(jobs), 2, SCHED_POLICY_FIFO, S(20), &digest);
    assert_int_equal(r.never, 1);
    assert_int_equal(r.jobs, 6);
    assert_int_equal(r.wait.jobs, 5);
    assert_near(r.classes[tally_class_of(8)].max, 0);
    assert_near(r.classes[tally_class_of(1)].max, 9); /* behind the whole nodes */
    assert_near(r.utilisation, (12 * 10 + 9 * 1) / (16 * 20.0));
}

static void decisions_decide_the_digest(void **state)
{
    (void)state;
    struct replay_job jobs[3];
    uint64_t digest, again, other;
    (void)play(three, 3, 2, SCHED_POLICY_FIFO, S(50), &digest);
    (void)play(three, 3, 2, SCHED_POLICY_FIFO, S(70), &again); /* the window decides nothing */
    assert_true(digest == again);
    for (int i = 0; i < 3; i++)
        jobs[i] = three[i];
    jobs[0].duration += 1;
    (void)play(jobs, 3, 1, SCHED_POLICY_FIFO, S(50), &digest);
    (void)play(three, 3, 1, SCHED_POLICY_FIFO, S(50), &other);
    assert_true(digest != other);
    (void)play(three, 3, 2, SCHED_POLICY_FIFO, S(50), &other);
    assert_true(again == other);
}

static void guesses_are_drawn_evenly(void **state)
{
    (void)state;
    enum { N = 10000 };
    struct replay_job *jobs = xcalloc(N, sizeof(*jobs));
    double sum = 0;
    for (int i = 0; i < N; i++)
        jobs[i].duration = S(1000);
    replay_guess(jobs, N, 1, 5, 7, "a");
    usec_t first = jobs[0].limit, second = jobs[1].limit;
    for (int i = 0; i < N; i++) {
        assert_in_range(jobs[i].limit, S(1000), S(5000));
        assert_int_equal(jobs[i].limit % USEC_SEC, 0);
        sum += (double)jobs[i].limit;
    }
    assert_true(fabs(sum / N / 3e9 - 1) < 0.02);
    replay_guess(jobs, 2, 1, 5, 7, "a"); /* the same for a shorter list */
    assert_true(jobs[0].limit == first && jobs[1].limit == second);
    replay_guess(jobs, 2, 1, 5, 7, "b");
    assert_true(jobs[0].limit != first);
    replay_guess(jobs, 2, 1, 5, 8, "a");
    assert_true(jobs[0].limit != first);
    jobs[0].duration = 0;
    replay_guess(jobs, 1, 1, 1, 0, "a");
    assert_int_equal(jobs[0].limit, S(1));
    free(jobs);
}

/* Two pools added are as good as counting both at once. */
static void tallies_add_up(void **state)
{
    (void)state;
    struct tally *sum = tally_new(0, S(100));
    for (int pool = 0; pool < 2; pool++) {
        struct tally *t = tally_new(0, S(100));
        tally_capacity(t, 8 + 8 * pool);
        tally_running(t, 4, 8, true);
        tally_advance(t, S(50));
        tally_running(t, 4, 8, false);
        tally_started(t, 4, S(10 * pool), S(100));
        tally_forecast(t, S(5), S(9), S(10 * pool));
        tally_advance(t, S(100));
        tally_join(sum, t);
        tally_free(t);
    }
    struct tally_report r;
    tally_report(sum, S(60), &r);
    assert_int_equal(r.gpus, 24);
    assert_near(r.utilisation, 400 / 2400.0);
    assert_near(r.wait.mean, 5);
    assert_int_equal(r.forecasts, 2);
    assert_near(r.covered, 0.5);
    assert_near(r.error, 5);
    assert_near(r.last_end, 50);
    assert_true(isnan(r.under_load));
    assert_near(tally_used(sum)[0], 8);
    assert_near(tally_used(sum)[TALLY_BUCKETS - 1], 0);
    tally_free(sum);
}

static uint64_t draw(uint64_t *state, uint64_t below)
{
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (*state >> 33) % below;
}

/* Every job that fits starts and ends; no policy uses more than there is; each twice the same. */
static void random_traces(void **state)
{
    (void)state;
    enum { N = 300 };
    struct replay_job jobs[N];
    uint64_t seed = 1;
    for (int round = 0; round < 30; round++) {
        usec_t at = 0;
        int nodes = 1 + (int)draw(&seed, 5);
        size_t too_large = 0;
        for (int i = 0; i < N; i++) {
            at += draw(&seed, 3) ? 0 : S(draw(&seed, 400));
            int gpus = draw(&seed, 4) ? (int)draw(&seed, 9) : (int)draw(&seed, 40);
            too_large += gpus > nodes * 8;
            jobs[i] =
                (struct replay_job){.submit = at, .duration = S(draw(&seed, 500)), .gpus = gpus};
        }
        replay_guess(jobs, N, 1, 5, (uint64_t)round, "p");
        for (int p = 0; p < SCHED_POLICY_END; p++) {
            uint64_t first, again;
            struct tally_report r = play(jobs, N, nodes, (enum sched_policy)p, at + 1, &first);
            (void)play(jobs, N, nodes, (enum sched_policy)p, at + 1, &again);
            assert_true(first == again);
            assert_int_equal(r.never, too_large);
            assert_int_equal(r.wait.jobs + r.never, N);
            assert_true(r.utilisation >= 0 && r.utilisation + r.fragmentation <= 1.000001);
            assert_int_equal(r.preempted, 0); /* no job can go on from anything */
            assert_true(r.broken == 0 || p == SCHED_POLICY_FLOW || p == SCHED_POLICY_SHORTEST);
        }
    }
}

/* The long one gives way at its checkpoint after 2 h, is away for 10 minutes, and has then a minute
 * of saving to do again and 3 to start. */
static void giving_way_costs_what_it_costs(void **state)
{
    (void)state;
    static const struct replay_job jobs[] = {
        {.submit = 0, .duration = 10 * USEC_HOUR, .limit = 20 * USEC_HOUR, .gpus = 8},
        {.submit = 115 * USEC_MIN, .duration = 10 * USEC_MIN, .limit = USEC_HOUR, .gpus = 1},
    };
    struct replay r = {
        .jobs = jobs,
        .n = array_len(jobs),
        .nodes = 1,
        .gpus_per_node = 8,
        .policy = SCHED_POLICY_FLOW,
        .costs = {
            .every = 30 * USEC_MIN, .save = USEC_MIN, .restart = 3 * USEC_MIN, .restartable = 1}};
    struct tally *t = tally_new(0, 11 * USEC_HOUR);
    struct tally_report report;
    (void)replay_run(&r, t);
    tally_report(t, S(60), &report);
    tally_free(t);
    assert_int_equal(report.preempted, 1);
    assert_int_equal(report.set_backs, 1);
    assert_near(report.away, 600);
    assert_near(report.wait.max, (10 + 1 + 3) * 60); /* of the long one */
    assert_near(report.wait.p50, 5 * 60);            /* of the short one */
    assert_near(report.last_end, 10 * 3600 + 14 * 60);
    assert_near(report.utilisation, (8 * 36000 + 600) / (8 * 11 * 3600.0)); /* without the costs */
    assert_near(report.wasted, 8 * 240 / (8 * 36000 + 600 + 8 * 240.0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strict_order),
        cmocka_unit_test(the_window_ends_counting),
        cmocka_unit_test(odd_jobs),
        cmocka_unit_test(decisions_decide_the_digest),
        cmocka_unit_test(guesses_are_drawn_evenly),
        cmocka_unit_test(tallies_add_up),
        cmocka_unit_test(random_traces),
        cmocka_unit_test(giving_way_costs_what_it_costs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

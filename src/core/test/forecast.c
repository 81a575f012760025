/* SPDX-License-Identifier: Apache-2.0 */
/* What is left of a span, what a run ahead sees, and how experience corrects it. */
#include "core/past/forecast.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/unit.h"

#define S(n) ((usec_t)(n)*USEC_SEC)
static const unsigned char SEED[16] = "seed";
static char jobs[100]; /* whose addresses name the jobs */

static struct sched *new_sched(int nodes)
{
    struct sched *s = sched_new(SEED, &(struct sched_limits){.policy = SCHED_POLICY_FAIR});
    struct sched_node table[4] = {{0}};
    static const char *const names[] = {"a", "b", "c", "d"};
    for (int i = 0; i < nodes; i++)
        table[i] = (struct sched_node){.name = names[i], .gpus = 8, .cpus = 8, .usable = true};
    sched_set_nodes(s, table, (size_t)nodes);
    return s;
}

static void enqueue(struct sched *s, int i, double gpus, usec_t p50, usec_t p90, usec_t limit)
{
    char id[16];
    (void)snprintf(id, sizeof(id), "j%d", i); /* fits */
    sched_enqueue(s, &(struct sched_job){.id = id,
                                         .seq = i,
                                         .demand = {.nnodes = 1, .gpus_per_node = gpus},
                                         .queued_at = S(1000),
                                         .expected_p50 = p50,
                                         .expected_p90 = p90,
                                         .limit = limit,
                                         .job = &jobs[i]});
}

static void pass(struct sched *s, usec_t now)
{
    struct sched_decision *d = xcalloc(1, sizeof(*d));
    while (sched_next(s, now, d))
        ;
    free(d);
}

static void left_of_a_span(void **state)
{
    (void)state;
    assert_int_equal(forecast_left(0, S(100), S(200), S(300), 0.5), S(100));
    assert_int_equal(forecast_left(0, S(100), S(200), S(300), 0.9), S(200));
    assert_int_equal(forecast_left(S(100), S(100), S(200), S(300), 0.5), S(62) + USEC_SEC / 2);
    assert_int_equal(forecast_left(S(299), S(100), S(200), S(300), 0.9), S(1));
    assert_int_equal(forecast_left(S(400), S(100), S(200), S(300), 0.9), S(1)); /* about to end */
    assert_int_equal(forecast_left(S(50), 0, 0, 0, 0.5), UINT64_MAX);
    assert_int_equal(forecast_left(0, 0, 0, S(100), 0.5), S(50)); /* only its limit is known */
    assert_in_range(forecast_left(S(9000), S(100), S(100), 0, 0.5), S(1), S(9000));
    usec_t last = UINT64_MAX;
    for (usec_t ran = 0; ran < 300; ran += 7) { /* nothing jumps */
        usec_t left = forecast_left(S(ran), S(100), S(200), S(300), 0.9);
        assert_true(left <= last && left >= USEC_SEC && ran + left / USEC_SEC <= 300);
        last = left;
    }
}

/* One after the other on one node: the waits are the sums of the spans. */
static void a_line(void **state)
{
    (void)state;
    struct sched *s = new_sched(1);
    struct forecast_row rows[4];
    enqueue(s, 0, 8, S(100), S(100), S(100));
    pass(s, S(1000));
    for (int i = 1; i < 4; i++)
        enqueue(s, i, 8, S(100), S(100), S(100));
    struct sched *copy = sched_copy(s);
    assert_int_equal(forecast_run(copy, NULL, S(1040), 4, rows), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_ptr_equal(rows[i].job, &jobs[i + 1]);
        assert_in_range(rows[i].p50, S(1050) + S(100) * i, S(1100) + S(100) * i);
        assert_true(rows[i].p90 >= rows[i].p50);
        assert_int_equal(rows[i].raw50, rows[i].p50 - S(1040));
    }
    assert_int_equal(forecast_run(sched_copy(s), NULL, S(1040), 2, rows), 2); /* the first ones */
    assert_int_equal(sched_queue_length(s), 3); /* nothing happened to the original */
    assert_int_equal(sched_lease_count(s), 1);
    assert_null(sched_check(s));
    sched_free(s);
}

static void what_cannot_be_foreseen(void **state)
{
    (void)state;
    struct sched *s = new_sched(1);
    struct forecast_row rows[4];
    assert_int_equal(forecast_run(sched_copy(s), NULL, S(1000), 4, rows), 0);
    enqueue(s, 0, 8, 0, 0, 0); /* nobody knows how long */
    pass(s, S(1000));
    enqueue(s, 1, 8, S(10), S(10), S(10));
    enqueue(s, 2, 16, S(10), S(10), S(10)); /* never fits */
    assert_int_equal(forecast_run(sched_copy(s), NULL, S(1001), 4, rows), 2);
    assert_int_equal(rows[0].p50, 0);
    assert_int_equal(rows[0].p90, 0);
    assert_int_equal(rows[1].p90, 0);
    struct forecast_error *e = forecast_error_new();
    forecast_error_add(e, &rows[0], S(1001), S(5)); /* teaches nothing, breaks nothing */
    forecast_error_free(e);
    sched_free(s);
}

static void free_nodes_mean_now(void **state)
{
    (void)state;
    struct sched *s = new_sched(2);
    struct forecast_row row;
    enqueue(s, 1, 8, S(10), S(20), S(30));
    assert_int_equal(forecast_run(sched_copy(s), NULL, S(1000), 1, &row), 1);
    assert_int_equal(row.p50, S(1000));
    assert_int_equal(row.p90, S(1000));
    sched_free(s);
}

/* What is told for a wait of about an hour seen ahead, after `e`. */
static struct forecast_row an_hour(const struct forecast_error *e)
{
    struct sched *s = new_sched(1);
    struct forecast_row row;
    enqueue(s, 0, 8, S(3500), S(3600), S(3600));
    pass(s, S(1000));
    enqueue(s, 1, 8, S(10), S(10), S(10));
    assert_int_equal(forecast_run(sched_copy(s), e, S(1000), 1, &row), 1);
    sched_free(s);
    return row;
}

/* Real waits are three times what is seen, give or take: in the end P90 covers nine in ten. */
static void experience_corrects(void **state)
{
    (void)state;
    struct forecast_error *e = forecast_error_new();
    uint64_t seed = 7;
    int covered = 0, early = 0, n = 0;
    for (int i = 0; i < 6000; i++) {
        struct forecast_row row = an_hour(e);
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        usec_t waited = row.raw50 * 2 + row.raw50 / 500 * ((seed >> 33) % 1000); /* 2 … 4 times */
        if (i >= 3000) {
            n++;
            covered += S(1000) + waited <= row.p90;
            early += S(1000) + waited <= row.p50;
        }
        assert_true(row.p50 && row.p50 <= row.p90);
        usec_t later = (usec_t)i * S(3600);
        row.p90 += later;
        forecast_error_add(e, &row, S(1000) + later, waited);
    }
    assert_in_range(covered, n * 85 / 100, n * 95 / 100);
    assert_in_range(early, n * 42 / 100, n * 58 / 100);
    struct forecast_error *copy = forecast_error_copy(e);
    struct forecast_row a = an_hour(e), b = an_hour(copy);
    assert_int_equal(a.p90, b.p90);
    forecast_error_free(copy);
    forecast_error_free(e);
}

/* Sixty jobs, told a day apart, waited for three times what was seen. A thousand that were
 * submitted together then start much sooner than seen: the next is not promised that. */
static void a_batch_is_one_lesson(void **state)
{
    (void)state;
    struct forecast_error *e = forecast_error_new();
    usec_t now = S(1000);
    for (int i = 0; i < 60; i++, now += USEC_DAY) {
        struct forecast_row row = an_hour(e);
        row.p90 += now - S(1000);
        forecast_error_add(e, &row, now, 3 * row.raw50);
    }
    assert_true(an_hour(e).p90 - S(1000) >= S(3600) * 5 / 2);
    for (int i = 0; i < 1000; i++) {
        struct forecast_row row = an_hour(e);
        row.p90 += now - S(1000);
        forecast_error_add(e, &row, now, row.raw50 / 10);
    }
    assert_true(an_hour(e).p90 - S(1000) >= S(3600) * 5 / 2);
    forecast_error_free(e);
}

static void late_is_learnt_at_once(void **state)
{
    (void)state;
    struct forecast_error *e = forecast_error_new();
    usec_t before = an_hour(e).p90, now = S(1000);
    for (int i = 0; i < 20; i++, now += USEC_DAY) {
        struct forecast_row row = an_hour(e), unseen = {0};
        row.p90 += now - S(1000);
        assert_false(forecast_error_late(e, &row, now, row.p90)); /* not yet */
        assert_false(forecast_error_late(e, &unseen, now, row.p90));
        assert_true(forecast_error_late(e, &row, now, row.p90 + S(3600)));
    }
    assert_true(an_hour(e).p90 > before + S(3600));
    forecast_error_free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(left_of_a_span),          cmocka_unit_test(a_line),
        cmocka_unit_test(what_cannot_be_foreseen), cmocka_unit_test(free_nodes_mean_now),
        cmocka_unit_test(experience_corrects),     cmocka_unit_test(a_batch_is_one_lesson),
        cmocka_unit_test(late_is_learnt_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Small worlds of which the waits with and without more nodes are known, and random ones in which
 * more nodes must not lose work. */
#include "core/past/whatif.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/unit.h"

#define S(n) ((usec_t)(n)*USEC_SEC)
#define assert_near(a, b) assert_true(fabs((a) - (b)) < 1e-6)

/* Three jobs of a node each come at once: on one node they wait 0, 100 and 200 s; two more nodes,
 * and nobody waits. */
static void test_two_more(void **state)
{
    struct replay_job jobs[] = {
        {.submit = S(10), .duration = S(100), .limit = S(100), .gpus = 8},
        {.submit = S(10), .duration = S(100), .limit = S(100), .gpus = 8},
        {.submit = S(10), .duration = S(100), .limit = S(100), .gpus = 8},
    };
    struct whatif_facts f = {.jobs = jobs,
                             .n = 3,
                             .nodes = 1,
                             .more = 2,
                             .gpus_per_node = 8,
                             .policy = SCHED_POLICY_FIFO,
                             .from = S(10),
                             .span = S(300)};
    struct whatif w;
    (void)state;
    whatif_run(&f, &w);
    assert_int_equal(w.now.nodes, 1);
    assert_near(w.now.mean_s, 100);
    assert_near(w.now.p95_s, 200);
    assert_near(w.now.utilisation, 1);
    assert_int_equal(w.then.nodes, 3);
    assert_near(w.then.mean_s, 0);
    assert_near(w.then.p95_s, 0);
    assert_near(w.then.utilisation, 1.0 / 3);
}

/* A gang of two nodes never fits one; with one more it starts. One node fewer, and it does not. */
static void test_what_fits(void **state)
{
    struct replay_job jobs[] = {{.submit = S(1), .duration = S(9), .limit = S(9), .gpus = 16}};
    struct whatif_facts f = {.jobs = jobs,
                             .n = 1,
                             .nodes = 1,
                             .more = 1,
                             .gpus_per_node = 8,
                             .policy = SCHED_POLICY_FAIR,
                             .from = S(1),
                             .span = S(60)};
    struct whatif w;
    (void)state;
    whatif_run(&f, &w);
    assert_int_equal(w.now.never, 1);
    assert_int_equal(w.then.never, 0);
    f.nodes = 2;
    f.more = -1;
    whatif_run(&f, &w);
    assert_int_equal(w.now.never, 0);
    assert_int_equal(w.then.never, 1);
    f.n = 0;
    whatif_run(&f, &w);
    assert_near(w.now.mean_s, 0);
}

static uint64_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Jobs of one GPU: a node more never makes the mean wait longer, and enough nodes end all waits. */
static void test_random(void **state)
{
    enum { JOBS = 300, WORLDS = 20 };
    struct replay_job jobs[JOBS];
    uint64_t random = 5;
    (void)state;
    for (int world = 0; world < WORLDS; world++) {
        usec_t at = 0;
        for (size_t i = 0; i < JOBS; i++) {
            at += S(random_next(&random) % 20);
            usec_t ran = S(1 + random_next(&random) % 200);
            jobs[i] = (struct replay_job){.submit = at, .duration = ran, .limit = ran, .gpus = 1};
        }
        struct whatif_facts f = {.jobs = jobs,
                                 .n = JOBS,
                                 .nodes = 1 + world % 4,
                                 .more = 1,
                                 .gpus_per_node = 2,
                                 .policy = SCHED_POLICY_FIFO,
                                 .span = at + 1};
        struct whatif w;
        whatif_run(&f, &w);
        assert_true(w.then.mean_s <= w.now.mean_s + 1e-9);
        f.more = JOBS;
        whatif_run(&f, &w);
        assert_near(w.then.mean_s, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_more),
        cmocka_unit_test(test_what_fits),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

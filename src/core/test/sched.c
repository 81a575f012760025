/* SPDX-License-Identifier: Apache-2.0 */
/* FIFO gang admission: order, gangs whole or not at all, no slot twice. */
#include "core/sched/sched.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/unit.h"

static const unsigned char seed[16] = {7};
static const struct sched_limits no_limits = {0};

static struct demand gang(int nodes, double gpus, double cpus)
{
    return (struct demand){
        .nnodes = nodes, .gpus_per_node = gpus, .cpus_per_node = cpus, .driver_cpus = 1};
}

static void add_to(struct sched *s,
                   const char *id,
                   int seq,
                   int prio,
                   const char *pool,
                   const struct demand *d)
{
    const struct sched_job job = {.id = id,
                                  .seq = seq,
                                  .priority = prio,
                                  .pool = pool,
                                  .demand = *d,
                                  .job = (void *)(uintptr_t)seq};
    sched_enqueue(s, &job);
}

static void add(struct sched *s, const char *id, int seq, int prio, const struct demand *d)
{
    add_to(s, id, seq, prio, "", d);
}

static int next(struct sched *s, struct sched_decision *d)
{
    bool any = sched_next(s, 1, d);
    assert_null(sched_check(s));
    return any ? (int)(uintptr_t)d->job : 0;
}

static void restore(struct sched *s, const struct sched_job *job, const char *nodes)
{
    struct gang gang;
    gang_from_text(nodes, &gang);
    sched_lease_restore(s, job, &gang, 1);
    gang_release(&gang);
}

static void assert_lease(const struct sched *s, const char *id, const char *text)
{
    struct gang gang;
    struct buf out = BUF_INIT(256);
    assert_true(sched_lease_gang(s, id, &gang));
    gang_to_text(&gang, &out);
    assert_string_equal(buf_str(&out), text);
    buf_release(&out);
    gang_release(&gang);
}

static void two_nodes(struct sched *s)
{
    const struct sched_node nodes[] = {
        {.name = "w1", .pool = "h20", .gpus = 4, .cpus = 16, .usable = true},
        {.name = "w2", .pool = "h20,ib", .gpus = 4, .cpus = 16, .usable = true},
        {.name = "head", .pool = "", .gpus = 0, .cpus = 8, .usable = false}};
    sched_set_nodes(s, nodes, 3);
}

/* A node on which ranks are slow is used once the others are full, and by a gang that needs it. */
static void test_a_slow_node_is_used_last(void **state)
{
    (void)state;
    struct sched *s = sched_new(seed, &no_limits);
    struct sched_decision dec;
    struct demand two = gang(1, 2, 4), both = gang(2, 2, 4);
    struct sched_node nodes[] = {
        {.name = "w1", .gpus = 2, .cpus = 16, .usable = true, .slow = true},
        {.name = "w2", .gpus = 8, .cpus = 64, .usable = true}};
    sched_set_nodes(s, nodes, 2);
    add(s, "a", 1, 50, &two); /* the tightest fit is w1 */
    assert_int_equal(next(s, &dec), 1);
    assert_string_equal(dec.driver_node, "w2");
    add(s, "b", 2, 50, &both);
    assert_int_equal(next(s, &dec), 2);
    assert_non_null(strstr(dec.nodes, "w1"));
    sched_lease_end(s, "b", 1);
    nodes[0].slow = false;
    sched_set_nodes(s, nodes, 2);
    add(s, "c", 3, 50, &two);
    assert_int_equal(next(s, &dec), 3);
    assert_string_equal(dec.driver_node, "w1");
    sched_free(s);
}

static void test_order_and_gang(void **state)
{
    (void)state;
    struct sched *s = sched_new(seed, &no_limits);
    struct sched_decision dec;
    struct demand one = gang(1, 4, 4), both = gang(2, 4, 4);
    add(s, "a", 1, 50, &one);
    add(s, "b", 2, 50, &both);
    add(s, "c", 3, 50, &one);
    assert_int_equal(next(s, &dec), 0); /* no nodes yet */
    two_nodes(s);
    assert_int_equal(next(s, &dec), 1);
    assert_int_equal(next(s, &dec), 0); /* b waits for both, c must not pass it */
    struct sched_why why;
    assert_true(sched_explain(s, "c", 1, false, &why));
    assert_string_equal(why.code, "queued_behind");
    assert_int_equal(why.position, 2);
    assert_true(sched_explain(s, "b", 1, false, &why));
    assert_string_equal(why.code, "waiting_for_gpus");
    sched_lease_end(s, "a", 1);
    assert_int_equal(next(s, &dec), 2);
    assert_string_equal(dec.driver_node, dec.nodes[1] == '1' ? "w1" : "w2");
    assert_non_null(strchr(dec.nodes, ','));
    assert_int_equal(next(s, &dec), 0);
    sched_lease_end(s, "b", 1);
    assert_int_equal(next(s, &dec), 3);
    sched_free(s);
}

static const struct sched_look *look_on(struct sched *s, const char *id, const char *node)
{
    static struct sched_look v[8];
    size_t n = sched_look_all(s, id, 1, array_len(v), v);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(v[i].node, node))
            return &v[i];
    return NULL;
}

/* Each node of the pool says by itself why it does not serve; a head that takes no jobs is none. */
static void test_each_node_is_looked_at(void **state)
{
    (void)state;
    const struct sched_limits fair = {.policy = SCHED_POLICY_FAIR};
    struct sched *s = sched_new(seed, &fair);
    struct demand four = gang(1, 4, 4), both = gang(2, 4, 4), fat = gang(1, 8, 4);
    const struct sched_node nodes[] = {
        {.name = "w1", .pool = "h20", .gpus = 4, .cpus = 16, .usable = true},
        {.name = "w2", .pool = "h20", .gpus = 4, .cpus = 16, .usable = true},
        {.name = "w3", .pool = "h20", .gpus = 4, .cpus = 16, .why_not = "draining"},
        {.name = "w4", .pool = "h20", .gpus = 4, .gpus_held = 4, .cpus = 16, .usable = true},
        {.name = "w5", .pool = "a100", .gpus = 4, .cpus = 16, .usable = true},
        {.name = "head", .pool = "h20", .cpus = 8}};
    sched_set_nodes(s, nodes, array_len(nodes));
    const struct sched_job runs = {
        .id = "runs", .pool = "h20", .demand = four, .limit = 100, .job = (void *)1};
    restore(s, &runs, "w1:0+1+2+3");
    add_to(s, "gang", 2, 50, "h20", &both);
    add_to(s, "fat", 3, 50, "h20", &fat);
    assert_int_equal(look_on(s, "gang", "w1")->code, SCHED_LOOK_GPUS);
    assert_int_equal(look_on(s, "gang", "w1")->until, 101);
    assert_true(look_on(s, "gang", "w1")->planned);
    assert_int_equal(look_on(s, "gang", "w2")->code, SCHED_LOOK_SERVES);
    assert_int_equal(look_on(s, "gang", "w3")->code, SCHED_LOOK_AWAY);
    assert_string_equal(look_on(s, "gang", "w3")->state, "draining");
    assert_int_equal(look_on(s, "gang", "w4")->code, SCHED_LOOK_FOREIGN);
    assert_null(look_on(s, "gang", "w5"));
    assert_null(look_on(s, "gang", "head"));
    assert_int_equal(look_on(s, "fat", "w2")->code, SCHED_LOOK_SMALL);
    assert_null(look_on(s, "nobody", "w1"));
    struct sched_end ends[4];
    usec_t at;
    assert_int_equal(sched_ends_before(s, "gang", 1, 4, ends, &at), 1);
    assert_string_equal(ends[0].id, "runs");
    assert_true(ends[0].gpus == 4 && ends[0].at == 101 && at == 101);
    assert_int_equal(sched_ends_before(s, "fat", 1, 4, ends, &at), 0);
    assert_int_equal(at, 0);
    sched_free(s);
}

static void test_too_large_blocks_nobody(void **state)
{
    (void)state;
    struct sched *s = sched_new(seed, &no_limits);
    struct sched_decision dec;
    struct sched_why why;
    struct demand big = gang(3, 4, 4), one = gang(1, 1, 1), cpus = gang(1, 1, 99);
    two_nodes(s);
    add(s, "big", 1, 50, &big);
    add(s, "cpus", 2, 50, &cpus);
    add(s, "one", 3, 50, &one);
    assert_int_equal(next(s, &dec), 3);
    assert_true(sched_explain(s, "big", 1, false, &why));
    assert_string_equal(why.code, "pool_too_small");
    assert_non_null(strstr(why.text, "\"has\":8,\"needs\":12"));
    assert_true(sched_explain(s, "cpus", 1, false, &why));
    assert_string_equal(why.code, "pool_too_small");
    sched_lease_end(s, "one", 1);
    const struct sched_node more[] = {
        {.name = "w1", .pool = "", .gpus = 4, .cpus = 16, .usable = true},
        {.name = "w2", .pool = "", .gpus = 4, .cpus = 16, .usable = true},
        {.name = "w3", .pool = "", .gpus = 4, .cpus = 16, .usable = true}};
    sched_set_nodes(s, more, 3);
    assert_int_equal(next(s, &dec), 1); /* it kept its place */
    sched_free(s);
}

static void test_cpus_count(void **state)
{
    (void)state;
    struct sched *s = sched_new(seed, &no_limits);
    struct sched_decision dec;
    struct sched_why why;
    struct demand d = gang(1, 1, 10);
    two_nodes(s);
    add(s, "a", 1, 50, &d);
    add(s, "b", 2, 50, &d);
    add(s, "c", 3, 50, &d);
    assert_int_equal(next(s, &dec), 1);
    assert_int_equal(next(s, &dec), 2);
    assert_int_equal(next(s, &dec), 0);
    assert_true(sched_explain(s, "c", 1, false, &why));
    assert_string_equal(why.code, "waiting_for_cpus");
    sched_free(s);
}

/* Processes stay on the leased nodes, so half a CPU on each of two is no place for one. */
static void test_extra_cpus_are_whole_on_a_node(void **state)
{
    (void)state;
    struct sched *s = sched_new(seed, &no_limits);
    struct sched_decision dec;
    struct demand fills = gang(1, 1, 12.5), d = gang(2, 1, 2);
    d.extra_cpus = 1;
    two_nodes(s); /* 16 CPUs each */
    add(s, "a", 1, 60, &fills);
    add(s, "b", 2, 60, &fills); /* 2.5 are left on each node */
    assert_int_equal(next(s, &dec), 1);
    assert_int_equal(next(s, &dec), 2);
    d.driver_cpus = 0;
    add(s, "c", 3, 50, &d);
    assert_int_equal(next(s, &dec), 0);
    d.extra_cpus = 0;
    add(s, "d", 4, 55, &d);
    assert_int_equal(next(s, &dec), 4);
    sched_free(s);
}

static void test_pool_labels_priority_and_limit(void **state)
{
    (void)state;
    struct sched *s = sched_new(seed, &(struct sched_limits){.live_jobs = 2});
    struct sched_decision dec;
    struct sched_why why;
    struct demand d = gang(1, 1, 1);
    two_nodes(s);
    add(s, "low", 1, 10, &d);
    add_to(s, "ib", 2, 50, "h20,ib", &d);
    add_to(s, "none", 3, 60, "a100", &d);
    add(s, "late", 4, 10, &d);
    assert_int_equal(next(s, &dec), 2);
    assert_string_equal(dec.nodes, "w2");
    assert_int_equal(next(s, &dec), 1);
    assert_int_equal(next(s, &dec), 0);
    assert_true(sched_explain(s, "late", 1, false, &why));
    assert_string_equal(why.code, "live_jobs_limit");
    sched_free(s);
}

static void test_restore_counts(void **state)
{
    (void)state;
    struct sched *s = sched_new(seed, &no_limits);
    struct sched_decision dec;
    struct demand d = gang(2, 4, 4);
    const struct sched_job old = {.id = "old", .demand = d};
    restore(s, &old, "w1,w2"); /* before the nodes are known */
    two_nodes(s);
    double gpus, cpus;
    sched_node_used(s, "w1", &gpus, &cpus);
    assert_true(gpus > 3.99 && gpus < 4.01 && cpus > 4.99 && cpus < 5.01);
    add(s, "n", 1, 50, &d);
    assert_int_equal(next(s, &dec), 0);
    sched_lease_end(s, "old", 1);
    assert_int_equal(next(s, &dec), 1);
    sched_free(s);
}

/* Slots are named, those of a restored lease are kept; what is held elsewhere is not given. */
static void test_slots_and_held(void **state)
{
    (void)state;
    struct sched *s = sched_new(seed, &no_limits);
    struct sched_decision dec;
    struct sched_pool pool;
    struct demand two = gang(1, 2, 1);
    const struct sched_node nodes[] = {
        {.name = "w1", .gpus = 4, .cpus = 16, .usable = true},
        {.name = "w2", .gpus = 4, .cpus = 16, .gpus_held = 3, .usable = true}};
    const struct sched_job old = {.id = "old", .demand = two};
    sched_set_nodes(s, nodes, 2);
    restore(s, &old, "w1:1+2");
    assert_lease(s, "old", "w1:1+2");
    add(s, "a", 1, 50, &two);
    add(s, "b", 2, 50, &two);
    assert_int_equal(next(s, &dec), 1);
    assert_lease(s, "a", "w1:0+3");
    assert_int_equal(next(s, &dec), 0);
    sched_pool(s, "", 1, &pool);
    assert_float_equal(pool.used, 4, 1e-9);
    assert_float_equal(pool.held, 3, 1e-9);
    assert_float_equal(pool.free, 1, 1e-9);
    struct sched *copy = sched_copy(s);
    assert_null(sched_check(copy));
    sched_lease_end(copy, "old", 1);
    assert_int_equal(next(copy, &dec), 2);
    assert_int_equal(next(s, &dec), 0);
    sched_free(copy);
    sched_free(s);
}

static void test_held_waits(void **state)
{
    (void)state;
    struct sched *s = sched_new(seed, &no_limits);
    struct sched_decision dec;
    struct sched_why why;
    struct demand d = gang(1, 1, 1);
    two_nodes(s);
    add(s, "a", 1, 50, &d);
    sched_set_held(s, "a", true);
    assert_int_equal(next(s, &dec), 0);
    assert_true(sched_explain(s, "a", 1, false, &why));
    assert_string_equal(why.code, "held");
    sched_set_held(s, "a", false);
    sched_set_priority(s, "a", 70);
    add(s, "b", 2, 60, &d);
    assert_int_equal(next(s, &dec), 1);
    assert_int_equal(next(s, &dec), 2);
    sched_free(s);
}

static void ask(struct sched *s, const char *id, const char *project, struct demand d, bool held)
{
    static int seq = 100;
    const struct sched_job job = {.id = id,
                                  .seq = ++seq,
                                  .priority = 50,
                                  .pool = "h20",
                                  .project = project,
                                  .demand = d,
                                  .held = held,
                                  .job = (void *)(uintptr_t)seq};
    sched_enqueue(s, &job);
}

/* Jobs that only GPUs keep waiting, by pool and project. */
static void test_wants(void **state)
{
    (void)state;
    const struct sched_quota none = {.gpus_ceiling = -1,
                                     .cpus = -1,
                                     .gpu_hours_per_month = -1,
                                     .memory = -1,
                                     .running = -1,
                                     .queued = -1,
                                     .share = 1,
                                     .priority_ceiling = 100};
    struct sched_quota barred = none, sure = none;
    struct sched *s = sched_new(seed, &no_limits);
    struct sched_decision dec;
    struct sched_want *v;
    two_nodes(s);
    ask(s, "whole", "vision", gang(1, 4, 1), false);
    ask(s, "cpus", "vision", gang(1, 1, 15), false);
    assert_true(next(s, &dec) && next(s, &dec) && !next(s, &dec));
    barred.running = 0;
    sched_set_quota(s, SCHED_PROJECT, "barred", &barred);
    ask(s, "short of CPUs", "vision", gang(1, 1, 4), false);
    ask(s, "held", "rl", gang(1, 4, 1), true);
    ask(s, "over its quota", "barred", gang(1, 4, 1), false);
    ask(s, "larger than the pool", "rl", gang(3, 4, 1), false);
    ask(s, "waits", "rl", gang(1, 4, 1), false);
    ask(s, "waits, too", "rl", gang(2, 4, 1), false);
    assert_int_equal(next(s, &dec), 0);
    assert_int_equal(sched_wants(s, &v), 1);
    assert_string_equal(v->pool, "h20");
    assert_string_equal(v->project, "rl");
    assert_int_equal(v->amount, 12 * 10000);
    free(v);
    assert_int_equal(sched_wants(s, &v), 1); /* what is remembered of shapes says the same */
    assert_int_equal(v->amount, 12 * 10000);
    free(v);
    sure.gpus_guaranteed = 2.5;
    sched_set_quota(s, SCHED_PROJECT, "rl", &sure);
    sched_set_quota(s, SCHED_USER, "ann", &sure); /* not of a project */
    assert_int_equal(sched_guarantees(s, &v), 1);
    assert_string_equal(v->project, "rl");
    assert_int_equal(v->amount, 25000);
    free(v);
    sched_free(s);
}

static void test_words(void **state)
{
    (void)state;
    for (int p = 0; p < SCHED_POLICY_END; p++)
        assert_int_equal(sched_policy_from_string(sched_policy_to_string((enum sched_policy)p)), p);
    assert_int_equal(sched_policy_from_string("lottery"), SCHED_POLICY_END);
    assert_string_equal(sched_hint_to_string(SCHED_HINT_JOB_END), "job_end");
}

/* The places of those that wait are 1, 2, … without a gap, in the middle of a life too. */
static void expect_places(struct sched *s, int n_jobs)
{
    bool seen[400] = {0};
    int n = 0;
    for (int i = 1; i <= n_jobs; i++) {
        char id[16];
        struct sched_why why;
        (void)snprintf(id, sizeof(id), "j%d", i);
        if (!sched_explain(s, id, 1, false, &why))
            continue;
        assert_in_range(why.position, 1, 399);
        assert_false(seen[why.position]);
        seen[why.position] = true;
        n++;
        if (i % 7 == 0) { /* leaves from anywhere: those behind move up */
            sched_dequeue(s, id);
            expect_places(s, n_jobs);
            return;
        }
    }
    assert_int_equal(n, sched_queue_length(s));
    for (int i = 1; i <= n; i++)
        assert_true(seen[i]);
    assert_null(sched_check(s));
}

/* Random submits, ends, node changes: invariants after each step, and when nothing
 * changes any more everything that fits the pool has run. */
static void test_random_workload(void **state)
{
    (void)state;
    unsigned rng = 42;
    for (int round = 0; round < 30; round++) {
        struct sched *s = sched_new(seed, &no_limits);
        char running[400][16];
        int n_running = 0, seq = 0;
        two_nodes(s);
        for (int step = 0; step < 300; step++) {
            rng = rng * 1664525 + 1013904223;
            struct demand d = gang(1 + (int)(rng >> 10) % 3, (rng >> 14) % 5, 1 + (rng >> 18) % 6);
            char id[16];
            struct sched_decision dec;
            if (rng >> 30) {
                (void)snprintf(id, sizeof(id), "j%d", ++seq);
                add(s, id, seq, (int)(rng >> 22) % 101, &d);
            } else if (n_running) {
                sched_lease_end(s, running[--n_running], 1);
            }
            int got;
            while ((got = next(s, &dec)))
                (void)snprintf(running[n_running++], sizeof(running[0]), "j%d", got);
        }
        expect_places(s, seq);
        struct sched_decision dec;
        while (n_running) {
            sched_lease_end(s, running[--n_running], 1);
            int got;
            while ((got = next(s, &dec)))
                (void)snprintf(running[n_running++], sizeof(running[0]), "j%d", got);
        }
        for (int i = 1; i <= seq; i++) {
            char id[16];
            struct sched_why why;
            (void)snprintf(id, sizeof(id), "j%d", i);
            if (sched_explain(s, id, 1, false, &why))
                assert_string_equal(why.code, "pool_too_small");
        }
        sched_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order_and_gang),
                                       cmocka_unit_test(test_a_slow_node_is_used_last),
                                       cmocka_unit_test(test_each_node_is_looked_at),
                                       cmocka_unit_test(test_too_large_blocks_nobody),
                                       cmocka_unit_test(test_cpus_count),
                                       cmocka_unit_test(test_extra_cpus_are_whole_on_a_node),
                                       cmocka_unit_test(test_pool_labels_priority_and_limit),
                                       cmocka_unit_test(test_restore_counts),
                                       cmocka_unit_test(test_slots_and_held),
                                       cmocka_unit_test(test_held_waits),
                                       cmocka_unit_test(test_words),
                                       cmocka_unit_test(test_wants),
                                       cmocka_unit_test(test_random_workload)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

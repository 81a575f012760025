/* SPDX-License-Identifier: Apache-2.0 */
/* What runs teach, which kind answers, and what is forgotten. */
#include "core/past/learn.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/unit.h"

static const unsigned char SEED[16] = "seed";

static int set_up(void **state)
{
    *state = learn_new(SEED);
    return 0;
}

static int tear_down(void **state)
{
    assert_null(learn_check(*state));
    learn_free(*state);
    return 0;
}

static void add(struct learn *l, struct learn_kind k, uint64_t seconds, int times)
{
    for (int i = 0; i < times; i++) {
        learn_add(l, &k, seconds * USEC_SEC);
        assert_null(learn_check(l));
    }
}

static uint64_t p50(const struct learn *l, struct learn_kind k)
{
    usec_t low = 0, high = 0;
    bool known = learn_expect(l, &k, &low, &high);
    assert_true(low <= high);
    assert_true(!k.limit || high <= k.limit);
    assert_int_equal(known, low > 0);
    return low / USEC_SEC;
}

static void knows_nothing_at_first(void **state)
{
    add(*state, (struct learn_kind){.gpus = 1}, 60, LEARN_ENOUGH - 1);
    assert_int_equal(p50(*state, (struct learn_kind){.gpus = 1}), 0);
    add(*state, (struct learn_kind){.gpus = 1}, 60, 1);
    assert_int_equal(p50(*state, (struct learn_kind){.gpus = 1}), 60);
    assert_int_equal(p50(*state, (struct learn_kind){.gpus = 2}), 0);
}

static void the_narrowest_kind_answers(void **state)
{
    struct learn_kind wide = {.gpus = 8}, pool = {.pool = "a100", .gpus = 8},
                      project = {.project = "nlp", .workload = "ppo", .gpus = 8},
                      user = {.user = "ann", .workload = "ppo", .gpus = 8},
                      named = {.user = "ann", .workload = "ppo", .name = "x-7", .gpus = 8};
    add(*state, wide, 10, LEARN_ENOUGH);
    assert_int_equal(p50(*state, named), 10);
    add(*state, pool, 20, 100);
    assert_int_equal(p50(*state, pool), 20);
    add(*state, project, 30, 100);
    assert_int_equal(p50(*state, project), 30);
    add(*state, user, 40, 100);
    assert_int_equal(p50(*state, user), 40);
    assert_int_equal(p50(*state, named), 40);
    add(*state, named, 50, LEARN_ENOUGH);
    assert_int_equal(p50(*state, named), 50);
    named.name = "x-123"; /* digits do not count */
    assert_int_equal(p50(*state, named), 50);
    named.name = "y-7";
    assert_int_equal(p50(*state, named), 40);
    assert_int_equal(p50(*state, pool), 20);
}

static void only_the_newest_runs_count(void **state)
{
    struct learn_kind k = {.gpus = 1};
    add(*state, k, 1000, 500);
    add(*state, k, 7, LEARN_RUNS);
    usec_t low, high;
    assert_true(learn_expect(*state, &k, &low, &high));
    assert_int_equal(low, 7 * USEC_SEC);
    assert_int_equal(high, 7 * USEC_SEC);
}

static void quantiles_are_those_of_the_runs(void **state)
{
    struct learn_kind k = {.gpus = 1};
    for (uint64_t i = 1; i <= 59; i++)
        add(*state, k, i * 10, 1);
    usec_t low, high;
    assert_true(learn_expect(*state, &k, &low, &high));
    assert_int_equal(low, 300 * USEC_SEC);
    assert_int_equal(high, 540 * USEC_SEC);
}

/* Runs of very different lengths that all used half of their limit: the limit tells. */
static void a_careful_limit_tells(void **state)
{
    static const uint64_t spans[] = {10, 100000, 50, 7000, 300, 20000};
    for (size_t i = 0; i < array_len(spans); i++)
        add(*state, (struct learn_kind){.gpus = 1, .limit = 2 * spans[i] * USEC_SEC}, spans[i], 1);
    assert_int_equal(p50(*state, (struct learn_kind){.gpus = 1, .limit = 1234 * USEC_SEC}), 617);
    assert_int_equal(p50(*state, (struct learn_kind){.gpus = 1}), 3650); /* between 300 and 7000 */
}

/* The same limit on everything tells nothing. */
static void a_careless_limit_does_not(void **state)
{
    for (uint64_t i = 0; i < 20; i++)
        add(*state, (struct learn_kind){.gpus = 1, .limit = USEC_DAY}, 100 + i, 1);
    usec_t low, high;
    struct learn_kind k = {.gpus = 1, .limit = 2 * USEC_DAY};
    assert_true(learn_expect(*state, &k, &low, &high));
    assert_true(low < 120 * USEC_SEC);
    k.limit = 50 * USEC_SEC; /* but nothing is expected beyond it */
    assert_true(learn_expect(*state, &k, &low, &high));
    assert_int_equal(low, 50 * USEC_SEC);
    assert_int_equal(high, 50 * USEC_SEC);
}

static void a_run_of_no_time_is_something(void **state)
{
    usec_t low = 0, high = 0;
    struct learn_kind k = {.gpus = 0, .limit = USEC_SEC};
    add(*state, k, 0, LEARN_ENOUGH);
    assert_true(learn_expect(*state, &k, &low, &high));
    assert_true(low >= 1 && high >= low);
}

static void old_kinds_are_forgotten(void **state)
{
    struct learn_kind seldom = {.gpus = 1, .user = "seldom"}, often = {.gpus = 1, .user = "often"};
    for (int i = 0; i < LEARN_ENOUGH; i++) {
        learn_add(*state, &seldom, USEC_MIN);
        learn_add(*state, &often, USEC_MIN);
    }
    for (int i = 0; i < LEARN_KINDS; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "u%d", i); /* fits */
        struct learn_kind k = {.gpus = 1, .user = name};
        learn_add(*state, &k, USEC_SEC);
        if (i % 100 == 0)
            learn_add(*state, &often, USEC_MIN);
    }
    assert_int_equal(p50(*state, often), 60);
    assert_int_equal(p50(*state, seldom), 1); /* the gang's size alone answers */
}

/* Random runs: never a broken invariant, never an answer outside its bounds. */
static void random_runs(void **state)
{
    uint64_t seed = 42;
    for (int i = 0; i < 20000; i++) {
        char user[8], name[8];
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        uint64_t r = seed >> 16;
        (void)snprintf(user, sizeof(user), "u%u", (unsigned)(r % 7));     /* fits */
        (void)snprintf(name, sizeof(name), "n%u", (unsigned)(r / 7 % 5)); /* fits */
        struct learn_kind k = {.user = user,
                               .name = r / 35 % 2 ? name : NULL,
                               .pool = r / 70 % 3 ? "p" : NULL,
                               .gpus = (double)(r / 210 % 4),
                               .limit = r / 840 % 3 ? r / 2520 % 100000 * USEC_SEC : 0};
        learn_add(*state, &k, r / 11 % 100000 * USEC_SEC);
        (void)p50(*state, k);
        if (i % 100 == 0)
            assert_null(learn_check(*state));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(knows_nothing_at_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_narrowest_kind_answers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_the_newest_runs_count, set_up, tear_down),
        cmocka_unit_test_setup_teardown(quantiles_are_those_of_the_runs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_careful_limit_tells, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_careless_limit_does_not, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_run_of_no_time_is_something, set_up, tear_down),
        cmocka_unit_test_setup_teardown(old_kinds_are_forgotten, set_up, tear_down),
        cmocka_unit_test_setup_teardown(random_runs, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

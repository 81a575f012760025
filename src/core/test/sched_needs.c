/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs whose code asks for versions: they go to nodes that are not known to lack them, and who
 * waits for such a node is told which do not fit, and which pool would do. */
#include <string.h>

#include "base/message.h"
#include "base/unit.h"
#include "sched_world.h"

static const struct sched_limits no_limits = {.policy = SCHED_POLICY_FAIR};

/* Two nodes with torch 1, one with torch 3, one that nobody looked at, in this order. */
static struct world *some_world(const char *old_label, const char *new_label, bool want_unseen)
{
    struct world *w = world_new(1, &no_limits);
    world_add_nodes(w, 2, old_label, 8, 64);
    world_add_nodes(w, 1, new_label, 8, 64);
    if (want_unseen)
        world_add_nodes(w, 1, new_label, 8, 64);
    w->nodes[0].torch = w->nodes[1].torch = 1;
    w->nodes[2].torch = 3;
    world_tell_nodes(w);
    return w;
}

static struct world_job *needy(struct world *w, int nnodes, const char *pool, int torch)
{
    struct world_job *j = world_job(w, nnodes, 8, USEC_HOUR, USEC_HOUR);
    (void)snprintf(j->pool, sizeof(j->pool), "%s", pool);
    j->torch = torch;
    return j;
}

static void expect_reason(struct world *w,
                          const struct world_job *j,
                          const char *code,
                          const char *says)
{
    struct sched_why why;
    char text[512];
    assert_true(sched_explain(w->s, j->id, w->now, true, &why));
    assert_string_equal(why.code, code);
    message_to_string(why.code, why.text, true, text, sizeof(text));
    if (!strstr(text, says))
        fail_msg("'%s' is not in '%s'", says, text);
}

/* What is known not to fit is left alone, what nobody looked at is taken. */
static void test_only_where_it_fits(void **state)
{
    struct world *w = some_world("a", "a", true);
    struct world_job *one = needy(w, 1, "a", 2), *two = needy(w, 1, "a", 2);
    struct world_job *third = needy(w, 1, "a", 2), *any = needy(w, 1, "a", 0);
    (void)state;
    world_submit(w, one);
    world_submit(w, two);
    world_submit(w, third);
    world_submit(w, any);
    world_pass(w);
    assert_int_equal(one->state, WORLD_RUNS);
    assert_int_equal(two->state, WORLD_RUNS);
    assert_int_equal(third->state, WORLD_WAITS);
    assert_int_equal(any->state, WORLD_RUNS); /* the third does not want those nodes */
    assert_int_equal(strncmp(one->slots, "n3", 2), 0);
    assert_int_equal(strncmp(two->slots, "n4", 2), 0);
    expect_reason(w, third, "waiting_for_gpus", "0 of 16 are free");
    expect_reason(w, third, "waiting_for_gpus", "(2 nodes do not fit)");
    world_free(w);
}

static void test_none_fits(void **state)
{
    struct world *w = some_world("a", "b", false);
    struct world_job *j = needy(w, 1, "a", 2), *large = needy(w, 4, "a", 2);
    struct sched_why why;
    (void)state;
    world_submit(w, j);
    world_submit(w, large);
    world_pass(w);
    assert_int_equal(j->state, WORLD_WAITS);
    expect_reason(
        w, j, "nodes_unfit",
        "needs 1 node that fits its snapshots, 0 are there: n1, n2 do not (torch>=2, and there is 1)");
    assert_true(sched_explain(w->s, j->id, w->now, true, &why));
    assert_int_equal(why.hint.kind, SCHED_HINT_POOL);
    assert_string_equal(why.hint.pool, "b");
    expect_reason(w, large, "pool_too_small", "(2 more do not)");
    w->nodes[0].torch = 2; /* another image */
    world_tell_nodes(w);
    world_pass(w);
    assert_int_equal(j->state, WORLD_RUNS);
    world_free(w);
}

/* The one that would fit is away: that is what has to change. */
static void test_the_fitting_one_is_away(void **state)
{
    struct world *w = some_world("a", "a", false);
    struct world_job *j = needy(w, 1, "a", 2);
    struct sched_why why;
    (void)state;
    w->nodes[2].usable = false;
    (void)snprintf(w->nodes[2].why_not, sizeof(w->nodes[2].why_not), "draining");
    world_tell_nodes(w);
    world_submit(w, j);
    world_pass(w);
    expect_reason(w, j, "nodes_not_usable", "'n3' is draining");
    assert_true(sched_explain(w->s, j->id, w->now, true, &why));
    assert_int_equal(why.hint.kind, SCHED_HINT_NODE);
    assert_string_equal(why.hint.node, "n3");
    world_free(w);
}

static void test_the_list(void **state)
{
    struct world *w = some_world("a", "a", true);
    struct sched_gap gap;
    size_t pos = 0;
    (void)state;
    assert_true(sched_gap_next(w->s, "a", "torch>=2", &pos, &gap));
    assert_string_equal(gap.node, "n1");
    assert_string_equal(gap.lacks.has, "1");
    assert_true(sched_gap_next(w->s, "a", "torch>=2", &pos, &gap));
    assert_true(sched_gap_next(w->s, "a", "torch>=2", &pos, &gap));
    assert_string_equal(gap.node, "n4"); /* nobody looked */
    assert_string_equal(gap.lacks.need, "torch>=2");
    assert_string_equal(gap.lacks.has, "");
    assert_false(sched_gap_next(w->s, "a", "torch>=2", &pos, &gap));
    struct demand d = {.nnodes = 2, .gpus_per_node = 8};
    assert_true(sched_fits_empty(w->s, "a", "torch>=2", &d));
    d.nnodes = 3;
    assert_false(sched_fits_empty(w->s, "a", "torch>=2", &d));
    assert_int_equal(sched_largest_gang(w->s, "a", "torch>=2", &d), 2);
    assert_int_equal(sched_largest_gang(w->s, "a", NULL, &d), 4);
    world_free(w);
}

/* A node that is shut but to one pool takes its jobs alone, whatever its labels. */
static void test_only_the_jobs_of_one_pool(void **state)
{
    struct world *w = world_new(1, &no_limits);
    world_add_nodes(w, 2, "a", 8, 64);
    (void)snprintf(w->nodes[1].only, sizeof(w->nodes[1].only), "check");
    world_tell_nodes(w);
    struct world_job *of_pool = needy(w, 1, "a", 0), *any = needy(w, 1, "", 0);
    struct world_job *check = needy(w, 1, "check", 0);
    struct sched_pool pool;
    (void)state;
    sched_pool(w->s, "a", w->now, &pool);
    assert_true(pool.free > 7 && pool.free < 9 && pool.bad > 7);
    world_submit(w, of_pool);
    world_submit(w, any);
    world_submit(w, check);
    world_pass(w);
    assert_int_equal(strncmp(of_pool->slots, "n1", 2), 0);
    assert_int_equal(any->state, WORLD_WAITS);
    assert_int_equal(strncmp(check->slots, "n2", 2), 0);
    world_end(w, check, false);
    w->nodes[1].only[0] = 0;
    world_tell_nodes(w);
    world_pass(w);
    assert_int_equal(strncmp(any->slots, "n2", 2), 0);
    world_free(w);
}

/* Memory that a job states is counted on the nodes whose memory is known. */
static void test_memory(void **state)
{
    struct world *w = world_new(1, &no_limits);
    world_add_nodes(w, 1, "a", 8, 64);
    w->nodes[0].memory = 100;
    world_tell_nodes(w);
    struct world_job *v[3];
    (void)state;
    for (int i = 0; i < 3; i++) {
        v[i] = world_job(w, 1, 1, USEC_HOUR, USEC_HOUR);
        v[i]->j.demand.memory_per_node = i < 2 ? 60 : 0;
        world_submit(w, v[i]);
    }
    struct world_job *large = world_job(w, 1, 1, USEC_HOUR, USEC_HOUR);
    large->j.demand.memory_per_node = 200;
    world_submit(w, large);
    world_pass(w);
    assert_int_equal(v[0]->state, WORLD_RUNS);
    assert_int_equal(v[1]->state, WORLD_WAITS);
    assert_int_equal(v[2]->state, WORLD_RUNS); /* states none */
    expect_reason(w, v[1], "waiting_for_memory", "needs 1 x 60 GiB of memory");
    expect_reason(w, large, "pool_too_small", "and 200 GiB of memory each");
    world_end(w, v[0], false);
    world_pass(w);
    assert_int_equal(v[1]->state, WORLD_RUNS);
    w->nodes[0].memory = 0; /* nobody knows any more */
    world_tell_nodes(w);
    world_pass(w);
    assert_int_equal(large->state, WORLD_RUNS);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_where_it_fits),        cmocka_unit_test(test_none_fits),
        cmocka_unit_test(test_the_fitting_one_is_away),   cmocka_unit_test(test_the_list),
        cmocka_unit_test(test_only_the_jobs_of_one_pool), cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

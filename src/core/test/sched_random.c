/* SPDX-License-Identifier: Apache-2.0 */
/* Random operations by the hundred thousand, seeded: the rules that hold always (sched_world.c),
 * the same decisions from the same calls, and from a copy. The world's own books are kept with
 * every decision; the scheduler's whole _check() runs around every CHECK_EVERY-th operation, and
 * around each one of every tenth life. ARGUS_SCHED_OPS: how many operations (nightly: more). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/unit.h"
#include "sched_world.h"

enum { CHECK_EVERY = 8, OPS = 200000, OPS_OF_LIFE = 1000 };

static void some_nodes(struct world *w)
{
    static const char *const labels[] = {"h20", "h20,ib", "a100", "a100,ib", ""};
    for (int i = 0; i < 5; i++)
        world_add_nodes(w, 1 + (int)world_random(w, 3), labels[i], 1 << world_random(w, 4),
                        4 + (int)world_random(w, 28));
    for (int i = 0; i < w->n_nodes; i++) {
        w->nodes[i].shareable = world_random(w, 3) == 0;
        w->nodes[i].torch = (int)world_random(w, 4);
        w->nodes[i].memory = 64 * (int)world_random(w, 3);
        if (world_random(w, 2))
            (void)snprintf(w->nodes[i].network, sizeof(w->nodes[i].network), "sw%u",
                           world_random(w, 3));
    }
    world_tell_nodes(w);
}

static void random_job(struct world *w)
{
    static const char *const pools[] = {"",       "",     "h20", "a100", "ib",
                                        "h20,ib", "gone", "h20", "check"};
    static const double gpus[] = {0, 0.25, 0.5, 1, 1, 2, 4, 8};
    double g = gpus[world_random(w, 8)];
    int nnodes = g < 1 ? 1 : 1 + (int)world_random(w, 3);
    usec_t limit = world_random(w, 4) ? (1 + world_random(w, 100)) * USEC_MIN : 0;
    usec_t lasts = 1 + world_random(w, 100) * USEC_MIN;
    struct world_job *j = world_job(w, nnodes, g, limit, limit && limit < lasts ? limit : lasts);
    (void)snprintf(j->pool, sizeof(j->pool), "%s", pools[world_random(w, 9)]);
    (void)snprintf(j->project, sizeof(j->project), "p%u", world_random(w, 3));
    (void)snprintf(j->user, sizeof(j->user), "u%u", world_random(w, 4));
    j->torch = world_random(w, 3) ? 0 : 1 + (int)world_random(w, 4);
    j->j.priority = world_random(w, 3) ? 50 : (int)world_random(w, 101);
    j->j.demand.cpus_per_node = world_random(w, 6);
    j->j.demand.extra_cpus = world_random(w, 4);
    j->j.demand.memory_per_node = world_random(w, 2) ? 0 : 8 * world_random(w, 20);
    j->j.restartable = world_random(w, 2);
    j->j.held = world_random(w, 8) == 0;
    j->j.expected_p50 = world_random(w, 2) ? lasts / 2 + 1 : 0;
    j->j.avoid = world_random(w, 8) ? NULL : "n1,n3";
    world_submit(w, j);
}

static struct world_job *any(struct world *w, enum world_state state)
{
    uint32_t from = world_random(w, (uint32_t)w->n_jobs + 1);
    for (int i = 0; i < w->n_jobs; i++) {
        struct world_job *j = &w->jobs[(from + (uint32_t)i) % (uint32_t)w->n_jobs];
        if (j->state == state)
            return j;
    }
    return NULL;
}

static void change_node(struct world *w)
{
    struct world_node *n = &w->nodes[world_random(w, (uint32_t)w->n_nodes)];
    if (world_random(w, 3)) {
        n->usable = !n->usable;
        (void)snprintf(n->why_not, sizeof(n->why_not), "draining");
    } else if (*n->only || world_random(w, 8) == 0) {
        (void)snprintf(n->only, sizeof(n->only), "%s", *n->only ? "" : "check");
    } else if (world_random(w, 2)) {
        n->held = (int)world_random(w, 3);
    } else {
        n->torch = (int)world_random(w, 4); /* another image, or the first probe */
    }
    world_tell_nodes(w);
}

static void change_quota(struct world *w)
{
    struct sched_quota q = {.gpus_guaranteed = (int)world_random(w, 8),
                            .gpus_ceiling = world_random(w, 3) ? -1 : 4 + (int)world_random(w, 12),
                            .cpus = -1,
                            .gpu_hours_per_month = world_random(w, 4) ? -1 : 50,
                            .running = world_random(w, 4) ? -1 : (int)world_random(w, 6),
                            .queued = -1,
                            .share = 1 + world_random(w, 3),
                            .priority_ceiling = world_random(w, 3) ? -1 : 40};
    char name[8];
    bool user = world_random(w, 3) == 0;
    (void)snprintf(name, sizeof(name), "%c%u", user ? 'u' : 'p', world_random(w, 4));
    sched_set_quota(w->s, user ? SCHED_USER : SCHED_PROJECT, name, world_random(w, 4) ? &q : NULL);
}

/* A copy decides what the original decides. */
static void compare_copy(struct world *w)
{
    struct sched *c = sched_copy(w->s), *again = sched_copy(w->s);
    struct sched_decision a, b;
    bool more = true;
    assert_null(sched_check(c));
    while (more) {
        more = sched_next(c, w->now, &a);
        assert_int_equal(sched_next(again, w->now, &b), more);
        if (!more)
            break;
        assert_ptr_equal(a.job, b.job);
        assert_int_equal(a.verb, b.verb);
        assert_string_equal(a.nodes, b.nodes);
    }
    assert_null(sched_check(c));
    sched_free(again);
    sched_free(c);
}

/* Each job that waits is at exactly one place, and is told so. */
static void compare_places(struct world *w)
{
    size_t n = 0;
    for (struct world_job *j; (j = sched_queue_at(w->s, n, w->now)); n++)
        assert_int_equal(j->state, WORLD_WAITS);
    assert_int_equal(n, sched_queue_length(w->s));
}

/* What a look costs: nothing may change by it. */
static void look(struct world *w)
{
    struct world_job *j = any(w, WORLD_WAITS);
    struct sched_why why;
    if (!j)
        return;
    assert_true(sched_explain(w->s, j->id, w->now, false, &why));
    assert_true(*why.text && *why.code);
    assert_true(why.position > 0 || j->j.held);
}

/* One that saves no more does not give way any more: it may be asked another time. */
static void random_save(struct world *w, struct world_job *j)
{
    usec_t every = world_random(w, 3) * 10 * USEC_MIN;
    sched_lease_saves(w->s, j->id, w->now, every);
    if (!every && j->at_save)
        j->told = 0;
}

static void random_step(struct world *w)
{
    struct world_job *j;
    switch (world_random(w, 17)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
        random_job(w);
        break;
    case 5:
    case 6:
    case 7:
        (void)world_step(w);
        break;
    case 8:
        if ((j = any(w, WORLD_WAITS))) {
            sched_dequeue(w->s, j->id);
            j->state = WORLD_OVER;
        }
        break;
    case 9:
        if ((j = any(w, WORLD_RUNS)))
            world_end(w, j, j->j.restartable);
        break;
    case 10:
        change_node(w);
        break;
    case 11:
        change_quota(w);
        break;
    case 12:
        if ((j = any(w, WORLD_WAITS)))
            sched_set_held(w->s, j->id, j->j.held = !j->j.held);
        break;
    case 13:
        if ((j = any(w, WORLD_WAITS)))
            sched_set_priority(w->s, j->id, (int)world_random(w, 120) - 10);
        break;
    case 14:
        look(w);
        break;
    case 15:
        if ((j = any(w, WORLD_RUNS)))
            random_save(w, j);
        break;
    default:
        w->now += world_random(w, 3 * 3600) * USEC_SEC;
        break;
    }
    if (w->checks)
        assert_null(sched_check(w->s));
}

static uint64_t random_life(uint64_t seed, enum sched_policy policy, int steps, long *starts)
{
    struct sched_limits limits = {.policy = policy,
                                  .live_jobs = seed % 5 ? 0 : 7,
                                  .starve_after = 6 * USEC_HOUR,
                                  .default_limit = seed % 2 ? USEC_DAY : 0,
                                  .reclaim_grace = 5 * USEC_MIN};
    struct world *w = world_new(seed, &limits);
    some_nodes(w);
    for (int i = 0; i < steps; i++) {
        w->checks = seed % 10 == 0 || i % CHECK_EVERY == 0;
        random_step(w);
        if (world_random(w, 4))
            world_pass(w);
        if (i % 64 == 0) {
            compare_copy(w);
            compare_places(w);
        }
    }
    uint64_t hash = w->hash;
    *starts += w->starts;
    world_free(w);
    return hash;
}

static void test_random_lives(void **state)
{
    (void)state;
    const char *asked = getenv("ARGUS_SCHED_OPS");
    long ops = asked ? strtol(asked, NULL, 10) : OPS;
    assert_in_range(ops, OPS_OF_LIFE, INT32_MAX); /* a typo must not mean: none */
    long starts = 0;
    for (long seed = 1; seed <= ops / OPS_OF_LIFE; seed++)
        (void)random_life((uint64_t)seed, (enum sched_policy)(seed % SCHED_POLICY_END), OPS_OF_LIFE,
                          &starts);
    assert_true(starts > ops / 20); /* of all: a quota of nothing may bar nearly all of one life */
}

static void test_same_calls_same_decisions(void **state)
{
    (void)state;
    for (uint64_t seed = 100; seed < 104; seed++) {
        long starts = 0;
        uint64_t hash = random_life(seed, SCHED_POLICY_FAIR, 800, &starts);
        assert_true(starts > 0 && hash == random_life(seed, SCHED_POLICY_FAIR, 800, &starts));
        assert_true(hash != random_life(seed + 50, SCHED_POLICY_FAIR, 800, &starts));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_lives),
                                       cmocka_unit_test(test_same_calls_same_decisions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

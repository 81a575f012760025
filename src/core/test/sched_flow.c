/* SPDX-License-Identifier: Apache-2.0 */
/* The policy flow in random worlds where jobs save and give way: sched_check() and the world's own
 * books after each step (no slot twice, gangs whole), who is asked and when, how often one is set
 * back and how long anybody waits, the same decisions from the same calls; and that other policies
 * do not look at any of it. */
#include <stdio.h>
#include <stdlib.h>

#include "base/unit.h"
#include "sched_world.h"

enum { LIVES = 24, JOBS = 120, NODES = 4, NODE_GPUS = 8 };
#define QUANTUM (80 * USEC_MIN)
#define BACK_WITHIN USEC_DAY
#define LATE (30 * USEC_SEC) /* a checkpoint was just completed */

/* What the test knows of a job beside the world. */
struct saver {
    usec_t every, done; /* 0: it does not save */
    int set_backs;
    int ahead;         /* jobs that waited when this stay in line began */
    usec_t ran, since; /* of earlier attempts; when it was queued last */
};

struct life {
    struct world *w;
    struct saver of[WORLD_JOBS];
    bool all_save;
    usec_t longest; /* limit */
    int wanted, unwanted, back;
};

static struct saver *saver_of(struct life *l, const struct world_job *j)
{
    return &l->of[j - l->w->jobs];
}

static void come(struct life *l, struct world_job *j)
{
    struct saver *v = saver_of(l, j);
    v->since = l->w->now;
    v->ahead = (int)sched_queue_length(l->w->s);
    world_submit(l->w, j);
}

static void new_job(struct life *l)
{
    struct world *w = l->w;
    static const int gpus[] = {1, 1, 1, 2, 4, 8};
    int g = gpus[world_random(w, 6)];
    usec_t lasts = (1 + world_random(w, 60)) * USEC_MIN;
    if (world_random(w, 4) == 0)
        lasts *= 1 + world_random(w, 60);
    usec_t limit = lasts * (1 + world_random(w, 3));
    struct world_job *j = world_job(w, g == 8 ? 1 + (int)world_random(w, 3) : 1, g, limit, lasts);
    struct saver *v = saver_of(l, j);
    j->j.restartable = l->all_save || world_random(w, 3) > 0;
    v->every = l->all_save || world_random(w, 4) ? (1 + world_random(w, 3)) * 10 * USEC_MIN : 0;
    j->j.priority = world_random(w, 8) ? 50 : 40 + (int)world_random(w, 20);
    j->j.expected_p50 = world_random(w, 3) ? 0 : lasts * (1 + world_random(w, 3)) / 2;
    l->longest = limit > l->longest ? limit : l->longest;
    come(l, j);
}

/* ---- what a pass did ---- */

static void expect_bound(struct life *l, const struct world_job *j)
{
    const struct saver *v = saver_of(l, j);
    assert_true(l->w->now - v->since <= BACK_WITHIN + (usec_t)(v->ahead + 1) * l->longest);
}

static void expect_asked(struct life *l, const struct world_job *j)
{
    const struct saver *v = saver_of(l, j);
    assert_true(j->j.restartable && v->every); /* it can go on from something */
    assert_true(j->at_save >= l->w->now && j->at_save >= j->started_at + QUANTUM);
    assert_true((j->at_save - j->started_at) % v->every <= LATE); /* at a checkpoint */
}

static void flow_pass(struct life *l)
{
    struct world *w = l->w;
    int states[WORLD_JOBS], told[WORLD_JOBS];
    for (int i = 0; i < w->n_jobs; i++) {
        states[i] = w->jobs[i].state;
        told[i] = w->jobs[i].told;
    }
    world_pass(w);
    for (int i = 0; i < w->n_jobs; i++) {
        struct world_job *j = &w->jobs[i];
        if (j->state == WORLD_RUNS && states[i] == WORLD_WAITS) {
            expect_bound(l, j);
            told[i] = 0;
            j->lasts -= saver_of(l, j)->done;
            saver_of(l, j)->done = 0;
            if (saver_of(l, j)->every)
                sched_lease_saves(w->s, j->id, w->now, saver_of(l, j)->every);
        }
        if (j->state == WORLD_RUNS && j->told > told[i])
            expect_asked(l, j);
    }
}

static void give_way(struct life *l, struct world_job *j)
{
    struct saver *v = saver_of(l, j);
    struct world *w = l->w;
    j->told = 0;
    if (!sched_is_wanted_back(w->s, j->id, w->now)) {
        l->unwanted++;
        return;
    }
    l->wanted++;
    usec_t ran = w->now - j->started_at;
    v->done = ran - ran % v->every; /* what came after the checkpoint is done again */
    v->ran += ran;
    v->set_backs++;
    l->back++;
    assert_true((usec_t)v->set_backs * QUANTUM <= v->ran); /* once in each quantum that it ran */
    j->j.served += v->done;
    world_end(w, j, false);
    j->j.queued_at = w->now;
    come(l, j);
}

/* The next end or checkpoint of a lease that gives way. */
static bool flow_step(struct life *l)
{
    struct world *w = l->w;
    struct world_job *next = NULL;
    usec_t at = UINT64_MAX;
    for (int i = 0; i < w->n_jobs; i++) {
        struct world_job *j = &w->jobs[i];
        if (j->state != WORLD_RUNS)
            continue;
        usec_t then = j->started_at + j->lasts;
        then = j->told && j->at_save < then ? j->at_save : then;
        if (then < at) {
            next = j;
            at = then;
        }
    }
    if (!next)
        return false;
    w->now = at > w->now ? at : w->now;
    if (next->told && w->now < next->started_at + next->lasts)
        give_way(l, next);
    else
        world_end(w, next, false);
    flow_pass(l);
    return true;
}

static uint64_t flow_life(uint64_t seed, enum sched_policy policy, int *ret_back, int *ret_unwanted)
{
    struct sched_limits limits = {.policy = policy,
                                  .flow = {.quantum = QUANTUM, .back_within = BACK_WITHIN}};
    struct life *l = xcalloc(1, sizeof(*l));
    l->w = world_new(seed, &limits);
    l->all_save = seed % 2;
    world_add_nodes(l->w, NODES, "", NODE_GPUS, 64);
    for (int i = 0; i < JOBS; i++) {
        new_job(l);
        flow_pass(l);
        for (uint32_t n = world_random(l->w, 3); n > 0 && flow_step(l); n--)
            ;
    }
    while (flow_step(l))
        ;
    for (int i = 0; i < l->w->n_jobs; i++)
        assert_int_equal(l->w->jobs[i].state, WORLD_OVER); /* nobody is left behind */
    uint64_t hash = l->w->hash;
    *ret_back += l->back;
    *ret_unwanted += l->unwanted;
    world_free(l->w);
    free(l);
    return hash;
}

static void test_random_lives(void **state)
{
    (void)state;
    int back = 0, unwanted = 0;
    for (uint64_t seed = 1; seed <= LIVES; seed++)
        (void)flow_life(seed, SCHED_POLICY_FLOW, &back, &unwanted);
    assert_true(back > LIVES && unwanted > 0); /* both were met */
}

static void test_same_calls_same_decisions(void **state)
{
    (void)state;
    int n = 0;
    uint64_t hash = flow_life(3, SCHED_POLICY_FLOW, &n, &n);
    assert_true(hash == flow_life(3, SCHED_POLICY_FLOW, &n, &n));
    assert_true(hash != flow_life(5, SCHED_POLICY_FLOW, &n, &n));
}

/* ---- one case, step by step ---- */

static void test_a_long_job_gives_way_after_its_checkpoint(void **state)
{
    (void)state;
    struct sched_limits limits = {.policy = SCHED_POLICY_FLOW};
    struct world *w = world_new(1, &limits);
    world_add_nodes(w, 1, "", 8, 64);
    struct world_job *longer = world_job(w, 1, 8, 100 * USEC_HOUR, 90 * USEC_HOUR);
    longer->j.restartable = true;
    world_submit(w, longer);
    world_pass(w);
    w->now += 2 * USEC_HOUR;
    struct world_job *brief = world_job(w, 1, 1, USEC_HOUR, USEC_MIN);
    world_submit(w, brief);
    world_pass(w);
    assert_int_equal(longer->told, 0); /* nothing is known of its checkpoints */
    sched_lease_saves(w->s, longer->id, w->now - USEC_MIN, 30 * USEC_MIN);
    world_pass(w);
    assert_int_equal(longer->told, 1);
    assert_true(longer->at_save == w->now + 29 * USEC_MIN);
    struct sched_why why;
    assert_true(sched_explain(w->s, brief->id, w->now, false, &why));
    assert_string_equal(why.code, "giving_way");
    usec_t at;
    void *first;
    assert_true(sched_promise(w->s, "", w->now, &first, &at));
    assert_ptr_equal(first, brief);
    assert_true(at == longer->at_save);
    w->now = longer->at_save;
    assert_true(sched_is_wanted_back(w->s, longer->id, w->now));
    longer->j.served = w->now - longer->started_at;
    world_end(w, longer, true);
    world_pass(w);
    assert_int_equal(brief->state, WORLD_RUNS);
    assert_int_equal(longer->state, WORLD_WAITS);
    w->now += USEC_MIN;
    world_end(w, brief, false);
    world_pass(w);
    assert_int_equal(longer->state, WORLD_RUNS);
    world_free(w);
}

/* Who found room meanwhile needs none: the long job stays, and may be asked another time. */
static void test_not_wanted_any_more(void **state)
{
    (void)state;
    struct sched_limits limits = {.policy = SCHED_POLICY_FLOW};
    struct world *w = world_new(1, &limits);
    world_add_nodes(w, 1, "", 8, 64);
    struct world_job *longer = world_job(w, 1, 8, 100 * USEC_HOUR, 90 * USEC_HOUR);
    longer->j.restartable = true;
    world_submit(w, longer);
    world_pass(w);
    w->now += 2 * USEC_HOUR;
    sched_lease_saves(w->s, longer->id, w->now - USEC_MIN, 30 * USEC_MIN);
    struct world_job *brief = world_job(w, 1, 1, USEC_HOUR, USEC_MIN);
    world_submit(w, brief);
    world_pass(w);
    assert_int_equal(longer->told, 1);
    sched_dequeue(w->s, brief->id);
    brief->state = WORLD_OVER;
    w->now = longer->at_save;
    assert_false(sched_is_wanted_back(w->s, longer->id, w->now));
    assert_null(sched_check(w->s));
    longer->told = 0;
    struct world_job *again = world_job(w, 1, 1, USEC_HOUR, USEC_MIN);
    world_submit(w, again);
    world_pass(w);
    assert_int_equal(longer->told, 1);
    world_free(w);
}

/* What a guarantee covers gives way to no other project, and a higher priority goes before. */
static void test_quotas_and_priorities_stand_above(void **state)
{
    (void)state;
    for (int covered = 0; covered < 2; covered++)
        for (int higher = 0; higher < 2; higher++) {
            struct sched_limits limits = {.policy = SCHED_POLICY_FLOW};
            struct sched_quota q = {.gpus_guaranteed = 8,
                                    .gpus_ceiling = -1,
                                    .cpus = -1,
                                    .gpu_hours_per_month = -1,
                                    .memory = -1,
                                    .running = -1,
                                    .queued = -1,
                                    .share = 1,
                                    .priority_ceiling = -1};
            struct world *w = world_new(1, &limits);
            world_add_nodes(w, 1, "", 8, 64);
            if (covered)
                sched_set_quota(w->s, SCHED_PROJECT, "own", &q);
            struct world_job *longer = world_job(w, 1, 8, 100 * USEC_HOUR, 90 * USEC_HOUR);
            longer->j.restartable = true;
            longer->j.priority = higher ? 60 : 50;
            (void)snprintf(longer->project, sizeof(longer->project), "own");
            world_submit(w, longer);
            world_pass(w);
            w->now += 2 * USEC_HOUR;
            sched_lease_saves(w->s, longer->id, w->now - USEC_MIN, 30 * USEC_MIN);
            world_submit(w, world_job(w, 1, 1, USEC_HOUR, USEC_MIN));
            world_pass(w);
            assert_int_equal(longer->told, !covered && !higher);
            world_free(w);
        }
}

/* The other policies decide as if nothing had been said of checkpoints and earlier attempts. */
static uint64_t plain_life(enum sched_policy policy, bool say)
{
    struct sched_limits limits = {.policy = policy};
    if (say)
        limits.flow.quantum = USEC_MIN;
    struct world *w = world_new(7, &limits);
    world_add_nodes(w, NODES, "", NODE_GPUS, 64);
    for (int i = 0; i < JOBS; i++) {
        usec_t lasts = (1 + world_random(w, 600)) * USEC_MIN;
        struct world_job *j = world_job(w, 1, 1 + world_random(w, 8), 2 * lasts, lasts);
        j->j.restartable = true;
        j->j.served = say ? USEC_HOUR : 0;
        j->j.saves_every = say ? 10 * USEC_MIN : 0;
        world_submit(w, j);
        world_pass(w);
        for (int k = 0; say && k < w->n_jobs; k++)
            if (w->jobs[k].state == WORLD_RUNS)
                sched_lease_saves(w->s, w->jobs[k].id, w->now, 10 * USEC_MIN);
        if (world_random(w, 2))
            (void)world_step(w);
    }
    while (world_step(w))
        ;
    assert_int_equal(w->preempts, 0);
    uint64_t hash = w->hash;
    world_free(w);
    return hash;
}

static void test_other_policies_do_not_look(void **state)
{
    (void)state;
    static const enum sched_policy others[] = {SCHED_POLICY_FIFO, SCHED_POLICY_EASY,
                                               SCHED_POLICY_FAIR};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_true(plain_life(others[i], false) == plain_life(others[i], true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_lives),
        cmocka_unit_test(test_same_calls_same_decisions),
        cmocka_unit_test(test_a_long_job_gives_way_after_its_checkpoint),
        cmocka_unit_test(test_not_wanted_any_more),
        cmocka_unit_test(test_quotas_and_priorities_stand_above),
        cmocka_unit_test(test_other_policies_do_not_look),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

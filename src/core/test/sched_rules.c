/* SPDX-License-Identifier: Apache-2.0 */
/* The stated properties in worlds where limits are true: promises are kept, nobody starves beyond
 * the bound, ceilings hold, a guarantee is honoured within the grace, hints are true. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/unit.h"
#include "sched_world.h"

enum { LIVES = 100 };

/* ---- promises ---- */

static struct world_job *timed_job(struct world *w, const char *pool)
{
    usec_t limit = (10 + world_random(w, 590)) * USEC_MIN;
    usec_t lasts = world_random(w, 4) ? limit / (1 + world_random(w, 6)) : limit;
    int nnodes = world_random(w, 4) ? 1 : 1 + (int)world_random(w, 4);
    struct world_job *j = world_job(w, nnodes, 1 << world_random(w, 4), limit, lasts);
    (void)snprintf(j->pool, sizeof(j->pool), "%s", pool);
    j->j.demand.cpus_per_node = world_random(w, 8);
    j->j.expected_p50 = world_random(w, 2) ? lasts : limit / 3;
    return j;
}

/* The first in line notes what it was promised first; it must have started by then. */
static void note_promises(struct world *w)
{
    static const char *const pools[] = {"a", "b", "a,x", ""};
    for (size_t i = 0; i < array_len(pools); i++) {
        void *first;
        usec_t at;
        if (!sched_promise(w->s, pools[i], w->now, &first, &at))
            continue;
        struct world_job *j = first;
        if (!j->promised)
            j->promised = at;
        assert_true(j->promised == at); /* it stays what it was */
    }
}

static void expect_promises_kept(const struct world *w)
{
    for (int i = 0; i < w->n_jobs; i++) {
        const struct world_job *j = &w->jobs[i];
        if (j->promised && j->state != WORLD_WAITS)
            assert_true(j->started_at <= j->promised);
        else if (j->promised)
            assert_true(w->now <= j->promised);
    }
}

static void test_promises_are_kept(void **state)
{
    (void)state;
    static const char *const pools[] = {"a", "a", "b", "a,x", ""};
    int promised = 0;
    for (uint64_t seed = 1; seed <= LIVES; seed++) {
        struct sched_limits limits = {.policy = seed % 4 ? SCHED_POLICY_FAIR : SCHED_POLICY_EASY,
                                      .starve_after = 100 * USEC_DAY};
        struct world *w = world_new(seed, &limits);
        w->checks = seed % 8 == 0;
        world_add_nodes(w, 4, "a", 8, 64);
        world_add_nodes(w, 2, "a,x", 8, 40);
        world_add_nodes(w, 3, "b", 8, 64);
        for (int i = 0; i < 400; i++) {
            world_submit(w, timed_job(w, pools[world_random(w, seed % 2 ? 5 : 3)]));
            world_pass(w);
            note_promises(w);
            for (uint32_t n = world_random(w, 3); n > 0 && world_step(w); n--)
                note_promises(w);
            expect_promises_kept(w);
        }
        while (world_step(w)) {
            note_promises(w);
            expect_promises_kept(w);
        }
        for (int i = 0; i < w->n_jobs; i++) {
            promised += w->jobs[i].promised != 0;
            struct sched_why why;
            if (w->jobs[i].state != WORLD_OVER) {
                assert_true(sched_explain(w->s, w->jobs[i].id, w->now, false, &why));
                assert_string_equal(why.code, "pool_too_small");
            }
        }
        world_free(w);
    }
    assert_true(promised > 20 * LIVES); /* it was about something */
}

/* A job that is expected to run for 50 hours waits in line for a node of 8; then it could start. */
static struct world_job *long_one(struct world *w, double gpus, usec_t p50)
{
    world_add_nodes(w, 1, "", 8, 64);
    world_submit(w, world_job(w, 1, 8, USEC_HOUR, USEC_HOUR));
    world_pass(w);
    struct world_job *j = world_job(w, 1, gpus, 100 * USEC_HOUR, 50 * USEC_HOUR);
    j->j.expected_p50 = p50;
    world_submit(w, j);
    world_pass(w); /* it is told when */
    return j;
}

static struct world_job *short_one(struct world *w, usec_t limit, int priority)
{
    struct world_job *j = world_job(w, 1, 4, limit, limit);
    j->j.priority = priority;
    world_submit(w, j);
    return j;
}

/* It lets those pass that end within a tenth of its span; whatever comes, then it starts. */
static void test_long_ones_yield_a_tenth(void **state)
{
    (void)state;
    struct sched_limits limits = {.policy = SCHED_POLICY_FAIR};
    struct world *w = world_new(1, &limits);
    struct world_job *first = long_one(w, 6, 50 * USEC_HOUR);
    struct world_job *too_long = short_one(w, 6 * USEC_HOUR, 50);
    struct world_job *lower = short_one(w, 4 * USEC_HOUR, 40);
    struct world_job *passes = short_one(w, 3 * USEC_HOUR, 50);
    assert_true(world_step(w)); /* the node is free */
    usec_t could = w->now;
    assert_int_equal(passes->state, WORLD_RUNS);
    assert_int_equal(first->state, WORLD_WAITS);
    assert_int_equal(too_long->state, WORLD_WAITS);
    assert_int_equal(lower->state, WORLD_WAITS); /* not before one of higher priority */
    for (int i = 0; first->state == WORLD_WAITS && i < 100; i++) {
        (void)short_one(w, (1 + world_random(w, 180)) * USEC_MIN, 50);
        world_pass(w);
        if (first->state == WORLD_WAITS)
            assert_true(world_step(w));
    }
    assert_int_equal(first->state, WORLD_RUNS);
    assert_in_range(first->started_at - could, 3 * USEC_HOUR, 5 * USEC_HOUR);
    assert_int_equal(too_long->state, WORLD_WAITS);
    world_free(w);
}

static void test_who_does_not_yield(void **state)
{
    (void)state;
    static const struct {
        enum sched_policy policy;
        double gpus;
        usec_t p50, queued_before;
    } cases[] = {
        {SCHED_POLICY_EASY, 6, 50 * USEC_HOUR, 0},               /* not under easy */
        {SCHED_POLICY_FAIR, 6, 0, 0},                            /* nothing is expected */
        {SCHED_POLICY_FAIR, 8, 50 * USEC_HOUR, 0},               /* the whole node */
        {SCHED_POLICY_FAIR, 6, 50 * USEC_HOUR, 600 * USEC_HOUR}, /* it has waited long enough */
        {SCHED_POLICY_FAIR, 6, 50 * USEC_HOUR, UINT64_MAX},      /* it never waited in line */
    };
    for (size_t i = 0; i < array_len(cases); i++) {
        struct sched_limits limits = {.policy = cases[i].policy};
        struct world *w = world_new(1, &limits);
        bool straight = cases[i].queued_before == UINT64_MAX;
        if (straight)
            w->now -= USEC_HOUR;
        struct world_job *first = long_one(w, cases[i].gpus, cases[i].p50);
        if (straight) { /* it comes when the node is free */
            sched_dequeue(w->s, first->id);
            assert_true(world_step(w));
        } else {
            first->j.queued_at -= cases[i].queued_before;
        }
        world_submit(w, first);
        struct world_job *later = short_one(w, USEC_HOUR, 50);
        if (straight)
            world_pass(w);
        else
            assert_true(world_step(w));
        assert_int_equal(first->state, WORLD_RUNS);
        assert_int_equal(later->state, WORLD_WAITS);
        world_free(w);
    }
}

/* Small jobs of high priority for ever: the low and large one still starts within the bound. */
static void test_nobody_starves(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct sched_limits limits = {.policy = SCHED_POLICY_FAIR, .starve_after = 10 * USEC_HOUR};
        struct world *w = world_new(seed, &limits);
        w->checks = false;
        world_add_nodes(w, 4, "", 8, 64);
        struct world_job *large = world_job(w, 4, 8, USEC_HOUR, USEC_HOUR);
        large->j.priority = 0;
        usec_t begin = w->now;
        for (int i = 0; i < 40; i++) {
            world_submit(w, world_job(w, 1, 4, USEC_HOUR, USEC_HOUR - USEC_MIN));
            world_pass(w);
            w->now += USEC_MIN;
        }
        world_submit(w, large);
        for (int i = 0; i < 1200 && large->state == WORLD_WAITS; i++) {
            for (int k = 0; k < 2; k++)
                world_submit(w, world_job(w, 1, 1 + world_random(w, 8), USEC_HOUR,
                                          USEC_HOUR - world_random(w, 30) * USEC_MIN));
            world_pass(w);
            assert_true(world_step(w));
        }
        assert_int_equal(large->state, WORLD_RUNS);
        assert_true(large->started_at - begin <= 10 * USEC_HOUR + 42 * USEC_HOUR);
        assert_true(large->started_at - begin > 9 * USEC_HOUR); /* it did have to wait */
        world_free(w);
    }
}

/* ---- shares and quotas ---- */

static const struct sched_quota free_quota = {.gpus_ceiling = -1,
                                              .cpus = -1,
                                              .gpu_hours_per_month = -1,
                                              .running = -1,
                                              .queued = -1,
                                              .share = 1,
                                              .priority_ceiling = -1};

static struct world_job *submit_of(struct world *w, const char *project, int nnodes, double gpus)
{
    struct world_job *j = world_job(w, nnodes, gpus, USEC_HOUR, USEC_HOUR);
    (void)snprintf(j->project, sizeof(j->project), "%s", project);
    j->j.restartable = true;
    world_submit(w, j);
    return j;
}

static double held_by(const struct world *w, const char *project)
{
    struct sched_usage u;
    sched_usage(w->s, SCHED_PROJECT, project, w->now, &u);
    return u.gpus;
}

static void test_shares(void **state)
{
    (void)state;
    struct sched_limits limits = {.policy = SCHED_POLICY_FAIR};
    struct world *w = world_new(1, &limits);
    struct sched_quota twice = free_quota;
    twice.share = 3;
    world_add_nodes(w, 2, "", 8, 64);
    sched_set_quota(w->s, SCHED_PROJECT, "big", &twice);
    for (int i = 0; i < 40; i++)
        (void)submit_of(w, "small", 1, 1);
    for (int i = 0; i < 40; i++)
        (void)submit_of(w, "big", 1, 1);
    world_pass(w);
    assert_float_equal(held_by(w, "big"), 12, 0.01);
    assert_float_equal(held_by(w, "small"), 4, 0.01);
    /* The order says so beforehand, too. */
    int big = 0;
    for (size_t i = 0; i < 16; i++)
        big += !strcmp(((struct world_job *)sched_queue_at(w->s, i, w->now))->project, "big");
    assert_int_equal(big, 12);
    world_free(w);
}

static void test_ceilings(void **state)
{
    (void)state;
    struct sched_limits limits = {.policy = SCHED_POLICY_FAIR};
    struct world *w = world_new(1, &limits);
    struct sched_quota q = free_quota;
    struct sched_why why;
    struct err err = {0};
    q.gpus_ceiling = 4;
    q.queued = 3;
    world_add_nodes(w, 2, "", 8, 64);
    sched_set_quota(w->s, SCHED_PROJECT, "p", &q);
    struct demand five = {.nnodes = 1, .gpus_per_node = 5}, one = {.nnodes = 1, .gpus_per_node = 1};
    assert_int_equal(sched_refuses(w->s, "u", "p", &five, &err), ERR_REFUSED);
    assert_string_equal(err.message, "quota_ceiling");
    assert_string_equal(err.args,
                        "{\"kind\":\"project\",\"account\":\"p\",\"gpus_ceiling\":4,\"gpus\":5}");
    assert_int_equal(sched_refuses(w->s, "u", "p", &one, &err), 0);
    (void)submit_of(w, "p", 1, 3);
    struct world_job *waits = submit_of(w, "p", 1, 2);
    struct world_job *fits = submit_of(w, "p", 1, 1), *other = submit_of(w, "o", 1, 8);
    assert_int_equal(sched_refuses(w->s, "u", "p", &one, &err), ERR_REFUSED);
    assert_string_equal(err.message, "quota_queued");
    world_pass(w);
    assert_int_equal(waits->state, WORLD_WAITS);
    assert_int_equal(fits->state, WORLD_RUNS); /* who is over its quota blocks nobody */
    assert_int_equal(other->state, WORLD_RUNS);
    assert_true(sched_explain(w->s, waits->id, w->now, true, &why));
    assert_string_equal(why.code, "quota_gpus");
    assert_int_equal(why.hint.kind, SCHED_HINT_JOB_END);
    sched_set_quota(w->s, SCHED_PROJECT, "p", NULL);
    world_pass(w);
    assert_int_equal(waits->state, WORLD_RUNS);
    world_free(w);
}

/* In one lane, jobs too large and jobs of a user at his quota go aside, each with all that are
 * alike; the rest starts in order. */
static void test_barred_ones_step_aside(void **state)
{
    (void)state;
    struct sched_limits limits = {.policy = SCHED_POLICY_FAIR};
    struct world *w = world_new(1, &limits);
    struct sched_quota none = free_quota;
    struct world_job *large[5], *barred[5], *free[5];
    none.running = 0;
    sched_set_quota(w->s, SCHED_USER, "none", &none);
    world_add_nodes(w, 1, "", 8, 64);
    for (int i = 0; i < 5; i++) {
        large[i] = submit_of(w, "p", 1, 16);
        barred[i] = world_job(w, 1, 2, USEC_HOUR, USEC_HOUR);
        (void)snprintf(barred[i]->project, sizeof(barred[i]->project), "p");
        (void)snprintf(barred[i]->user, sizeof(barred[i]->user), "none");
        world_submit(w, barred[i]);
        free[i] = submit_of(w, "p", 1, i % 2 ? 2 : 3);
    }
    world_pass(w);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(large[i]->state, WORLD_WAITS);
        assert_int_equal(barred[i]->state, WORLD_WAITS);
        assert_int_equal(free[i]->state, i < 3 ? WORLD_RUNS : WORLD_WAITS); /* 3 + 2 + 3 GPUs */
    }
    world_end(w, free[1], false);
    world_pass(w);
    assert_int_equal(free[3]->state, WORLD_RUNS);
    assert_int_equal(free[4]->state, WORLD_WAITS);
    sched_set_quota(w->s, SCHED_USER, "none", NULL);
    world_end(w, free[3], false);
    world_pass(w);
    assert_int_equal(barred[0]->state, WORLD_RUNS);
    assert_int_equal(barred[1]->state, WORLD_WAITS);
    world_free(w);
}

/* No host counts memory: the same shape with more of it waits only for its own quota. */
static void test_memory_is_counted(void **state)
{
    (void)state;
    struct sched_limits limits = {.policy = SCHED_POLICY_FAIR};
    struct world *w = world_new(1, &limits);
    struct sched_quota q = free_quota;
    struct sched_why why;
    struct sched_usage u;
    struct err err = {0};
    q.memory = 300;
    world_add_nodes(w, 2, "", 8, 64);
    sched_set_quota(w->s, SCHED_USER, "u0", &q);
    struct demand much = {.nnodes = 2, .gpus_per_node = 1, .memory_per_node = 151};
    assert_int_equal(sched_refuses(w->s, "u0", "p", &much, &err), ERR_REFUSED);
    assert_string_equal(err.message, "quota_ceiling");
    struct world_job *j[3];
    for (size_t i = 0; i < array_len(j); i++) {
        j[i] = world_job(w, 2, 1, 60 * USEC_MIN, 30 * USEC_MIN);
        (void)snprintf(j[i]->user, sizeof(j[i]->user), "u0");
        j[i]->j.demand.memory_per_node = i == 2 ? 50 : 100;
        world_submit(w, j[i]);
    }
    world_pass(w);
    assert_int_equal(j[0]->state, WORLD_RUNS);
    assert_int_equal(j[1]->state, WORLD_WAITS); /* 200 and 200 */
    assert_int_equal(j[2]->state, WORLD_RUNS);  /* 200 and 100 */
    assert_true(sched_explain(w->s, j[1]->id, w->now, true, &why));
    assert_string_equal(why.code, "quota_memory");
    assert_non_null(strstr(why.text, "\"limit\":300"));
    sched_usage(w->s, SCHED_USER, "u0", w->now, &u);
    assert_float_equal(u.memory, 300, 0.01);
    assert_true(world_step(w)); /* both end */
    world_pass(w);
    assert_int_equal(j[1]->state, WORLD_RUNS);
    world_free(w);
}

/* GPU-hours of the calendar month: used up, then the month ends. */
static void test_month(void **state)
{
    (void)state;
    struct sched_limits limits = {.policy = SCHED_POLICY_FAIR};
    struct world *w = world_new(1, &limits);
    struct sched_quota q = free_quota;
    struct sched_why why;
    struct err err = {0};
    q.gpu_hours_per_month = 8;
    assert_int_equal(clock_from_string("2026-02-28T20:00:00Z", &w->now, &err), 0);
    world_add_nodes(w, 1, "", 8, 64);
    sched_set_quota(w->s, SCHED_PROJECT, "p", &q);
    struct world_job *first = submit_of(w, "p", 1, 8);
    world_pass(w);
    assert_int_equal(first->state, WORLD_RUNS);
    assert_true(world_step(w)); /* 8 GPU-hours later */
    struct world_job *second = submit_of(w, "p", 1, 8);
    world_pass(w);
    assert_int_equal(second->state, WORLD_WAITS);
    assert_true(sched_explain(w->s, second->id, w->now, false, &why));
    assert_string_equal(why.code, "quota_gpu_hours");
    assert_int_equal(clock_from_string("2026-03-01T00:00:01Z", &w->now, &err), 0);
    world_pass(w);
    assert_int_equal(second->state, WORLD_RUNS);
    w->now += 30 * USEC_MIN;
    struct sched_usage u;
    sched_usage(w->s, SCHED_PROJECT, "p", w->now, &u);
    assert_float_equal(u.gpu_seconds_month, 4 * 3600, 1);
    world_free(w);
}

/* Borrowers go, last started first, no more than needed; nobody else's guarantee is touched. */
static void test_reclaim(void **state)
{
    (void)state;
    struct sched_limits limits = {.policy = SCHED_POLICY_FAIR, .reclaim_grace = 10 * USEC_MIN};
    struct world *w = world_new(1, &limits);
    struct sched_quota q = free_quota;
    struct sched_why why;
    q.gpus_guaranteed = 8;
    world_add_nodes(w, 2, "", 8, 64);
    sched_set_quota(w->s, SCHED_PROJECT, "a", &q);
    sched_set_quota(w->s, SCHED_PROJECT, "b", &q);
    struct world_job *b[4];
    for (int i = 0; i < 4; i++) { /* 16 GPUs: 8 are its own, 8 borrowed */
        b[i] = submit_of(w, "b", 1, 4);
        world_pass(w);
        w->now += USEC_MIN;
    }
    struct world_job *larger = submit_of(w, "a", 2, 8), *claim = submit_of(w, "a", 1, 4);
    world_pass(w);
    assert_int_equal(larger->state, WORLD_WAITS); /* beyond its guarantee: it waits its turn */
    assert_int_equal(w->preempts, 1);
    assert_int_equal(b[3]->told, 1);
    assert_true(sched_explain(w->s, claim->id, w->now, false, &why));
    assert_string_equal(why.code, "reclaiming");
    w->now += limits.reclaim_grace;
    world_pass(w);
    assert_int_equal(w->preempts, 1); /* told once */
    assert_true(sched_is_wanted_back(w->s, b[3]->id, w->now));
    world_end(w, b[3], true);
    world_pass(w);
    assert_int_equal(claim->state, WORLD_RUNS);
    assert_int_equal(b[3]->state, WORLD_WAITS);
    assert_int_equal(w->preempts, 1);
    /* b borrows 4 still; the next 4 of a bring it down to its guarantee, and no further. */
    struct world_job *more = submit_of(w, "a", 1, 4), *last = submit_of(w, "a", 1, 4);
    world_pass(w);
    assert_int_equal(w->preempts, 2);
    assert_false(sched_is_wanted_back(w->s, b[0]->id, w->now));
    world_end(w, b[2], false);
    world_pass(w);
    assert_int_equal(more->state, WORLD_RUNS);
    assert_int_equal(last->state, WORLD_WAITS);
    assert_int_equal(w->preempts, 2);
    world_free(w);
}

/* The reason goes away while the grace runs: the borrower stays. */
static void test_reclaim_taken_back(void **state)
{
    (void)state;
    struct sched_limits limits = {.policy = SCHED_POLICY_FAIR, .reclaim_grace = 10 * USEC_MIN};
    struct world *w = world_new(1, &limits);
    struct sched_quota q = free_quota;
    q.gpus_guaranteed = 8;
    world_add_nodes(w, 1, "", 8, 64);
    sched_set_quota(w->s, SCHED_PROJECT, "a", &q);
    struct world_job *b = submit_of(w, "b", 1, 8);
    world_pass(w);
    struct world_job *claim = submit_of(w, "a", 1, 8);
    world_pass(w);
    assert_int_equal(b->told, 1);
    assert_true(sched_is_wanted_back(w->s, b->id, w->now));
    sched_dequeue(w->s, claim->id);
    assert_false(sched_is_wanted_back(w->s, b->id, w->now));
    b->told = 0;
    (void)submit_of(w, "a", 1, 8);
    world_pass(w);
    assert_int_equal(b->told, 1);
    world_free(w);
}

/* Within the 8 that its project is guaranteed, and none of its own waits before it. */
static bool is_within(const struct world *w, const struct world_job *j)
{
    if (j->project[1] == '3' || j->j.demand.gpus_per_node + held_by(w, j->project) > 8)
        return false;
    for (int k = 0; k < w->n_jobs; k++)
        if (&w->jobs[k] != j && w->jobs[k].state == WORLD_WAITS &&
            !strcmp(w->jobs[k].project, j->project))
            return false;
    return true;
}

static void let_told_go(struct world *w)
{
    for (int k = 0; k < w->n_jobs; k++)
        if (w->jobs[k].state == WORLD_RUNS && w->jobs[k].told)
            world_end(w, &w->jobs[k], true);
}

static void claim_once(struct world *w, double gpus)
{
    char name[8];
    (void)snprintf(name, sizeof(name), "p%u", world_random(w, 4)); /* p3 only borrows */
    struct world_job *j = world_job(w, 1, gpus, 20 * USEC_HOUR, 0);
    (void)snprintf(j->project, sizeof(j->project), "%s", name);
    j->lasts = (1 + world_random(w, 10)) * USEC_HOUR;
    j->j.restartable = true;
    bool within = is_within(w, j);
    world_submit(w, j);
    world_pass(w);
    w->now += 10 * USEC_MIN;
    let_told_go(w);
    world_pass(w);
    assert_true(!within || j->state == WORLD_RUNS);
    for (int p = 0; p < 3; p++) {
        (void)snprintf(name, sizeof(name), "p%d", p);
        assert_true(held_by(w, name) <= 24);
    }
    for (uint32_t n = world_random(w, 3); n > 0; n--)
        (void)world_step(w);
}

/* All borrowers can be asked: whoever is within its guarantee runs when the grace is over. All jobs
 * are of one size: a guarantee is an amount, and says nothing about holes. */
static void test_guarantees_are_honoured(void **state)
{
    (void)state;
    int preempts = 0;
    for (uint64_t seed = 1; seed <= LIVES; seed++) {
        struct sched_limits limits = {.policy = SCHED_POLICY_FAIR, .reclaim_grace = 10 * USEC_MIN};
        struct world *w = world_new(seed, &limits);
        struct sched_quota q = free_quota;
        w->checks = seed % 8 == 0;
        q.gpus_guaranteed = 8;
        q.gpus_ceiling = 24;
        world_add_nodes(w, seed % 2 ? 3 : 4, "", 8, 64);
        sched_set_quota(w->s, SCHED_PROJECT, "p0", &q);
        sched_set_quota(w->s, SCHED_PROJECT, "p1", &q);
        sched_set_quota(w->s, SCHED_PROJECT, "p2", &q);
        for (int i = 0; i < 300; i++)
            claim_once(w, seed % 2 ? 1 : 4);
        preempts += w->preempts;
        world_free(w);
    }
    assert_true(preempts > 10 * LIVES);
}

/* ---- hints ---- */

static void apply(struct world *w, struct sched *s, struct world_job *j, const struct sched_hint *h)
{
    struct sched_job changed = j->j;
    switch (h->kind) {
    case SCHED_HINT_POOL:
        changed.pool = h->pool;
        break;
    case SCHED_HINT_SHAPE:
        changed.demand.cpus_per_node *= h->n_gpus_per_node / changed.demand.gpus_per_node;
        changed.demand.nnodes = h->nnodes;
        changed.demand.gpus_per_node = h->n_gpus_per_node;
        break;
    case SCHED_HINT_JOB_END:
        sched_lease_end(s, h->job, w->now);
        return;
    case SCHED_HINT_NODE:
        for (int i = 0; i < w->n_nodes; i++)
            if (!strcmp(w->nodes[i].name, h->node))
                w->nodes[i].usable = true;
        world_tell_nodes(w);
        return;
    case SCHED_HINT_PRIORITY:
        sched_set_priority(s, j->id, h->priority);
        return;
    case SCHED_HINT_TIMEOUT:
        changed.limit = h->limit;
        break;
    default:
        sched_set_held(s, j->id, false);
        return;
    }
    sched_enqueue(s, &changed);
}

static bool starts(struct sched *s, usec_t now, const struct world_job *j)
{
    struct sched_decision d;
    bool found = false;
    while (sched_next(s, now, &d))
        found |= d.verb == SCHED_START && d.job == j;
    return found;
}

/* Applied alone, the job starts in the next pass. */
static void expect_true(struct world *w, struct world_job *j, int seen[])
{
    struct sched_why why;
    assert_true(sched_explain(w->s, j->id, w->now, true, &why));
    assert_true((why.hint.kind == SCHED_HINT_NONE) == !*why.hint_text);
    seen[why.hint.kind]++;
    if (why.hint.kind == SCHED_HINT_NONE)
        return;
    struct sched *real = w->s;
    struct world_node nodes[WORLD_NODES];
    memcpy(nodes, w->nodes, sizeof(nodes));
    w->s = sched_copy(real);
    apply(w, w->s, j, &why.hint);
    assert_true(starts(w->s, w->now, j));
    sched_free(w->s);
    w->s = real;
    memcpy(w->nodes, nodes, sizeof(nodes));
}

static void test_hints_are_true(void **state)
{
    (void)state;
    static const char *const pools[] = {"a", "b", "c", "a,x", ""};
    int seen[SCHED_HINT_END] = {0};
    for (uint64_t seed = 1; seed <= LIVES; seed++) {
        struct sched_limits limits = {.policy = (enum sched_policy)(seed % 3)};
        struct world *w = world_new(seed, &limits);
        w->checks = false;
        world_add_nodes(w, 3, "a", 8, 64);
        world_add_nodes(w, 2, "a,x", 4, 40);
        world_add_nodes(w, 1 + (int)world_random(w, 2), "b", 8, 64);
        world_add_nodes(w, 1, "c", 8, 20);
        for (int i = 0; i < 60; i++) {
            struct world_job *j = timed_job(w, pools[world_random(w, 5)]);
            j->j.priority = world_random(w, 2) ? 50 : (int)world_random(w, 90);
            j->j.held = world_random(w, 10) == 0;
            world_submit(w, j);
            if (world_random(w, 8) == 0) {
                struct world_node *n = &w->nodes[world_random(w, (uint32_t)w->n_nodes)];
                n->usable = !n->usable;
                (void)snprintf(n->why_not, sizeof(n->why_not), "draining");
                world_tell_nodes(w);
            }
            world_pass(w);
            for (int k = 0; k < w->n_jobs && i % 4 == 0; k++)
                if (w->jobs[k].state == WORLD_WAITS)
                    expect_true(w, &w->jobs[k], seen);
            if (world_random(w, 3) == 0)
                (void)world_step(w);
        }
        world_free(w);
    }
    for (int k = 0; k < SCHED_HINT_END; k++)
        assert_true(seen[k] > 0); /* each kind was met */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_promises_are_kept),
        cmocka_unit_test(test_long_ones_yield_a_tenth),
        cmocka_unit_test(test_who_does_not_yield),
        cmocka_unit_test(test_nobody_starves),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_ceilings),
        cmocka_unit_test(test_barred_ones_step_aside),
        cmocka_unit_test(test_memory_is_counted),
        cmocka_unit_test(test_month),
        cmocka_unit_test(test_reclaim),
        cmocka_unit_test(test_reclaim_taken_back),
        cmocka_unit_test(test_guarantees_are_honoured),
        cmocka_unit_test(test_hints_are_true),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

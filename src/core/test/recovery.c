/* SPDX-License-Identifier: Apache-2.0 */
/* Where the time of a job with interruptions went, against a slow oracle in a random world: jobs
 * train, save, fail, are noticed late, wait, start again from their last save, are preempted, or
 * come to nothing. The oracle knows each step and asks of each second alone where it belongs; both
 * have to agree to the microsecond. ARGUS_RECOVERY_JOBS: how many. */
#include "core/account/recovery.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/unit.h"

enum { JOBS = 1000, ATTEMPTS = 6, STEPS = 40, NAMES = 4, SAVE_EVERY = 5, EPOCH = 1000000 };

static const unsigned char SEED[16] = {3};
static const char *const class_words[NAMES] = {"host_oom", "node_lost", "nccl_timeout", NULL};
static const char *const node_words[NAMES] = {"n1", "n2", "n3", NULL};
static const char *const user_words[NAMES] = {"ann", "bo", "cy", "di"};

struct truth_step {
    int number, begin, end;
    bool counted;
};

struct truth_attempt {
    enum recovery_end end;
    int planned, fault, noticed, ended;
    struct truth_step steps[STEPS];
    int n;
    int class, node;
};

struct truth {
    uint64_t random;
    struct truth_attempt v[ATTEMPTS];
    int n, queued, now, gpus, user;
    bool waits;
};

static int roll(struct truth *t, int below)
{
    t->random = t->random * 6364136223846793005u + 1442695040888963407u;
    return (int)((uint32_t)(t->random >> 33) % (uint32_t)below);
}

/* ---- the world ---- */

/* Goes on from this step; returns the time at which it does no more. */
static int train(struct truth *t, struct truth_attempt *a, int from)
{
    int at = a->planned + 1 + roll(t, 20), want = roll(t, STEPS);
    if (a->end == RECOVERY_NOT_STARTED)
        return at;
    for (a->n = 0; a->n < want; a->n++) {
        int took = 1 + roll(t, 9);
        a->steps[a->n] = (struct truth_step){.number = from + a->n, .begin = at, .end = at + took};
        at += took + roll(t, 3);
    }
    return a->n ? a->steps[a->n - 1].end + roll(t, 8) : at;
}

static void end_attempt(struct truth *t, struct truth_attempt *a, int at, bool last)
{
    static const enum recovery_end ends[] = {RECOVERY_FAILED, RECOVERY_FAILED, RECOVERY_PREEMPTED};
    if (a->end != RECOVERY_NOT_STARTED)
        a->end = last ? (enum recovery_end)roll(t, 5) : ends[roll(t, 3)];
    if (a->end == RECOVERY_NOT_STARTED)
        a->n = 0;
    a->fault = a->noticed = a->ended = at;
    if (a->end == RECOVERY_FAILED) {
        a->noticed += roll(t, 30);
        a->ended = a->noticed + roll(t, 10);
    }
    a->class = roll(t, NAMES);
    a->node = roll(t, NAMES);
}

/* What a later attempt ran again did not count. */
static void mark_lost(struct truth *t)
{
    for (int i = 0; i < t->n; i++)
        for (int k = 0; k < t->v[i].n; k++) {
            struct truth_step *s = &t->v[i].steps[k];
            s->counted = true;
            for (int j = i + 1; j < t->n; j++)
                s->counted &= !t->v[j].n || s->number < t->v[j].steps[0].number;
        }
}

static void live_a_job(struct truth *t)
{
    int at, saved = 0;
    *t = (struct truth){.random = t->random};
    t->queued = EPOCH + roll(t, 1000);
    t->gpus = 1 + roll(t, 16);
    t->user = roll(t, NAMES);
    t->n = roll(t, ATTEMPTS + 1);
    at = t->queued + roll(t, 50);
    for (int i = 0; i < t->n; i++) {
        struct truth_attempt *a = &t->v[i];
        a->planned = at;
        a->end = roll(t, 8) ? RECOVERY_RUNS : RECOVERY_NOT_STARTED;
        at = train(t, a, roll(t, 10) ? saved + 1 : 1); /* now and then from the very first again */
        end_attempt(t, a, at, i == t->n - 1);
        if (a->n)
            saved = a->steps[a->n - 1].number / SAVE_EVERY * SAVE_EVERY;
        at = a->ended + roll(t, 40);
    }
    t->now = at;
    if (t->n && t->v[t->n - 1].end == RECOVERY_RUNS)
        t->now = t->v[t->n - 1].ended;
    t->waits = !t->n || (t->v[t->n - 1].end >= RECOVERY_PREEMPTED && roll(t, 2));
    mark_lost(t);
}

/* ---- the oracle ---- */

static bool truth_is_told(const struct truth *t)
{
    bool told = false;
    for (int i = 0; i < t->n; i++)
        told |= t->v[i].n > 0;
    return told;
}

static enum recovery_part among_steps(const struct truth_attempt *a, int s)
{
    bool one_counts = false, one_is_lost = false;
    for (int k = 0; k < a->n; k++) {
        if (s >= a->steps[k].begin && s < a->steps[k].end)
            return a->steps[k].counted ? RECOVERY_PRODUCTIVE : RECOVERY_REDO;
        one_counts |= a->steps[k].end > s && a->steps[k].counted;
        one_is_lost |= a->steps[k].end > s && !a->steps[k].counted;
    }
    if (one_counts)
        return RECOVERY_OTHER;
    return one_is_lost || a->end >= RECOVERY_PREEMPTED ? RECOVERY_REDO : RECOVERY_OTHER;
}

/* Where this second of the attempt belongs. */
static enum recovery_part truth_part(const struct truth *t, const struct truth_attempt *a, int s)
{
    if (s >= a->ended)
        return RECOVERY_QUEUE;
    if (s >= a->noticed)
        return RECOVERY_DIAGNOSE;
    if (s >= a->fault)
        return RECOVERY_DETECT;
    if (!truth_is_told(t))
        return RECOVERY_OTHER;
    return !a->n || s < a->steps[0].begin ? RECOVERY_START : among_steps(a, s);
}

/* The second behind the last one that belongs to attempt i or to the wait after it. */
static int truth_until(const struct truth *t, int i)
{
    return i + 1 < t->n ? t->v[i + 1].planned : t->waits ? t->now : t->v[i].ended;
}

static int64_t truth_repair(const struct truth *t, int i)
{
    int reached = 0;
    for (int j = 0; j < t->n; j++) {
        int before = reached;
        for (int k = 0; k < t->v[j].n; k++) {
            const struct truth_step *s = &t->v[j].steps[k];
            if (j > i && s->number > before)
                return s->end - t->v[i].fault;
            reached = s->number > reached ? s->number : reached;
        }
    }
    return -1;
}

struct truth_sums {
    int64_t part[RECOVERY_PARTS], repair;
    int64_t jobs, failures, interruptions, repaired, wait;
};

static void truth_note(const struct truth *t, int i, struct truth_sums *s)
{
    const struct truth_attempt *a = &t->v[i];
    int64_t repair = a->end == RECOVERY_FAILED ? truth_repair(t, i) : -1;
    s->failures += a->end == RECOVERY_FAILED;
    s->interruptions += a->end >= RECOVERY_PREEMPTED;
    s->repaired += repair >= 0;
    s->repair += repair >= 0 ? repair : 0;
}

static void truth_sum_up(const struct truth *t, struct truth_sums *s)
{
    for (int i = 0; i < t->n; i++) {
        for (int at = t->v[i].planned; at < truth_until(t, i); at++)
            s->part[truth_part(t, &t->v[i], at)]++;
        truth_note(t, i, s);
    }
    s->wait += (t->n ? t->v[0].planned : t->now) - t->queued;
}

/* The class or node under which attempt i is charged; NULL: none. */
static const char *truth_name(const struct truth *t, int i, enum recovery_by by)
{
    if (i < 0 || t->v[i].end < RECOVERY_PREEMPTED)
        return NULL;
    const struct truth_attempt *a = &t->v[i];
    if (by == RECOVERY_BY_NODE)
        return node_words[a->node];
    return a->end == RECOVERY_PREEMPTED     ? "preempted"
           : a->end == RECOVERY_NOT_STARTED ? "not_started"
                                            : str_or(class_words[a->class], "unknown");
}

/* What one job's interruptions of this name cost, in GPU-seconds. */
static void truth_charge(const struct truth *t,
                         enum recovery_by by,
                         const char *name,
                         struct truth_sums *s)
{
    bool seen = false;
    for (int i = 0; i < t->n; i++) {
        bool its = str_eq(truth_name(t, i, by), name),
             before = str_eq(truth_name(t, i - 1, by), name);
        for (int at = t->v[i].planned; at < truth_until(t, i); at++) {
            enum recovery_part p = truth_part(t, &t->v[i], at);
            bool is_its = p == RECOVERY_START
                              ? before
                              : its && p != RECOVERY_PRODUCTIVE && p != RECOVERY_OTHER;
            s->part[p] += is_its ? t->gpus : 0;
        }
        seen |= its;
        if (its)
            truth_note(t, i, s);
    }
    s->jobs += seen;
}

/* ---- both ---- */

static usec_t at_of(int s)
{
    return (usec_t)s * USEC_SEC;
}

static struct recovery_attempt told_of(const struct truth *t, int i)
{
    const struct truth_attempt *a = &t->v[i];
    int reached = 0;
    struct recovery_attempt r = {.end = a->end,
                                 .planned = at_of(a->planned),
                                 .ended = a->end == RECOVERY_RUNS ? 0 : at_of(a->ended),
                                 .class = class_words[a->class],
                                 .node = node_words[a->node]};
    if (a->end == RECOVERY_FAILED) {
        r.fault = at_of(a->fault);
        r.noticed = at_of(a->noticed);
    }
    for (int j = 0; j < i; j++)
        for (int k = 0; k < t->v[j].n; k++)
            if (t->v[j].steps[k].number > reached)
                reached = t->v[j].steps[k].number;
    for (int k = 0; k < a->n; k++) {
        const struct truth_step *s = &a->steps[k];
        r.first = r.first ? r.first : at_of(s->begin);
        r.last = at_of(s->end);
        r.kept = s->counted ? at_of(s->end) : r.kept;
        r.good_s += s->counted ? s->end - s->begin : 0;
        if (!r.fresh && s->number > reached)
            r.fresh = at_of(s->end);
    }
    return r;
}

struct told {
    struct recovery_attempt v[ATTEMPTS];
    struct recovery_job job;
};

static void tell(const struct truth *t, struct told *ret)
{
    for (int i = 0; i < t->n; i++)
        ret->v[i] = told_of(t, i);
    ret->job = (struct recovery_job){.v = ret->v,
                                     .n = (size_t)t->n,
                                     .queued = at_of(t->queued),
                                     .now = at_of(t->now),
                                     .waits = t->waits,
                                     .gpus = t->gpus,
                                     .user = user_words[t->user]};
}

static usec_t sum_of(const usec_t part[static RECOVERY_PARTS])
{
    usec_t sum = 0;
    for (int p = 0; p < RECOVERY_PARTS; p++)
        sum += part[p];
    return sum;
}

static void compare_job(const struct truth *t)
{
    struct truth_sums s = {0};
    struct recovery r;
    struct told told;
    tell(t, &told);
    truth_sum_up(t, &s);
    recovery_judge(&told.job, &r);
    for (int p = 0; p < RECOVERY_PARTS; p++)
        assert_int_equal(r.part[p], s.part[p] * (int64_t)USEC_SEC);
    assert_int_equal(r.held + r.waited, sum_of(r.part));
    assert_int_equal(r.waited, r.part[RECOVERY_QUEUE]);
    assert_int_equal(r.first_wait, s.wait * (int64_t)USEC_SEC);
    assert_int_equal(r.failures, s.failures);
    assert_int_equal(r.interruptions, s.interruptions);
    assert_int_equal(r.repaired, s.repaired);
    assert_true(fabs(r.repair_s - (double)s.repair) < 1e-6);
    assert_true(r.told == truth_is_told(t));
    if (r.told)
        assert_true(fabs(r.ettr - (double)s.part[RECOVERY_PRODUCTIVE] * 1e6 /
                                      (double)(r.held + r.waited)) < 1e-12);
    else
        assert_true(isnan(r.ettr));
}

static void compare_sum(const struct recovery_sum *is, const struct truth_sums *s)
{
    for (int p = 0; p < RECOVERY_PARTS; p++)
        assert_true(fabs(is->part_s[p] - (double)s->part[p]) < 1e-3);
    assert_int_equal(is->jobs, s->jobs);
    assert_int_equal(is->failures, s->failures);
    assert_int_equal(is->interruptions, s->interruptions);
    assert_int_equal(is->repaired, s->repaired);
    assert_true(fabs(is->repair_s - (double)s->repair) < 1e-3);
}

static void compare_list(struct recovery_book *b,
                         const struct truth *all,
                         int64_t n,
                         enum recovery_by by)
{
    size_t names;
    const struct recovery_sum *const *v = recovery_book_list(b, by, &names);
    int64_t interruptions = 0, expected = 0;
    for (size_t i = 0; i < names; i++) {
        struct truth_sums s = {0};
        for (int64_t k = 0; k < n; k++)
            truth_charge(&all[k], by, v[i]->name, &s);
        compare_sum(v[i], &s);
        interruptions += s.interruptions;
        if (i)
            assert_true(recovery_cost(v[i - 1]) >= recovery_cost(v[i]));
    }
    for (int64_t k = 0; k < n; k++)
        for (int i = 0; i < all[k].n; i++)
            expected += truth_name(&all[k], i, by) != NULL;
    assert_int_equal(interruptions, expected); /* nobody is missing */
    assert_true(names > 1);
}

static void compare_users(struct recovery_book *b, const struct truth *all, int64_t n)
{
    size_t names;
    const struct recovery_sum *const *v = recovery_book_list(b, RECOVERY_BY_USER, &names);
    for (size_t i = 0; i < names; i++) {
        double part[RECOVERY_PARTS] = {0}, wait = 0;
        for (int64_t k = 0; k < n; k++) {
            struct truth_sums s = {0};
            if (!str_eq(user_words[all[k].user], v[i]->name) || (!all[k].n && !all[k].waits))
                continue;
            truth_sum_up(&all[k], &s);
            wait += (double)s.wait * all[k].gpus;
            for (int p = 0; p < RECOVERY_PARTS; p++)
                part[p] += (double)s.part[p] * all[k].gpus;
        }
        assert_true(fabs(wait - v[i]->wait_s) < 1e-3);
        for (int p = 0; p < RECOVERY_PARTS; p++)
            assert_true(fabs(part[p] - v[i]->part_s[p]) < 1e-3);
    }
    assert_int_equal(names, NAMES);
}

static void test_random_world(void **state)
{
    const char *wish = getenv("ARGUS_RECOVERY_JOBS");
    int64_t n = JOBS;
    if (wish)
        assert_int_equal(str_to_int(wish, 2, 1 << 20, &n, NULL), 0);
    struct truth *all = xcalloc((size_t)n, sizeof(*all));
    struct recovery_book *b = recovery_book_new(SEED);
    struct told told;
    uint64_t random = 20240117;
    (void)state;
    for (int64_t i = 0; i < n; i++) {
        all[i].random = random;
        live_a_job(&all[i]);
        random = all[i].random;
        compare_job(&all[i]);
        tell(&all[i], &told);
        recovery_book_add(b, &told.job);
    }
    compare_list(b, all, n, RECOVERY_BY_CLASS);
    compare_list(b, all, n, RECOVERY_BY_NODE);
    compare_users(b, all, n);
    recovery_book_free(b);
    free(all);
}

/* ---- by hand ---- */

static usec_t minute(double m)
{
    return USEC_HOUR + (usec_t)(m * 60e6);
}

static bool is_near(double a, double b)
{
    return fabs(a - b) < 1e-6;
}

/* Ten steps of a minute with a save after the fifth; a fault in the eleventh, noticed half a minute
 * later; step 6 to 10 again, and five new ones. */
static void test_by_hand(void **state)
{
    const struct recovery_attempt v[] = {{.end = RECOVERY_FAILED,
                                          .planned = minute(0),
                                          .first = minute(2),
                                          .kept = minute(7),
                                          .last = minute(12),
                                          .fresh = minute(3),
                                          .good_s = 300,
                                          .fault = minute(12.5),
                                          .noticed = minute(13),
                                          .ended = minute(13.25),
                                          .class = "actor_died",
                                          .node = "n1"},
                                         {.end = RECOVERY_DONE,
                                          .planned = minute(14),
                                          .first = minute(15),
                                          .kept = minute(25),
                                          .last = minute(25),
                                          .fresh = minute(21),
                                          .good_s = 600,
                                          .ended = minute(26)}};
    const struct recovery_job job = {
        .v = v, .n = 2, .queued = minute(0) - 4 * USEC_MIN, .now = minute(99), .gpus = 8};
    struct recovery r;
    (void)state;
    recovery_judge(&job, &r);
    const double expected[RECOVERY_PARTS] = {15, 0.5, 0.25, 0.75, 3, 5.5, 1};
    for (int p = 0; p < RECOVERY_PARTS; p++)
        assert_true(is_near((double)r.part[p], expected[p] * 60e6));
    assert_true(is_near(r.ettr, 15 / 26.0) && is_near(r.mttr_s, 8.5 * 60));
    assert_true(r.first_wait == 4 * USEC_MIN && r.failures == 1 && r.repaired == 1);
}

/* Times from several clocks, missing ones, all of them nonsense: nothing is counted twice. */
static void test_any_times(void **state)
{
    struct truth t = {.random = 99};
    (void)state;
    for (int round = 0; round < 20000; round++) {
        struct recovery_attempt v[4];
        struct recovery r;
        usec_t low = UINT64_MAX, high = 0;
        size_t n = (size_t)roll(&t, 4) + 1;
        for (size_t i = 0; i < n; i++) {
            usec_t at[9];
            for (size_t k = 0; k < array_len(at); k++) {
                at[k] = roll(&t, 3) ? (usec_t)roll(&t, 100) : 0;
                high = at[k] > high ? at[k] : high;
            }
            low = at[0] < low ? at[0] : low;
            v[i] =
                (struct recovery_attempt){.end = (enum recovery_end)roll(&t, 5),
                                          .planned = at[0],
                                          .fault = at[1],
                                          .noticed = at[2],
                                          .ended = at[3],
                                          .first = at[4],
                                          .kept = at[5],
                                          .last = at[6],
                                          .fresh = at[7],
                                          .good_s = roll(&t, 2) ? (double)NAN : 1e-5 * roll(&t, 9)};
        }
        usec_t now = (usec_t)roll(&t, 200);
        const struct recovery_job job = {
            .v = v, .n = n, .queued = 50, .now = now, .waits = roll(&t, 2), .gpus = 1};
        recovery_judge(&job, &r);
        high = now > high ? now : high;
        assert_int_equal(sum_of(r.part), r.held + r.waited);
        assert_true(r.held + r.waited <= high - low);
        for (int p = 0; p < RECOVERY_PARTS; p++)
            assert_true(r.part[p] <= high);
    }
}

static void test_names_are_bounded(void **state)
{
    struct recovery_book *b = recovery_book_new(SEED);
    size_t n;
    char name[32];
    (void)state;
    for (int i = 0; i < RECOVERY_NAMES_MAX + 7; i++) {
        (void)snprintf(name, sizeof(name), "n%d", i);
        const struct recovery_attempt a = {
            .end = RECOVERY_FAILED, .planned = 1, .ended = (usec_t)i + 2, .node = name};
        const struct recovery_job job = {.v = &a, .n = 1, .now = 1, .gpus = 1};
        recovery_book_add(b, &job);
    }
    (void)recovery_book_list(b, RECOVERY_BY_NODE, &n);
    assert_int_equal(n, RECOVERY_NAMES_MAX);
    assert_int_equal(recovery_book_left_out(b, RECOVERY_BY_NODE), 7);
    const struct recovery_sum *const *v = recovery_book_list(b, RECOVERY_BY_CLASS, &n);
    assert_int_equal(n, 1);
    assert_string_equal(v[0]->name, "unknown");
    assert_int_equal(v[0]->jobs, RECOVERY_NAMES_MAX + 7);
    assert_int_equal(recovery_book_total(b)->jobs, 0); /* none told of a step */
    recovery_book_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_world),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_any_times),
        cmocka_unit_test(test_names_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

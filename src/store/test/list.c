/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of store_list_jobs(): random queries against a plain walk over all jobs, paging
 * while jobs come, and cancelling. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "store/test/bed.h"

#include <cmocka.h>

enum { JOBS = 3000, QUERIES = 400 };

static const char *const states[] = {"QUEUED", "RUNNING", "SUCCEEDED", "FAILED"};
static const char *const users[] = {"ann", "bob", "eve"};
static const char *const workloads[] = {"grpo", "ppo", "sft"};

/* Small, seeded, the same everywhere. */
static unsigned next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*seed >> 33);
}

/* Slots that a job had: `to` is when its attempt ended, 0: it goes on. */
struct mini_slots {
    usec_t planned, started, to;
    bool tells_plan;
};

/* What the model keeps of a job. */
struct mini {
    const char *state, *user, *project, *cluster, *pool, *workload;
    usec_t queued_at, started_at, ended_at;
    bool live;
    struct mini_slots had[2];
    size_t n_had;
    char id[32], name[32];
};

/* Up to two attempts, now and then a long one. Of a job that runs the last goes on, or has ended
 * and its slots are kept; one that is over may have waited again before that. */
static void give_slots(struct mini *m, uint64_t *seed)
{
    unsigned t = next_random(seed);
    usec_t at = m->queued_at;
    m->n_had = t % 8 % 3;
    for (size_t k = 0; k < m->n_had; k++) {
        unsigned r = next_random(seed);
        struct mini_slots *s = &m->had[k];
        s->planned = at + r % 300 * USEC_MIN;
        s->started = s->planned + USEC_MIN;
        s->to = at = s->started + (r / 512 % (r % 40 ? 200 : 5000) + 1) * USEC_MIN;
        s->tells_plan = r / 64 % 2;
    }
    struct mini_slots *last = m->n_had ? &m->had[m->n_had - 1] : NULL;
    bool waits = m->state == states[0] || (!m->live && t / 64 % 4 == 0);
    m->started_at = last && !waits ? last->started : 0;
    m->ended_at = m->live ? 0 : at + t / 256 % 100 * USEC_MIN;
    if (last && m->state == states[1] && t / 64 % 4)
        last->to = 0;
}

static struct mini make(int64_t seq, uint64_t *seed)
{
    unsigned r = next_random(seed);
    struct mini m = {.state = states[r % 16 ? 2 + r % 2 : r / 16 % 4],
                     .user = users[r % 50 ? 0 : 1 + r / 50 % 2],
                     .project = r % 3 ? "p1" : "p2",
                     .cluster = r % 700 ? "main" : "other",
                     .pool = r % 2 ? "a100" : "h100",
                     .workload = workloads[r % 3],
                     /* a few minutes a job; the clock jumps back now and then */
                     .queued_at = USEC_DAY + (usec_t)seq * 3 * USEC_MIN - (r % 30 ? 0 : USEC_MIN)};
    m.live = m.state == states[0] || m.state == states[1];
    (void)snprintf(m.id, sizeof(m.id), "job-%lld", (long long)seq);
    (void)snprintf(m.name, sizeof(m.name), r % 4 ? "exp_%u" : "100%%_%u", r % 97);
    give_slots(&m, seed);
    return m;
}

static void put_slots(struct bed *b, int64_t seq, const struct mini *m)
{
    char detail[64];
    for (size_t k = 0; k < m->n_had; k++) {
        const struct mini_slots *s = &m->had[k];
        (void)snprintf(detail, sizeof(detail), "{\"planned_at\":%lld}", (long long)s->planned);
        store_put_attempt(b->s, &(struct store_attempt){.job_seq = seq,
                                                        .k = (int)k + 1,
                                                        .ray_id = "r",
                                                        .started_at = s->started,
                                                        .ended_at = s->to,
                                                        .detail = s->tells_plan ? detail : NULL});
    }
}

static void put_mini(struct bed *b, int64_t seq, const struct mini *m)
{
    store_put_job(b->s, &(struct store_job){.seq = seq,
                                            .id = m->id,
                                            .name = m->name,
                                            .user = m->user,
                                            .project = m->project,
                                            .workload = m->workload,
                                            .cluster = m->cluster,
                                            .pool = m->pool,
                                            .queued_at = m->queued_at,
                                            .state = m->state,
                                            .live = m->live,
                                            .attempt = (int)m->n_had,
                                            .started_at = m->started_at,
                                            .ended_at = m->ended_at,
                                            .spec = "spec",
                                            .detail = "{}"});
    put_slots(b, seq, m);
}

/* Every other live job ends, as a change of its row. */
static void end_some(struct bed *b, struct mini *all)
{
    for (int64_t seq = 1; seq <= JOBS; seq += 2) {
        struct mini *m = &all[seq];
        if (!m->live)
            continue;
        struct mini_slots *last = m->n_had ? &m->had[m->n_had - 1] : NULL;
        if (last && !last->to)
            last->to = last->started + USEC_HOUR;
        m->state = "FAILED";
        m->live = false;
        m->ended_at = (last ? last->to : m->queued_at) + 3 * USEC_HOUR;
        store_update_job(b->s, &(struct store_job){.seq = seq,
                                                   .state = m->state,
                                                   .attempt = (int)m->n_had,
                                                   .started_at = m->started_at,
                                                   .ended_at = m->ended_at});
        put_slots(b, seq, m);
    }
}

static bool allows(const char *wanted, const char *got)
{
    return !wanted || str_eq(wanted, got);
}

static bool allows_state(const struct mini *m, const struct store_job_query *q)
{
    for (size_t i = 0; i < q->nstates; i++)
        if (str_eq(q->states[i], m->state))
            return true;
    return !q->nstates;
}

static bool is_in_scope(const struct mini *m, const struct store_scope *s)
{
    for (size_t i = 0; s && i < s->nprojects; i++)
        if (str_eq(s->projects[i], m->project))
            return true;
    return !s || str_eq(s->user, m->user);
}

static bool is_of_time(const struct mini *m, const struct store_job_query *q)
{
    return (!q->since || m->queued_at >= q->since) && (!q->until || m->queued_at < q->until);
}

/* The last attempt's slots are kept until the job ends, unless it waits again. */
static bool held_slots(const struct mini *m, const struct store_job_query *q)
{
    bool held = !q->ran_since && !q->ran_until;
    for (size_t k = 0; k < m->n_had; k++) {
        const struct mini_slots *s = &m->had[k];
        usec_t from = s->tells_plan ? s->planned : s->started;
        usec_t back = k + 1 == m->n_had && m->started_at ? m->ended_at : s->to;
        held |= (!q->ran_until || from < q->ran_until) && (!back || back >= q->ran_since);
    }
    return held;
}

static bool matches(const struct mini *m, const struct store_job_query *q)
{
    return is_in_scope(m, q->scope) && allows_state(m, q) && (!q->live || m->live) &&
           allows(q->user, m->user) && allows(q->project, m->project) &&
           allows(q->cluster, m->cluster) && allows(q->pool, m->pool) &&
           allows(q->workload, m->workload) && is_of_time(m, q) && held_slots(m, q) &&
           (!q->q || strcasestr(m->id, q->q) || strcasestr(m->name, q->q));
}

/* Scopes of somebody with many jobs and of somebody with few; in one, two or no projects, or in
 * more than are read one by one. */
static const char *const crowd[] = {"p2", "q1",  "q2",  "q3",  "q4",  "q5",  "q6",  "q7",  "q8",
                                    "q9", "q10", "q11", "q12", "q13", "q14", "q15", "q16", "q17"};
static const char *const both[] = {"p1", "p2"};
static const struct store_scope scopes[] = {
    {.user = "bob"},
    {.user = "bob", .projects = crowd, .nprojects = 1},
    {.user = "ann", .projects = both, .nprojects = 2},
    {.user = "nobody", .projects = both, .nprojects = 1},
    {.user = "eve", .projects = crowd, .nprojects = array_len(crowd)},
};

static void random_ran(unsigned r, unsigned t, struct store_job_query *q)
{
    if (r & 65536)
        q->ran_since = USEC_DAY + t / 16 % JOBS * 3 * USEC_MIN;
    if ((r & 131072) && t / 2 % 2)
        q->ran_until = (q->ran_since ? q->ran_since : USEC_DAY) + t / 32 % 977 * 3 * USEC_MIN;
}

static struct store_job_query random_query(uint64_t *seed)
{
    static const char *const parts[] = {"EXP", "%", "_1", "9", "job-29", "\\", "nothing"};
    unsigned r = next_random(seed), t = next_random(seed);
    struct store_job_query q = {.limit = 1 + next_random(seed) % 200};
    if (r & 32768)
        q.scope = &scopes[t / 8 % array_len(scopes)];
    q.user = r & 1 ? users[t % 3] : NULL;
    q.project = r & 2 ? "p1" : NULL;
    q.cluster = (r & 12) == 12 ? "other" : NULL;
    q.pool = (r & 48) == 48 ? "a100" : NULL;
    q.workload = (r & 192) == 192 ? workloads[t % 3] : NULL;
    q.live = (r & 768) == 768;
    if (r & 1024) {
        q.states = &states[t % 4];
        q.nstates = 1 + t / 4 % (4 - t % 4);
    }
    if (r & 2048)
        q.since = USEC_DAY + t % JOBS * 3 * USEC_MIN;
    if ((r & 4096) && t % 2)
        q.until = (q.since ? q.since : USEC_DAY) + t % 977 * 3 * USEC_MIN;
    if ((r & (8192 | 16384)) == 8192)
        q.q = parts[t % array_len(parts)];
    random_ran(r, t, &q);
    return q;
}

/* All pages of a query hold what the walk finds, newest first. */
static void expect_same(struct bed *b, const struct mini *all, struct store_job_query q)
{
    int64_t seq = JOBS;
    char *cursor = NULL;
    struct bed_answer a;
    do {
        q.cursor = cursor;
        bed_list(b, &q, &a);
        assert_string_equal(a.err.text, "");
        assert_true(a.njobs <= q.limit);
        for (size_t i = 0; i < a.njobs; i++, seq--) {
            while (seq > 0 && !matches(&all[seq], &q))
                seq--;
            assert_int_equal(a.job_seqs[i], seq);
        }
        set_str(&cursor, a.next);
        bed_answer_release(&a);
    } while (cursor);
    while (seq > 0 && !matches(&all[seq], &q))
        seq--;
    assert_int_equal(seq, 0);
}

/* So many are counted, and come in another order; it has pages of its own. */
static void expect_as_many(struct bed *b, const struct mini *all, struct store_job_query q)
{
    size_t n = 0;
    struct bed_answer a;
    for (int64_t seq = 1; seq <= JOBS; seq++)
        n += matches(&all[seq], &q);
    q.limit = STORE_PAGE_MAX;
    q.sort = STORE_SORT_GPU_HOURS;
    q.want_count = true;
    bed_list(b, &q, &a);
    assert_string_equal(a.err.text, "");
    assert_int_equal(a.total, n);
    assert_int_equal(a.njobs, n < STORE_PAGE_MAX ? n : STORE_PAGE_MAX);
    bed_answer_release(&a);
}

/* What the caller knows is believed: no live job is looked at. */
static void test_no_live(void **state)
{
    static const struct {
        const char *pool;
        bool live, no_live;
        size_t found;
    } cases[] = {{"old", false, false, 2}, {"old", false, true, 2}, {"old", true, true, 0},
                 {"new", false, false, 1}, {"new", false, true, 0}, {"new", true, false, 1},
                 {"none", false, true, 0}};
    const struct mini rows[] = {{.id = "a", .pool = "old", .state = "FAILED"},
                                {.id = "b", .pool = "new", .state = "QUEUED", .live = true},
                                {.id = "c", .pool = "old", .state = "FAILED"}};
    struct bed_answer a;
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    for (size_t i = 0; i < array_len(rows); i++)
        put_mini(&b, (int64_t)i + 1, &rows[i]);
    bed_settle(&b);
    for (size_t i = 0; i < array_len(cases); i++) {
        bed_list(&b,
                 &(struct store_job_query){.limit = 10,
                                           .pool = cases[i].pool,
                                           .live = cases[i].live,
                                           .no_live = cases[i].no_live},
                 &a);
        assert_int_equal(a.err.code, 0);
        assert_int_equal(a.njobs, cases[i].found);
        bed_answer_release(&a);
    }
    bed_release(&b);
}

/* Jobs before the newest ones are not looked at, whosever they are. */
static void test_newest_alone(void **state)
{
    static const struct {
        unsigned newest;
        const char *user;
        size_t found;
    } cases[] = {{0, NULL, 3}, {2, NULL, 2}, {2, "ann", 1}, {9, "ann", 2}, {1, "ann", 0}};
    const struct mini rows[] = {{.id = "a", .user = "ann", .state = "FAILED"},
                                {.id = "b", .user = "ann", .state = "FAILED"},
                                {.id = "c", .user = "bob", .state = "FAILED"}};
    struct bed_answer a;
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    for (size_t i = 0; i < array_len(rows); i++)
        put_mini(&b, (int64_t)i + 1, &rows[i]);
    bed_settle(&b);
    for (size_t i = 0; i < array_len(cases); i++) {
        bed_list(&b,
                 &(struct store_job_query){
                     .limit = 10, .user = cases[i].user, .newest = cases[i].newest},
                 &a);
        assert_int_equal(a.err.code, 0);
        assert_int_equal(a.njobs, cases[i].found);
        bed_answer_release(&a);
    }
    bed_release(&b);
}

/* Hours. A job with an attempt from `began` to `ended` (0: it goes on); planned: where that is told
 * beside; starts: its own started_at, 0 while it waits again; over: when it ended. */
struct past {
    const char *id;
    usec_t planned, began, ended, starts, over;
};
static const struct past pasts[] = {
    {.id = "goes-on", .began = 5, .starts = 5},
    {.id = "over-before", .began = 5, .ended = 9, .starts = 5, .over = 9},
    {.id = "over-within", .began = 5, .ended = 12, .starts = 5, .over = 12},
    {.id = "waits-since-before", .began = 5, .ended = 8},
    {.id = "waits-since-within", .began = 5, .ended = 11},
    {.id = "begins-behind", .began = 21, .starts = 21},
    {.id = "planned-within", .planned = 19, .began = 21, .starts = 21},
    {.id = "kept-after-failure", .began = 5, .ended = 9, .starts = 5},
    {.id = "waited-and-stopped", .began = 5, .ended = 8, .over = 15},
    {.id = "never-had-any"},
};

static void put_past(struct bed *b, int64_t seq, const struct past *p)
{
    char detail[64];
    (void)snprintf(detail, sizeof(detail), "{\"planned_at\":%lld}",
                   (long long)(p->planned * USEC_HOUR));
    store_put_job(b->s, &(struct store_job){.seq = seq,
                                            .id = p->id,
                                            .user = "ann",
                                            .pool = "a100",
                                            .queued_at = (usec_t)seq * USEC_MIN,
                                            .state = p->over ? "STOPPED" : "RUNNING",
                                            .live = !p->over,
                                            .attempt = p->began != 0,
                                            .started_at = p->starts * USEC_HOUR,
                                            .ended_at = p->over * USEC_HOUR,
                                            .detail = "{}"});
    if (p->began)
        store_put_attempt(b->s, &(struct store_attempt){.job_seq = seq,
                                                        .k = 1,
                                                        .ray_id = "r",
                                                        .started_at = p->began * USEC_HOUR,
                                                        .ended_at = p->ended * USEC_HOUR,
                                                        .detail = p->planned ? detail : NULL});
}

/* found: the jobs that the query gives, as bits, over all its pages. */
static unsigned list_pasts(struct bed *b, struct store_job_query q)
{
    unsigned found = 0;
    char *cursor = NULL;
    do {
        struct bed_answer a;
        q.cursor = cursor;
        bed_list(b, &q, &a);
        assert_string_equal(a.err.text, "");
        for (size_t i = 0; i < a.njobs; i++) {
            assert_false(found & 1u << (a.job_seqs[i] - 1));
            found |= 1u << (a.job_seqs[i] - 1);
        }
        if (q.want_count)
            assert_int_equal(a.total, __builtin_popcount(found));
        set_str(&cursor, a.next);
        bed_answer_release(&a);
    } while (cursor);
    return found;
}

/* A job is of a time in which it held slots: however it is read, by index, by a walk, in another
 * order, or counted. */
static void test_held_slots_in_a_time(void **state)
{
    enum { GOES_ON = 1, WITHIN = 4, WAITS_WITHIN = 16, BEHIND = 32, PLANNED = 64, KEPT = 128 };
    static const struct {
        usec_t since, until;
        unsigned found;
    } cases[] = {
        {10, 20, GOES_ON | WITHIN | WAITS_WITHIN | PLANNED | KEPT},
        {10, 0, GOES_ON | WITHIN | WAITS_WITHIN | BEHIND | PLANNED | KEPT},
        {13, 19, GOES_ON | KEPT},
        {0, 6, 1 | 2 | 4 | 8 | 16 | KEPT | 256},
        {0, 5, 0},
        {22, 0, GOES_ON | BEHIND | PLANNED | KEPT},
    };
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    for (size_t i = 0; i < array_len(pasts); i++)
        put_past(&b, (int64_t)i + 1, &pasts[i]);
    bed_settle(&b);
    for (size_t i = 0; i < array_len(cases); i++) {
        struct store_job_query q = {.ran_since = cases[i].since * USEC_HOUR,
                                    .ran_until = cases[i].until * USEC_HOUR,
                                    .limit = 50};
        assert_int_equal(list_pasts(&b, q), cases[i].found);
        q.want_count = true;
        assert_int_equal(list_pasts(&b, q), cases[i].found);
        q.want_count = false;
        q.limit = 1;
        assert_int_equal(list_pasts(&b, q), cases[i].found);
        q.user = "ann";
        assert_int_equal(list_pasts(&b, q), cases[i].found);
        q.pool = "a100";
        assert_int_equal(list_pasts(&b, q), cases[i].found);
        q.sort = STORE_SORT_GPU_HOURS;
        assert_int_equal(list_pasts(&b, q), cases[i].found);
        q.user = "bob";
        assert_int_equal(list_pasts(&b, q), 0);
    }
    bed_release(&b);
}

static void test_random_queries(void **state)
{
    struct mini *all = xcalloc(JOBS + 1, sizeof(*all));
    uint64_t seed = 42;
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    for (int64_t seq = 1; seq <= JOBS; seq++) {
        all[seq] = make(seq, &seed);
        put_mini(&b, seq, &all[seq]);
    }
    bed_settle(&b);
    end_some(&b, all);
    bed_settle(&b);
    for (int i = 0; i < QUERIES; i++) {
        struct store_job_query q = random_query(&seed);
        expect_same(&b, all, q);
        if (q.ran_since || q.ran_until)
            expect_as_many(&b, all, q);
    }
    bed_release(&b);
    free(all);
}

/* Every job that was there at the first page is met once while others come. */
static void test_pages_while_jobs_come(void **state)
{
    struct store_job_query q = {.limit = 7, .states = states, .nstates = 4};
    struct bed_answer a;
    char *cursor = NULL;
    uint64_t seed = 1;
    int64_t seq = 0, next = 100;
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    do {
        for (int64_t last = seq ? seq + 5 : 100; seq < last;) {
            struct mini m = make(++seq, &seed);
            put_mini(&b, seq, &m);
        }
        bed_settle(&b);
        q.cursor = cursor;
        bed_list(&b, &q, &a);
        for (size_t i = 0; i < a.njobs; i++)
            assert_int_equal(a.job_seqs[i], next--);
        set_str(&cursor, a.next);
        bed_answer_release(&a);
    } while (cursor);
    assert_int_equal(next, 0);
    bed_release(&b);
}

static void expect_refused(struct bed *b, struct store_job_query q, const char *part)
{
    struct bed_answer a;
    bed_list(b, &q, &a);
    assert_int_equal(a.err.code, ERR_BAD_REQUEST);
    assert_non_null(strstr(a.err.text, part));
    bed_answer_release(&a);
}

static void test_bad_queries(void **state)
{
    const char *many[STORE_STATES_MAX + 1] = {0};
    struct bed b;

    (void)state;
    bed_init(&b, NULL);
    expect_refused(&b, (struct store_job_query){.limit = 1, .cursor = "12"}, "is not a cursor");
    expect_refused(&b, (struct store_job_query){.limit = 1, .cursor = "j-1"}, "is not a cursor");
    expect_refused(&b, (struct store_job_query){.limit = 1, .cursor = ""}, "is not a cursor");
    expect_refused(&b, (struct store_job_query){.limit = 0}, "limit 0");
    expect_refused(&b, (struct store_job_query){.limit = STORE_PAGE_MAX + 1}, "limit 1001");
    for (size_t i = 0; i < array_len(many); i++)
        many[i] = "x";
    expect_refused(&b,
                   (struct store_job_query){.limit = 1, .states = many, .nstates = array_len(many)},
                   "states");
    bed_release(&b);
}

/* ---- other orders ---- */

enum { ORDERED = 120 };

/* Seconds, so that several are alike; 0: it has none. */
static void put_ordered(struct bed *b, int64_t seq, struct store_job *ret)
{
    static char ids[ORDERED + 1][32];
    uint64_t seed = (uint64_t)seq * 77;
    unsigned r = next_random(&seed), t = next_random(&seed);
    (void)snprintf(ids[seq], sizeof(ids[seq]), "%c%u-%lld", "aBc"[r % 3], t % 7, (long long)seq);
    *ret = (struct store_job){.seq = seq,
                              .id = ids[seq],
                              .user = r % 5 ? users[r % 3] : NULL,
                              .project = t % 2 ? "p1" : "p2",
                              .workload = workloads[t % 3],
                              .cluster = "main",
                              .pool = t % 4 ? "a100" : NULL,
                              .queued_at = USEC_DAY + (usec_t)(r % 50) * USEC_SEC,
                              .state = states[t % 4],
                              .live = t % 4 < 2,
                              .flags = t % 6 ? "" : "HUNG,IDLE",
                              .nnodes = 1 + r % 2,
                              .n_gpus_per_node = t % 9,
                              .priority = r % 4,
                              .started_at = r % 7 ? USEC_DAY + (usec_t)(r % 40) * USEC_SEC : 0,
                              .spec = "spec",
                              .detail = "{}"};
    ret->ended_at = ret->live ? 0 : USEC_DAY + (usec_t)(60 + t % 30) * USEC_SEC;
    store_put_job(b->s, ret);
    ret->restarts = t % 3;
    ret->step = r % 11;
    ret->gpu_held = (int64_t)(t % 8) * 1000;
    store_update_job(b->s, ret);
}

/* What a job is sorted by: a text, or else a number; whether it has it. */
struct place {
    const char *text;
    double number;
    bool known;
};

static const usec_t clock_of_test = USEC_DAY + 100 * USEC_SEC;

static struct place text_place(const char *text)
{
    return (struct place){str_or(text, ""), 0, text != NULL};
}

static struct place number_place(double number, bool known)
{
    return (struct place){NULL, number, known};
}

static struct place sort_place_of(const struct store_job *j, enum store_job_sort by)
{
    usec_t end = j->ended_at ? j->ended_at : clock_of_test;
    switch (by) {
    case STORE_SORT_ID:
    case STORE_SORT_NAME:
        return text_place(j->id);
    case STORE_SORT_USER:
        return text_place(j->user);
    case STORE_SORT_PROJECT:
        return text_place(j->project);
    case STORE_SORT_WORKLOAD:
        return text_place(j->workload);
    case STORE_SORT_CLUSTER:
        return text_place(j->cluster);
    case STORE_SORT_POOL:
        return text_place(j->pool);
    case STORE_SORT_STATE:
        return text_place(j->state);
    case STORE_SORT_PRIORITY:
        return number_place((double)j->priority, true);
    case STORE_SORT_NNODES:
        return number_place((double)j->nnodes, true);
    case STORE_SORT_GPUS:
        return number_place((double)j->nnodes * j->n_gpus_per_node, true);
    case STORE_SORT_STARTED:
        return number_place((double)j->started_at, j->started_at);
    case STORE_SORT_ENDED:
        return number_place((double)j->ended_at, j->ended_at);
    case STORE_SORT_RAN:
        return number_place((double)end - (double)j->started_at, j->started_at);
    case STORE_SORT_RESTARTS:
        return number_place((double)j->restarts, true);
    case STORE_SORT_STEP:
        return number_place((double)j->step, j->step);
    case STORE_SORT_GPU_HOURS:
        return number_place((double)j->gpu_held, j->gpu_held);
    default:
        return number_place((double)j->queued_at, true);
    }
}

/* a stands before b. */
static void assert_before(const struct store_job *a,
                          const struct store_job *b,
                          const struct store_job_query *q)
{
    struct place x = sort_place_of(a, q->sort), y = sort_place_of(b, q->sort);
    int c = x.text
                ? (q->sort == STORE_SORT_ID ? strcmp(x.text, y.text) : strcasecmp(x.text, y.text))
                : (x.number > y.number) - (x.number < y.number);
    c = q->ascending ? c : -c;
    c = x.known == y.known ? c : x.known ? -1 : 1;
    if (!(c < 0 || (c == 0 && a->seq > b->seq)))
        fail_msg("by %s, %d: %s before %s", store_job_sort_to_string(q->sort), q->ascending, a->id,
                 b->id);
}

/* Every job comes once over all pages, behind those that stand before it. */
static void expect_ordered(struct bed *b, const struct store_job *all, struct store_job_query q)
{
    char *cursor = NULL;
    int64_t last = 0;
    size_t met = 0;
    do {
        struct bed_answer a;
        q.cursor = cursor;
        bed_list(b, &q, &a);
        assert_string_equal(a.err.text, "");
        for (size_t i = 0; i < a.njobs; i++, met++) {
            if (last)
                assert_before(&all[last], &all[a.job_seqs[i]], &q);
            last = a.job_seqs[i];
        }
        set_str(&cursor, a.next);
        bed_answer_release(&a);
    } while (cursor);
    assert_int_equal(met, ORDERED);
}

static void test_orders(void **state)
{
    struct store_job *all = xcalloc(ORDERED + 1, sizeof(*all));
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    for (int64_t seq = 1; seq <= ORDERED; seq++)
        put_ordered(&b, seq, &all[seq]);
    bed_settle(&b);
    for (enum store_job_sort by = STORE_SORT_NEWEST + 1; by < STORE_SORTS; by++)
        for (int up = 0; up < 2; up++)
            expect_ordered(&b, all,
                           (struct store_job_query){
                               .limit = 7, .sort = by, .ascending = up, .now = clock_of_test});
    expect_ordered(&b, all,
                   (struct store_job_query){.limit = 7, .ascending = true, .now = clock_of_test});
    struct bed_answer a;
    bed_list(&b, &(struct store_job_query){.limit = 7, .sort = STORE_SORT_STEP, .cursor = "j5"},
             &a);
    assert_int_equal(a.err.code, ERR_BAD_REQUEST); /* of another order */
    bed_answer_release(&a);
    bed_release(&b);
    free(all);
}

/* Whatever index a filter may drive by: all that are counted come, in order. */
static void test_orders_of_some(void **state)
{
    const struct store_job_query some[] = {
        {.user = "ann"},
        {.project = "p1", .user = "bob,eve"},
        {.live = true},
        {.live = true, .project = "p2"},
        {.scope = &scopes[2]},
        {.scope = &scopes[1], .states = states, .nstates = 2},
        {.pool = "a100", .workload = "sft"},
    };
    struct store_job *all = xcalloc(ORDERED + 1, sizeof(*all));
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    for (int64_t seq = 1; seq <= ORDERED; seq++)
        put_ordered(&b, seq, &all[seq]);
    bed_settle(&b);
    for (size_t i = 0; i < array_len(some); i++) {
        struct store_job_query q = some[i];
        struct bed_answer a;
        q.limit = 500;
        q.sort = STORE_SORT_GPU_HOURS;
        q.want_count = true;
        bed_list(&b, &q, &a);
        assert_string_equal(a.err.text, "");
        assert_true(a.njobs > 0);
        assert_int_equal(a.njobs, a.total);
        for (size_t k = 1; k < a.njobs; k++)
            assert_before(&all[a.job_seqs[k - 1]], &all[a.job_seqs[k]], &q);
        bed_answer_release(&a);
    }
    bed_release(&b);
    free(all);
}

static size_t count_where(const struct store_job *all, bool (*fits)(const struct store_job *j))
{
    size_t n = 0;
    for (int64_t seq = 1; seq <= ORDERED; seq++)
        n += fits(&all[seq]);
    return n;
}

static bool is_ann_or_eve(const struct store_job *j)
{
    return j->user && !str_eq(j->user, "bob");
}

static bool is_live_of_them(const struct store_job *j)
{
    return is_ann_or_eve(j) && j->live;
}

static bool is_flagged(const struct store_job *j)
{
    return *j->flags;
}

/* The page is cut, the counts are of all pages; those by state do not know the filter of states. */
static void test_counts(void **state)
{
    static const char *const idle[] = {"HELD", "IDLE"};
    struct store_job *all = xcalloc(ORDERED + 1, sizeof(*all));
    struct bed_answer a;
    int64_t sum = 0;
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    for (int64_t seq = 1; seq <= ORDERED; seq++)
        put_ordered(&b, seq, &all[seq]);
    bed_settle(&b);
    struct store_job_query q = {.limit = 2, .user = "ann,eve", .live = true, .want_count = true};
    bed_list(&b, &q, &a);
    assert_int_equal(a.njobs, 2);
    assert_int_equal(a.total, count_where(all, is_live_of_them));
    for (size_t i = 0; i < a.ncounts; i++)
        sum += a.counts[i].n;
    assert_int_equal(sum, count_where(all, is_ann_or_eve));
    bed_answer_release(&a);
    q = (struct store_job_query){.limit = 200, .flags = idle, .nflags = 2, .want_count = true};
    bed_list(&b, &q, &a);
    assert_int_equal(a.total, count_where(all, is_flagged));
    assert_int_equal(a.njobs, a.total);
    bed_answer_release(&a);
    bed_release(&b);
    free(all);
}

/* The same state given twice is the same as once. */
static void test_repeated_states(void **state)
{
    const char *const twice[] = {"QUEUED", "QUEUED"};
    struct bed_text t;
    struct store_job job = bed_job(1, &t);
    struct bed_answer a;
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    store_put_job(b.s, &job);
    bed_settle(&b);
    bed_list(&b, &(struct store_job_query){.limit = 9, .states = twice, .nstates = 2}, &a);
    assert_int_equal(a.njobs, 1);
    assert_null(a.first_detail);
    bed_answer_release(&a);
    bed_list(
        &b,
        &(struct store_job_query){.limit = 9, .states = twice, .nstates = 2, .want_detail = true},
        &a);
    assert_int_equal(a.njobs, 1);
    assert_string_equal(a.first_detail, job.detail);
    bed_answer_release(&a);
    bed_release(&b);
}

/* Those of the jobs of the page, of each the first ones. */
static void test_attempts(void **state)
{
    struct bed_text t;
    struct bed_answer a;
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    for (int64_t seq = 1; seq <= 3; seq++) {
        struct store_job job = bed_job(seq, &t);
        store_put_job(b.s, &job);
        for (int64_t k = 1; k <= (seq == 3 ? STORE_ATTEMPTS_MAX + 5 : seq); k++)
            store_put_attempt(b.s, &(struct store_attempt){.job_seq = seq, .k = k, .ray_id = "r"});
    }
    bed_settle(&b);
    bed_list(&b, &(struct store_job_query){.limit = 9}, &a);
    assert_int_equal(a.nattempts, 0);
    bed_answer_release(&a);
    bed_list(&b, &(struct store_job_query){.limit = 9, .want_attempts = true}, &a);
    assert_int_equal(a.njobs, 3);
    assert_int_equal(a.nattempts, STORE_ATTEMPTS_MAX + 2 + 1);
    bed_answer_release(&a);
    bed_list(&b, &(struct store_job_query){.limit = 1, .want_attempts = true}, &a);
    assert_int_equal(a.nattempts, STORE_ATTEMPTS_MAX);
    bed_answer_release(&a);
    bed_release(&b);
}

/* ---- delivery ---- */

struct calls {
    int rendered, done, dropped;
};

static void *on_render(const struct store_result *r, void *arg)
{
    struct calls *calls = arg;
    calls->rendered++;
    return r->njobs ? xasprintf("%s", r->jobs[0].id) : NULL;
}

static void on_done(const struct store_result *r, void *arg)
{
    struct calls *calls = arg;
    calls->done++;
    assert_string_equal(r->rendered, "job-000003");
    free(r->rendered);
}

static void put_three(struct bed *b)
{
    for (int64_t seq = 1; seq <= 3; seq++) {
        struct bed_text t;
        struct store_job job = bed_job(seq, &t);
        store_put_job(b->s, &job);
    }
    bed_settle(b);
}

/* A page, or a search that gives the same. */
static struct store_read *start(struct bed *b, bool search, struct calls *calls)
{
    return store_list_jobs(
        b->s, &(struct store_job_query){.limit = 2, .q = search ? "job" : NULL},
        &(struct store_then){.render = on_render, .done = on_done, .drop = free, .arg = calls});
}

static void test_rendered_on_the_worker(void **state)
{
    struct calls calls = {0};
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    put_three(&b);
    assert_non_null(start(&b, false, &calls));
    while (!calls.done)
        (void)uv_run(&b.loop, UV_RUN_ONCE);
    assert_int_equal(calls.rendered, 1);
    bed_release(&b);
}

/* More reads than connections, cancelled while they run and while they wait. */
static void test_cancel(void **state)
{
    enum { READS = 12 };
    struct calls calls[READS] = {0};
    struct store_read *reads[READS];
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    put_three(&b);
    for (int i = 0; i < READS; i++)
        reads[i] = start(&b, i % 3 == 0, &calls[i]);
    for (int i = 0; i < READS; i += 2)
        store_read_cancel(reads[READS - 1 - i]);
    store_read_cancel(reads[0]);
    while (!calls[2].done || !calls[4].done || !calls[6].done || !calls[8].done || !calls[10].done)
        (void)uv_run(&b.loop, UV_RUN_ONCE);
    for (int i = 0; i < READS; i++)
        assert_int_equal(calls[i].done, i % 2 == 0 && i > 0);
    bed_release(&b);
}

static void test_close_drops_reads(void **state)
{
    enum { READS = 8 };
    struct calls calls[READS] = {0};
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    put_three(&b);
    for (int i = 0; i < READS; i++)
        assert_non_null(start(&b, i % 3 == 0, &calls[i]));
    bed_release(&b);
    for (int i = 0; i < READS; i++)
        assert_int_equal(calls[i].done, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_live),
        cmocka_unit_test(test_newest_alone),
        cmocka_unit_test(test_random_queries),
        cmocka_unit_test(test_held_slots_in_a_time),
        cmocka_unit_test(test_pages_while_jobs_come),
        cmocka_unit_test(test_bad_queries),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_orders_of_some),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_repeated_states),
        cmocka_unit_test(test_attempts),
        cmocka_unit_test(test_rendered_on_the_worker),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_close_drops_reads),
    };

    return cmocka_run_group_tests_name("store/list", tests, NULL, NULL);
}

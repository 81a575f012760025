/* SPDX-License-Identifier: Apache-2.0 */
/* What projects have of each other, against a slow oracle in a random world: nodes come, drain and
 * grow, leases begin and end, guarantees and waits change, the book is replayed from its text. What
 * changed counts from the next whole second on, or from a look at the sums. The oracle hands out
 * what is borrowed piece by piece and divides with real numbers; the book divides whole units, and
 * may be off by two of them in each pair, but by none in what a project borrows, waits and gives in
 * all. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/unit.h"
#include "core/account/slotbook.h"

enum {
    EVENTS = 20000,
    PROJECTS = 5,
    NOBODY = PROJECTS, /* as the other one */
    NODES = 4,
    LEASES = 12,
    LABELS = 3,
    POOLS = 3,
    PIECES = 4, /* of a GPU */
    PIECE = SLOTBOOK_GPU / PIECES,
    UNITS_OFF = 2,
};

static const unsigned char SEED[16] = {9};
static const char *const project_words[PROJECTS] = {"code", "llm", "rl", "speech", "vision"};
static const char *const node_words[NODES] = {"n0", "n1", "n2", "n3"};
static const char *const label_words[LABELS] = {"h20", "h20,ib", "a100"};
static const char *const pool_words[POOLS] = {"", "h20", "ib"};
/* Is a node with these labels in the pool? */
static const bool pool_has[POOLS][LABELS] = {{true, true, true}, {true, true}, {false, true}};

typedef double deals_of[PROJECTS][PROJECTS + 1][DEALING_SUMS];
struct world_deal {
    uint64_t random;
    int64_t now;
    struct {
        bool open;
        int labels, gpus; /* in pieces, as all amounts here */
    } nodes[NODES];
    struct {
        bool live;
        int project, node, amount;
    } leases[LEASES];
    int guaranteed[PROJECTS], waits[PROJECTS][POOLS];
    int64_t due; /* when the flow is made anew: what happened until then counts from then on */
    struct deals_flow {
        deals_of pairs;
        double borrowed[PROJECTS], taken[PROJECTS]; /* in all, exact below 2^53 */
    } flow, expected;                               /* flow: in a millisecond */
    deals_of told;
    double off; /* the most that a pair may be off by now */
    struct slotbook *book;
    struct buf saved, log; /* what is on disk */
};

static uint32_t roll(struct world_deal *w, uint32_t below)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(w->random >> 33) % below;
}

/* ---- the oracle ---- */

static int held_by(const struct world_deal *w, int project, int pool)
{
    int sum = 0;
    for (int i = 0; i < LEASES; i++)
        if (w->leases[i].live && w->leases[i].project == project &&
            pool_has[pool][w->nodes[w->leases[i].node].labels])
            sum += w->leases[i].amount;
    return sum;
}

static int free_pieces(const struct world_deal *w)
{
    int sum = 0;
    for (int n = 0; n < NODES; n++) {
        int rest = w->nodes[n].gpus;
        for (int i = 0; i < LEASES; i++)
            rest -= w->leases[i].live && w->leases[i].node == n ? w->leases[i].amount : 0;
        sum += w->nodes[n].open && rest > 0 ? rest : 0;
    }
    return sum;
}

/* Piece by piece: first what nobody is guaranteed, then what others left. */
static int lent_pieces(int borrowed, int nobodys, int left)
{
    int lent = 0;
    for (int i = 0; i < borrowed; i++)
        if (nobodys > 0)
            nobodys--;
        else if (left > lent)
            lent++;
    return lent;
}

static void add_lent(struct world_deal *w, struct deals_flow *f)
{
    int borrows[PROJECTS], leaves[PROJECTS], borrowed = 0, left = 0, nobodys = free_pieces(w),
                                             any = 0;
    for (int p = 0; p < PROJECTS; p++) {
        int beyond = held_by(w, p, 0) - w->guaranteed[p];
        borrows[p] = beyond > 0 ? beyond : 0;
        leaves[p] = beyond < 0 ? -beyond : 0;
        borrowed += borrows[p];
        left += leaves[p];
        nobodys += beyond;
        any += w->guaranteed[p];
    }
    int lent = lent_pieces(borrowed, nobodys, left);
    for (int p = 0; p < PROJECTS && any; p++) {
        if (!borrows[p])
            continue;
        double part = (double)lent * borrows[p] / borrowed;
        f->pairs[p][NOBODY][DEALING_BORROWED] += (borrows[p] - part) * PIECE;
        f->borrowed[p] += borrows[p] * PIECE;
        for (int q = 0; q < PROJECTS && left; q++) {
            f->pairs[p][q][DEALING_BORROWED] += part * leaves[q] / left * PIECE;
            f->pairs[q][p][DEALING_LENT] += part * leaves[q] / left * PIECE;
        }
    }
}

static void add_waits(const struct world_deal *w, struct deals_flow *f, int pool)
{
    int all = 0;
    for (int q = 0; q < PROJECTS; q++)
        all += held_by(w, q, pool);
    for (int p = 0; p < PROJECTS; p++) {
        double wait = w->waits[p][pool] * PIECE;
        f->taken[p] += wait;
        if (!all)
            f->pairs[p][NOBODY][DEALING_WAIT_TAKEN] += wait;
        for (int q = 0; q < PROJECTS && all; q++) {
            double part = wait * held_by(w, q, pool) / all;
            f->pairs[p][q][DEALING_WAIT_TAKEN] += part;
            if (q != p)
                f->pairs[q][p][DEALING_WAIT_GIVEN] += part;
        }
    }
}

static void make_flow(struct world_deal *w)
{
    w->flow = (struct deals_flow){0};
    add_lent(w, &w->flow);
    for (int pool = 0; pool < POOLS; pool++)
        add_waits(w, &w->flow, pool);
    w->due = INT64_MAX;
}

static void flow_until(struct world_deal *w, int64_t until)
{
    double ms = (double)(until - w->now);
    for (int p = 0; p < PROJECTS; p++) {
        for (int q = 0; q <= PROJECTS; q++)
            for (int i = 0; i < DEALING_SUMS; i++)
                w->expected.pairs[p][q][i] += w->flow.pairs[p][q][i] * ms;
        w->expected.borrowed[p] += w->flow.borrowed[p] * ms;
        w->expected.taken[p] += w->flow.taken[p] * ms;
    }
    w->off += UNITS_OFF * POOLS * ms;
    w->now = until;
}

static void spend(struct world_deal *w, int64_t ms)
{
    int64_t until = w->now + ms;
    if (w->due < until) {
        flow_until(w, w->due);
        make_flow(w);
    }
    flow_until(w, until);
}

/* ---- both ---- */

static int project_of(const char *word)
{
    for (int p = 0; p < PROJECTS; p++)
        if (str_eq(project_words[p], word))
            return p;
    assert_string_equal(word, DEALING_NOBODY); /* so few are named all */
    return NOBODY;
}

static void note_dealing(const struct slotbook_dealing *row, void *arg)
{
    struct world_deal *w = arg;
    int project = project_of(row->project), other = project_of(row->other);
    assert_int_not_equal(project, NOBODY);
    for (int i = 0; i < DEALING_SUMS; i++) {
        assert_true(row->sums[i] >= 0);
        w->told[project][other][i] += (double)row->sums[i];
    }
}

static void tell_book(struct world_deal *w, struct slotbook_event *e)
{
    e->at = w->now;
    if (!slotbook_apply(w->book, e))
        return;
    int64_t second = (w->now + 999) / 1000 * 1000;
    w->due = second < w->due ? second : w->due;
    slotbook_event_to_json(e, &w->log);
    (void)buf_adds(&w->log, "\n"); /* below its ceiling, as is checked by the replay */
}

static void take_sums(struct world_deal *w)
{
    slotbook_take(w->book, w->now, NULL, NULL);
    slotbook_take_dealings(w->book, w->now, note_dealing, w);
    w->due = w->now;
    slotbook_event_to_json(&(struct slotbook_event){.kind = SLOTBOOK_EV_TAKE, .at = w->now},
                           &w->log);
    (void)buf_adds(&w->log, "\n");
}

static void shorten_log(struct world_deal *w)
{
    take_sums(w);
    buf_reset(&w->saved);
    buf_reset(&w->log);
    slotbook_save(w->book, &w->saved);
    assert_false(w->saved.failed);
}

/* kill -9: only the text is left. */
static void die_and_replay(struct world_deal *w)
{
    slotbook_free(w->book);
    w->book = slotbook_new(SEED, 0, 0);
    assert_true(slotbook_load(w->book, w->saved.data, w->saved.len));
    assert_false(w->log.failed);
    const char *at = buf_str(&w->log);
    for (const char *end; (end = strchr(at, '\n')); at = end + 1) {
        _cleanup_(buf_release) struct buf list = BUF_INIT(1 << 20);
        (void)buf_addf(&list, "[%.*s]", (int)(end - at), at);
        assert_true(slotbook_load(w->book, buf_str(&list), list.len));
    }
}

/* ---- what happens ---- */

static void node_changes(struct world_deal *w)
{
    int i = (int)roll(w, NODES);
    w->nodes[i].open = roll(w, 4) > 0;
    w->nodes[i].gpus = (int)roll(w, 9) * PIECES;
    w->nodes[i].labels = roll(w, 5) ? w->nodes[i].labels : (int)roll(w, LABELS);
    tell_book(
        w, &(struct slotbook_event){.kind = SLOTBOOK_EV_NODE,
                                    .name = node_words[i],
                                    .labels = label_words[w->nodes[i].labels],
                                    .gpus = w->nodes[i].gpus * PIECE,
                                    .state = w->nodes[i].open ? SLOTBOOK_OPEN : SLOTBOOK_IN_DRAIN});
}

static void lease_changes(struct world_deal *w)
{
    char job[16];
    int i = (int)roll(w, LEASES);
    struct slotbook_part part = {0};
    struct slotbook_event e = {.kind = SLOTBOOK_EV_END, .name = job};
    (void)snprintf(job, sizeof(job), "job-%d", i);
    w->leases[i].live = !w->leases[i].live;
    if (w->leases[i].live) {
        w->leases[i].project = (int)roll(w, PROJECTS);
        w->leases[i].node = (int)roll(w, NODES);
        w->leases[i].amount = 1 + (int)roll(w, 16);
        part = (struct slotbook_part){.node = node_words[w->leases[i].node],
                                      .amount = w->leases[i].amount * PIECE};
        e = (struct slotbook_event){.kind = SLOTBOOK_EV_BEGIN,
                                    .name = job,
                                    .project = project_words[w->leases[i].project],
                                    .user = roll(w, 2) ? "ann" : "bo",
                                    .parts = &part,
                                    .n_parts = 1};
    }
    tell_book(w, &e);
}

static void claim_changes(struct world_deal *w)
{
    int p = (int)roll(w, PROJECTS), pool = (int)roll(w, POOLS);
    struct slotbook_event e = {.kind = SLOTBOOK_EV_WAIT, .project = project_words[p]};
    if (roll(w, 4)) {
        w->waits[p][pool] = roll(w, 2) ? (int)roll(w, 40) : 0;
        e.labels = pool_words[pool];
        e.amount = w->waits[p][pool] * PIECE;
    } else {
        w->guaranteed[p] = roll(w, 2) ? (int)roll(w, 60) : 0;
        e.kind = SLOTBOOK_EV_GUARANTEE;
        e.amount = w->guaranteed[p] * PIECE;
    }
    tell_book(w, &e);
}

static void something_happens(struct world_deal *w)
{
    uint32_t what = roll(w, 1000);
    spend(w, roll(w, 3) ? roll(w, 4000) : roll(w, 40) ? 0 : roll(w, 3600 * 1000));
    if (what < 200)
        node_changes(w);
    else if (what < 600)
        lease_changes(w);
    else if (what < 960)
        claim_changes(w);
    else if (what < 975)
        take_sums(w);
    else if (what < 985)
        shorten_log(w);
    else
        die_and_replay(w);
}

static void check_project(const struct world_deal *w, int p)
{
    double borrowed = 0, taken = 0;
    for (int q = 0; q <= PROJECTS; q++) {
        for (int i = 0; i < DEALING_SUMS; i++)
            assert_true(fabs(w->told[p][q][i] - w->expected.pairs[p][q][i]) <= w->off);
        borrowed += w->told[p][q][DEALING_BORROWED];
        taken += w->told[p][q][DEALING_WAIT_TAKEN];
        if (q == p || q == NOBODY)
            continue;
        /* Both sides tell the same. */
        assert_true(w->told[p][q][DEALING_BORROWED] == w->told[q][p][DEALING_LENT]);
        assert_true(w->told[p][q][DEALING_WAIT_TAKEN] == w->told[q][p][DEALING_WAIT_GIVEN]);
    }
    assert_true(borrowed == w->expected.borrowed[p] && taken == w->expected.taken[p]);
    assert_true(borrowed > 0 && taken > 0);
    assert_true(w->told[p][p][DEALING_LENT] == 0 && w->told[p][p][DEALING_WAIT_GIVEN] == 0);
}

static void dealings_agree_with_the_oracle(void **state)
{
    struct world_deal *w = xcalloc(1, sizeof(*w));
    (void)state;
    w->random = 20261201;
    w->now = 5000;
    w->due = INT64_MAX;
    w->book = slotbook_new(SEED, w->now, 300 * SLOTBOOK_EVERY);
    buf_init(&w->saved, SLOTBOOK_TEXT_MAX);
    buf_init(&w->log, SLOTBOOK_TEXT_MAX);
    for (int i = 0; i < NODES; i++)
        tell_book(w, &(struct slotbook_event){.kind = SLOTBOOK_EV_NODE,
                                              .name = node_words[i],
                                              .labels = label_words[0],
                                              .state = SLOTBOOK_IN_DRAIN});
    shorten_log(w);
    for (int i = 0; i < EVENTS; i++) {
        something_happens(w);
        const char *broken = slotbook_check(w->book);
        if (broken)
            fail_msg("event %d: %s", i, broken);
    }
    take_sums(w);
    for (int p = 0; p < PROJECTS; p++)
        check_project(w, p);
    slotbook_free(w->book);
    buf_release(&w->saved);
    buf_release(&w->log);
    free(w);
}

/* ---- by hand ---- */

enum { HAND_LINES = 256 };
struct hand {
    char lines[HAND_LINES][64]; /* "rl>vision lent 3": GPU-seconds of a moment that lasted one */
    size_t n;
    int named, others;
    int64_t lent, borrowed; /* of all rows, but what is nobody's */
};

static int hand_by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void note_hand(const struct slotbook_dealing *row, void *arg)
{
    static const char *const words[] = {"lent", "borrowed", "wait_given", "wait_taken"};
    struct hand *h = arg;
    h->lent += row->sums[DEALING_LENT];
    h->borrowed += *row->other ? row->sums[DEALING_BORROWED] : 0;
    if (str_eq(row->project, "lender")) {
        h->named += !str_eq(row->other, DEALING_OTHERS);
        h->others += str_eq(row->other, DEALING_OTHERS);
    }
    for (int i = 0; i < DEALING_SUMS; i++)
        if (row->sums[i] && h->n < HAND_LINES)
            (void)snprintf(h->lines[h->n++], sizeof(*h->lines), "%s>%s %s %g", row->project,
                           row->other, words[i], (double)row->sums[i] / (SLOTBOOK_GPU * 1000.0));
}

static void holds(struct slotbook *b, const char *job, const char *project, int64_t pieces)
{
    struct slotbook_part part = {.node = "n1", .amount = pieces * PIECE};
    (void)slotbook_apply(b, &(struct slotbook_event){.kind = SLOTBOOK_EV_BEGIN,
                                                     .name = job,
                                                     .project = project,
                                                     .parts = &part,
                                                     .n_parts = 1});
}

static struct slotbook *book_of(int64_t pieces, const char *guaranteed, int64_t amount)
{
    struct slotbook *b = slotbook_new(SEED, 0, 0);
    (void)slotbook_apply(
        b, &(struct slotbook_event){
               .kind = SLOTBOOK_EV_NODE, .name = "n1", .labels = "h20", .gpus = pieces * PIECE});
    (void)slotbook_apply(b, &(struct slotbook_event){.kind = SLOTBOOK_EV_GUARANTEE,
                                                     .project = guaranteed,
                                                     .amount = amount * PIECE});
    return b;
}

static void waits_in(struct slotbook *b,
                     const char *pool,
                     const char *project,
                     int64_t pieces,
                     int64_t at)
{
    (void)slotbook_apply(b, &(struct slotbook_event){.kind = SLOTBOOK_EV_WAIT,
                                                     .at = at,
                                                     .project = project,
                                                     .labels = pool,
                                                     .amount = pieces * PIECE});
}

static void waits(struct slotbook *b, const char *project, int64_t pieces)
{
    waits_in(b, "h20", project, pieces, 0);
}

static void expect_hand(struct slotbook *b, const char *text)
{
    struct buf told = BUF_INIT(4096);
    struct hand h = {0};
    slotbook_take_dealings(b, slotbook_now(b) > 1000 ? slotbook_now(b) : 1000, note_hand, &h);
    xsort(h.lines, h.n, sizeof(*h.lines), hand_by_text);
    for (size_t i = 0; i < h.n; i++)
        (void)buf_addf(&told, "%s; ", h.lines[i]);
    assert_string_equal(buf_str(&told), text);
    buf_release(&told);
    slotbook_free(b);
}

static void what_is_free_is_not_lent(void **state)
{
    (void)state;
    /* Four GPUs, three of them guaranteed to rl: of four that vision holds one was nobody's. */
    struct slotbook *b = book_of(16, "rl", 12);
    holds(b, "a", "vision", 16);
    expect_hand(b, "rl>vision lent 3; vision> borrowed 1; vision>rl borrowed 3; ");
    /* It holds three, and rl could have one of its three at once. */
    b = book_of(16, "rl", 12);
    holds(b, "a", "vision", 12);
    expect_hand(b, "rl>vision lent 2; vision> borrowed 1; vision>rl borrowed 2; ");
    /* All that rl was guaranteed is free. */
    b = book_of(16, "rl", 12);
    holds(b, "a", "vision", 4);
    expect_hand(b, "vision> borrowed 1; ");
    /* Nothing is borrowed where nothing is guaranteed. */
    b = book_of(16, "rl", 0);
    holds(b, "a", "vision", 16);
    expect_hand(b, "");
}

static void waits_are_given_by_who_holds(void **state)
{
    (void)state;
    struct slotbook *b = book_of(16, "rl", 0);
    holds(b, "a", "vision", 12);
    holds(b, "b", "rl", 4);
    waits(b, "rl", 8);
    waits(b, "llm", 16);
    expect_hand(b, "llm>rl wait_taken 1; llm>vision wait_taken 3; rl>llm wait_given 1; "
                   "rl>rl wait_taken 0.5; rl>vision wait_taken 1.5; vision>llm wait_given 3; "
                   "vision>rl wait_given 1.5; ");
    b = book_of(16, "rl", 0);
    waits(b, "rl", 8);
    expect_hand(b, "rl> wait_taken 2; ");
}

static void add_taken(const char *project,
                      const char *other,
                      enum dealing_sum sum,
                      int64_t amount,
                      void *arg)
{
    struct hand *h = arg;
    (void)project;
    (void)other;
    assert_true(amount > 0);
    h->borrowed += sum == DEALING_WAIT_TAKEN ? amount : 0;
    h->lent += sum == DEALING_LENT ? amount : 0;
}

/* The smaller ones of forty borrowers are told together, and nothing of the sums is lost. */
static void few_are_named(void **state)
{
    enum { MANY = 40 };
    struct hand h = {0};
    struct slotbook *b = book_of(MANY * (MANY + 1) / 2, "lender", 64 * PIECES);
    char names[MANY][8];
    (void)state;
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "p%02d", i);
        holds(b, names[i], names[i], i + 1);
    }
    slotbook_take_dealings(b, 1000, note_hand, &h);
    assert_int_equal(h.named, DEALING_NAMED - 1); /* itself is one of the largest */
    assert_int_equal(h.others, 1);
    assert_int_equal(h.lent, (int64_t)64 * SLOTBOOK_GPU * 1000);
    assert_int_equal(h.borrowed, h.lent);
    assert_null(slotbook_check(b));
    slotbook_free(b);
}

/* What changes within a second counts from the next one on, however much of it there is. */
static void rates_hold_until_the_next_second(void **state)
{
    (void)state;
    struct slotbook *b = book_of(16, "rl", 0);
    holds(b, "a", "vision", 16);
    waits(b, "rl", 8);
    for (int64_t ms = 1; ms < 1000; ms++)
        waits_in(b, "h20", "rl", ms % 2 ? 1000 : 8, ms);
    waits_in(b, "h20", "rl", 16, 1500);
    waits_in(b, "h20", "rl", 4, 2000); /* the moment of the grid itself */
    waits_in(b, "h20", "rl", 0, 3000);
    waits_in(b, "h20", "rl", 8, 3500); /* not looked at any more */
    /* Two GPUs for a second, 250 (what the last one said) for another, and one for the third. */
    expect_hand(b, "rl>vision wait_taken 253; vision>rl wait_given 253; ");
}

/* A user may make as many pools as jobs: the largest are divided, the rest as one. */
static void few_pools_are_divided(void **state)
{
    enum { REST = 6 };
    char pool[16];
    (void)state;
    struct slotbook *b = book_of(32, "rl", 0);
    holds(b, "a", "vision", 16); /* on h20 */
    (void)slotbook_apply(b, &(struct slotbook_event){.kind = SLOTBOOK_EV_NODE,
                                                     .name = "n2",
                                                     .labels = "a100",
                                                     .gpus = (int64_t)16 * PIECE});
    struct slotbook_part part = {.node = "n2", .amount = (int64_t)16 * PIECE};
    (void)slotbook_apply(b, &(struct slotbook_event){.kind = SLOTBOOK_EV_BEGIN,
                                                     .name = "b",
                                                     .project = "llm",
                                                     .parts = &part,
                                                     .n_parts = 1});
    for (int i = 0; i < DEALING_POOLS + REST; i++) {
        (void)snprintf(pool, sizeof(pool), "h20,p%02d", i);
        waits_in(b, pool, "rl", i < REST ? 4 : 8, 0);
    }
    /* Nobody holds nodes with such labels; of the rest all do that hold anything. */
    expect_hand(b, "llm>rl wait_given 3; rl> wait_taken 128; rl>llm wait_taken 3; "
                   "rl>vision wait_taken 3; vision>rl wait_given 3; ");
}

static void a_pool_has_one_name(void **state)
{
    static const char *const words[][2] = {{"", ""},
                                           {"ib", "ib"},
                                           {"h20,ib", "h20,ib"},
                                           {"ib,h20", "h20,ib"},
                                           {"ib,h20,ib,h20", "h20,ib"}};
    (void)state;
    for (size_t i = 0; i < array_len(words); i++) {
        _cleanup_(freep) char *name = dealing_pool(words[i][0]);
        assert_string_equal(name, words[i][1]);
    }
}

/* Amounts that no cluster has are cut, and neither wrap nor take from others. */
static void sums_do_not_wrap(void **state)
{
    enum { MANY = 8 };
    struct dealing_party v[MANY];
    int64_t waits_of[MANY], held[MANY];
    struct hand h = {0};
    char name[MANY][4];
    (void)state;
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(name[i], sizeof(name[i]), "p%d", i);
        v[i] = (struct dealing_party){name[i], INT64_MAX / 2, INT64_MAX / 3, INT64_MAX / 2};
        waits_of[i] = i ? 0 : 1000;
        held[i] = INT64_MAX / 4;
    }
    dealing_wait(v, MANY, waits_of, held, add_taken, &h);
    assert_int_equal(h.borrowed, 1000);
    dealing_lend(v, MANY, INT64_MAX, add_taken, &h);
    assert_int_equal(h.lent, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dealings_agree_with_the_oracle),
        cmocka_unit_test(what_is_free_is_not_lent),
        cmocka_unit_test(waits_are_given_by_who_holds),
        cmocka_unit_test(few_are_named),
        cmocka_unit_test(rates_hold_until_the_next_second),
        cmocka_unit_test(few_pools_are_divided),
        cmocka_unit_test(a_pool_has_one_name),
        cmocka_unit_test(sums_do_not_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

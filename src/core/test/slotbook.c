/* SPDX-License-Identifier: Apache-2.0 */
/* The slotbook against a slow oracle, in a random world: nodes come, drain, break, change their
 * labels and go, leases begin and end on them, use is measured, steps are run again, gangs block,
 * the clock jumps, the book dies and is replayed from its text. The oracle looks at each quarter of
 * a slot of each node alone, at every stretch of time, and puts it into the one place where it
 * belongs; both have to agree to the last unit in every interval. ARGUS_SLOTBOOK_EVENTS: how many.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/unit.h"
#include "core/account/slotbook.h"

enum {
    EVENTS = 100000,
    NODES = 12,
    LEASES = 40,
    LABELS = 4,
    OWNERS = 3,
    INTERVALS = 4096,
    PIECES = 4,          /* of a slot */
    SLOTS = 64 * PIECES, /* of a node, at most */
    PIECE = SLOTBOOK_GPU / PIECES,
    NOBODY = OWNERS * OWNERS /* the row of nodes themselves */
};

static const char *const label_words[LABELS] = {"", "h20", "h20,ib", "a100"};
static const char *const project_words[OWNERS] = {"rl", "vision", "default"};
static const char *const user_words[OWNERS] = {"ann", "bo", "cy"};

struct truth_node {
    bool known, listed;
    int labels, gpus, foreign, clearing, kept; /* in pieces */
    enum slotbook_state state;
};
struct truth_part {
    int node, amount, idle, unknown, busy;
};
struct truth_lease {
    bool live, redoes;
    int project, user, n;
    struct truth_part parts[3];
    struct slotbook_held held;
};

typedef int64_t sums_of[LABELS][NOBODY + 1][SLOTBOOK_SUMS];
struct truth {
    uint64_t random;
    int64_t now, offset;
    struct truth_node nodes[NODES];
    struct truth_lease leases[LEASES];
    sums_of *expected, *told; /* by interval */
    struct slotbook *book;
    struct buf saved, log; /* what is on disk */
};

static const unsigned char SEED[16] = {7};

static uint32_t roll(struct truth *t, uint32_t below)
{
    t->random = t->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(t->random >> 33) % below;
}

/* ---- the oracle ---- */

static int64_t *expected_at(struct truth *t, int node, int owner)
{
    int64_t interval = (t->now + t->offset) / SLOTBOOK_EVERY;
    assert_true(interval >= 0 && interval < INTERVALS);
    return t->expected[interval][t->nodes[node].labels][owner];
}

/* One lease's pieces on a node: the idle ones first, then the unknown ones. */
static int spend_part(struct truth *t,
                      struct truth_lease *l,
                      const struct truth_part *p,
                      int64_t ms)
{
    int64_t *sums = expected_at(t, p->node, l->project * OWNERS + l->user);
    for (int i = 0; i < p->amount; i++) {
        sums[i < p->idle ? SLOTBOOK_HELD_IDLE : SLOTBOOK_USED] += PIECE * ms;
        l->held.held += PIECE * ms;
        if (i >= p->idle && l->redoes) {
            sums[SLOTBOOK_REDONE] += PIECE * ms;
            l->held.redone += PIECE * ms;
        }
        if (i < p->idle)
            l->held.idle += PIECE * ms;
        if (i >= p->idle && i < p->idle + p->unknown) {
            sums[SLOTBOOK_UNKNOWN] += PIECE * ms;
            l->held.unknown += PIECE * ms;
        }
        if (i < p->busy) {
            sums[SLOTBOOK_BUSY] += PIECE * ms;
            l->held.busy += PIECE * ms;
        }
    }
    return p->amount;
}

static void spend_node(struct truth *t, int node, int64_t ms)
{
    const struct truth_node *n = &t->nodes[node];
    int64_t *sums = expected_at(t, node, NOBODY);
    int at = 0, all = n->listed ? n->gpus : 0;
    for (int l = 0; l < LEASES; l++)
        for (int p = 0; t->leases[l].live && p < t->leases[l].n; p++)
            if (t->leases[l].parts[p].node == node)
                at += spend_part(t, &t->leases[l], &t->leases[l].parts[p], ms);
    all = all > at ? all : at;
    sums[SLOTBOOK_CAPACITY] += (int64_t)all * PIECE * ms;
    for (int foreign = n->foreign, clearing = n->clearing, kept = n->kept; at < all; at++) {
        enum slotbook_sum place = SLOTBOOK_FREE;
        if (foreign-- > 0)
            place = SLOTBOOK_FOREIGN;
        else if (clearing-- > 0 || n->state == SLOTBOOK_IN_DRAIN)
            place = SLOTBOOK_DRAINING;
        else if (n->state == SLOTBOOK_DOWN)
            place = SLOTBOOK_BROKEN;
        else if (kept-- > 0)
            place = SLOTBOOK_BLOCKED;
        sums[place] += PIECE * ms;
    }
}

static void spend(struct truth *t, int64_t ms)
{
    while (ms > 0) {
        int64_t left = SLOTBOOK_EVERY - (t->now + t->offset) % SLOTBOOK_EVERY;
        int64_t step = ms < left ? ms : left;
        for (int n = 0; n < NODES; n++)
            if (t->nodes[n].known)
                spend_node(t, n, step);
        t->now += step;
        ms -= step;
    }
}

/* ---- both ---- */

static void note_row(const struct slotbook_row *row, void *arg)
{
    struct truth *t = arg;
    int labels = 0, project = 0, user = 0;
    while (labels < LABELS - 1 && strcmp(label_words[labels], row->labels) != 0)
        labels++;
    while (*row->project && project < OWNERS - 1 &&
           strcmp(project_words[project], row->project) != 0)
        project++;
    while (*row->user && user < OWNERS - 1 && strcmp(user_words[user], row->user) != 0)
        user++;
    int owner = *row->project ? project * OWNERS + user : NOBODY;
    for (int i = 0; i < SLOTBOOK_SUMS; i++)
        t->told[row->at / SLOTBOOK_EVERY][labels][owner][i] += row->sums[i];
}

static void tell_book(struct truth *t, struct slotbook_event *e)
{
    e->at = t->now;
    if (!slotbook_apply(t->book, e))
        return;
    slotbook_event_to_json(e, &t->log);
    (void)buf_adds(&t->log, "\n"); /* below its ceiling, as is checked by the replay */
}

static void take_sums(struct truth *t)
{
    struct slotbook_event e = {.kind = SLOTBOOK_EV_TAKE, .at = t->now};
    slotbook_take(t->book, t->now, note_row, t);
    slotbook_event_to_json(&e, &t->log);
    (void)buf_adds(&t->log, "\n");
}

static void shorten_log(struct truth *t)
{
    take_sums(t);
    buf_reset(&t->saved);
    buf_reset(&t->log);
    slotbook_save(t->book, &t->saved);
    assert_false(t->saved.failed);
}

/* An event as text, alone. */
static bool load_event(struct slotbook *b, const char *text, size_t len)
{
    _cleanup_(buf_release) struct buf list = BUF_INIT(1 << 20);
    (void)buf_addf(&list, "[%.*s]", (int)len, text);
    return slotbook_load(b, buf_str(&list), list.len);
}

/* kill -9: only the text is left. */
static void die_and_replay(struct truth *t)
{
    slotbook_free(t->book);
    t->book = slotbook_new(SEED, 0, 0);
    assert_true(slotbook_load(t->book, t->saved.data, t->saved.len));
    const char *at = buf_str(&t->log);
    for (const char *end; (end = strchr(at, '\n')); at = end + 1)
        assert_true(load_event(t->book, at, (size_t)(end - at)));
}

static const char *node_word(int node, char text[static 16])
{
    (void)snprintf(text, 16, "n%d", node);
    return text;
}

static int leased_on(const struct truth *t, int node)
{
    int sum = 0;
    for (int l = 0; l < LEASES; l++)
        for (int p = 0; t->leases[l].live && p < t->leases[l].n; p++)
            sum += t->leases[l].parts[p].node == node ? t->leases[l].parts[p].amount : 0;
    return sum;
}

/* ---- what happens ---- */

static void happens_to_node(struct truth *t)
{
    char name[16];
    int i = (int)roll(t, NODES);
    struct truth_node *n = &t->nodes[i];
    struct slotbook_event e = {.kind = SLOTBOOK_EV_NODE, .name = node_word(i, name)};
    if (n->listed && !roll(t, 6)) {
        e.kind = SLOTBOOK_EV_GONE;
        n->listed = false;
        n->foreign = n->clearing = n->kept = 0;
        n->known = leased_on(t, i) > 0;
        tell_book(t, &e);
        return;
    }
    if (!n->known || !roll(t, 4))
        *n = (struct truth_node){.labels = (int)roll(t, LABELS),
                                 .gpus = (int)roll(t, 9) * PIECES,
                                 .kept = n->known ? n->kept : 0};
    n->known = n->listed = true;
    n->foreign = roll(t, 3) ? 0 : (int)roll(t, 40);
    n->clearing = roll(t, 3) ? 0 : (int)roll(t, 12);
    n->state = roll(t, 2) ? SLOTBOOK_OPEN : (enum slotbook_state)roll(t, SLOTBOOK_STATES);
    e.labels = label_words[n->labels];
    e.gpus = n->gpus * PIECE;
    e.foreign = n->foreign * PIECE;
    e.clearing = n->clearing * PIECE;
    e.state = n->state;
    tell_book(t, &e);
}

static void measure(struct truth *t, struct truth_part *p)
{
    p->idle = (int)roll(t, (uint32_t)p->amount + 1);
    p->unknown = (int)roll(t, (uint32_t)(p->amount - p->idle) + 1);
    p->busy = (int)roll(t, (uint32_t)p->amount + 1);
}

static struct slotbook_part part_of(const struct truth_part *p, char name[static 16])
{
    return (struct slotbook_part){.node = node_word(p->node, name),
                                  .amount = p->amount * PIECE,
                                  .idle = p->idle * PIECE,
                                  .unknown = p->unknown * PIECE,
                                  .busy = p->busy * PIECE};
}

static const char *job_word(int lease, char text[static 16])
{
    (void)snprintf(text, 16, "job-%d", lease);
    return text;
}

static void lease_begins(struct truth *t, int i)
{
    struct truth_lease *l = &t->leases[i];
    struct slotbook_part parts[3];
    char job[16], names[3][16];
    *l = (struct truth_lease){
        .live = true, .project = (int)roll(t, OWNERS), .user = (int)roll(t, OWNERS)};
    for (int node = (int)roll(t, 4); node < NODES && l->n < 3; node += 1 + (int)roll(t, 5)) {
        struct truth_part *p = &l->parts[l->n];
        *p = (struct truth_part){.node = node, .amount = 1 + (int)roll(t, 8)};
        measure(t, p);
        if (!t->nodes[node].known)
            t->nodes[node] = (struct truth_node){.known = true};
        parts[l->n] = part_of(p, names[l->n]);
        l->n++;
    }
    struct slotbook_event e = {.kind = SLOTBOOK_EV_BEGIN,
                               .name = job_word(i, job),
                               .project = project_words[l->project],
                               .user = user_words[l->user],
                               .workload = "verl",
                               .parts = parts,
                               .n_parts = (size_t)l->n};
    tell_book(t, &e);
}

static void lease_ends(struct truth *t, int i)
{
    char job[16];
    struct truth_lease *l = &t->leases[i];
    struct slotbook_held held;
    assert_true(slotbook_job(t->book, job_word(i, job), t->now, &held));
    assert_memory_equal(&held, &l->held, sizeof(held)); /* to the last unit */
    l->live = false;
    for (int p = 0; p < l->n; p++) {
        struct truth_node *n = &t->nodes[l->parts[p].node];
        n->known = n->listed || leased_on(t, l->parts[p].node);
    }
    tell_book(t, &(struct slotbook_event){.kind = SLOTBOOK_EV_END, .name = job});
}

static void use_is_measured(struct truth *t, int i)
{
    char job[16], name[16];
    struct truth_lease *l = &t->leases[i];
    struct truth_part *p = &l->parts[roll(t, (uint32_t)l->n)];
    measure(t, p);
    struct slotbook_part told = part_of(p, name);
    tell_book(t,
              &(struct slotbook_event){
                  .kind = SLOTBOOK_EV_USE, .name = job_word(i, job), .parts = &told, .n_parts = 1});
}

/* An attempt behind a failure runs steps again, then new ones; told twice it is no news. */
static void steps_are_redone(struct truth *t, int i)
{
    char job[16];
    struct truth_lease *l = &t->leases[i];
    l->redoes = roll(t, 2);
    tell_book(t, &(struct slotbook_event){
                     .kind = SLOTBOOK_EV_REDO, .name = job_word(i, job), .amount = l->redoes});
}

static void happens_to_lease(struct truth *t)
{
    int i = (int)roll(t, LEASES);
    if (!t->leases[i].live)
        lease_begins(t, i);
    else if (!roll(t, 5))
        steps_are_redone(t, i);
    else if (roll(t, 3))
        use_is_measured(t, i);
    else
        lease_ends(t, i);
}

static void gang_blocks(struct truth *t)
{
    char name[16];
    int i = (int)roll(t, NODES);
    struct truth_node *n = &t->nodes[i];
    if (n->listed)
        n->kept = (int)roll(t, 20);
    tell_book(t, &(struct slotbook_event){.kind = SLOTBOOK_EV_KEEP,
                                          .name = node_word(i, name),
                                          .amount = n->listed ? n->kept * PIECE : PIECE});
}

/* Forth or back, by hours; the table of intervals is 42 days long. */
static void clock_jumps(struct truth *t)
{
    int64_t jump = (int64_t)roll(t, 3600 * 8) * 1000 * (roll(t, 2) ? 1 : -1);
    int64_t label = t->now + t->offset + jump;
    if (label < SLOTBOOK_EVERY || label > SLOTBOOK_EVERY * (INTERVALS - 800))
        jump = 0;
    t->offset += jump;
    tell_book(t, &(struct slotbook_event){.kind = SLOTBOOK_EV_CLOCK, .offset = t->offset});
}

static void something_happens(struct truth *t)
{
    uint32_t what = roll(t, 1000);
    spend(t, roll(t, 3) ? roll(t, 4000) : roll(t, 40) ? 0 : roll(t, 3600 * 1000));
    if (what < 150)
        happens_to_node(t);
    else if (what < 800)
        happens_to_lease(t);
    else if (what < 950)
        gang_blocks(t);
    else if (what < 970)
        take_sums(t);
    else if (what < 980)
        shorten_log(t);
    else if (what < 990)
        die_and_replay(t);
    else
        clock_jumps(t);
}

/* Computed, redone and the others are the capacity, and none of them is negative. */
static void check_balance(const struct truth *t, int interval, int labels)
{
    int64_t parts = 0;
    for (int o = 0; o <= NOBODY; o++) {
        const int64_t *told = t->told[interval][labels][o];
        int64_t computed = told[SLOTBOOK_USED] - told[SLOTBOOK_REDONE];
        assert_true(computed >= 0 && told[SLOTBOOK_REDONE] >= 0);
        parts += computed + told[SLOTBOOK_REDONE];
        for (int i = SLOTBOOK_HELD_IDLE; i <= SLOTBOOK_FOREIGN; i++)
            parts += told[i];
    }
    assert_int_equal(parts, t->told[interval][labels][NOBODY][SLOTBOOK_CAPACITY]);
}

static void the_book_agrees_with_the_oracle(void **state)
{
    const char *asked = getenv("ARGUS_SLOTBOOK_EVENTS");
    long events = asked ? strtol(asked, NULL, 10) : EVENTS;
    struct truth *t = xcalloc(1, sizeof(*t));
    (void)state;
    *t = (struct truth){.random = 20261125, .now = 5000, .offset = 300 * SLOTBOOK_EVERY};
    t->expected = xcalloc(INTERVALS, sizeof(*t->expected));
    t->told = xcalloc(INTERVALS, sizeof(*t->told));
    t->book = slotbook_new(SEED, t->now, t->offset);
    buf_init(&t->saved, SLOTBOOK_TEXT_MAX);
    buf_init(&t->log, SLOTBOOK_TEXT_MAX);
    shorten_log(t);
    for (long i = 0; i < events; i++) {
        if (t->now + t->offset > SLOTBOOK_EVERY * (INTERVALS - 400)) { /* the table ends there */
            t->offset -= SLOTBOOK_EVERY * 3000;
            tell_book(t, &(struct slotbook_event){.kind = SLOTBOOK_EV_CLOCK, .offset = t->offset});
        }
        something_happens(t);
        const char *broken = slotbook_check(t->book);
        if (broken)
            fail_msg("event %ld: %s", i, broken);
    }
    take_sums(t);
    for (int i = 0; i < INTERVALS; i++) {
        assert_memory_equal(t->told[i], t->expected[i], sizeof(t->told[i]));
        for (int l = 0; l < LABELS; l++)
            check_balance(t, i, l);
    }
    slotbook_free(t->book);
    buf_release(&t->saved);
    buf_release(&t->log);
    free(t->expected);
    free(t->told);
    free(t);
}

static void what_is_no_event_is_refused(void **state)
{
    struct slotbook *b = slotbook_new(SEED, 0, 0);
    (void)state;
    assert_false(load_event(b, "{}", 2));
    assert_false(load_event(b, "{\"event\":", 9));
    assert_false(load_event(b, "[1]", 3));
    assert_false(slotbook_load(b, "{}", 2));
    assert_true(slotbook_load(b, "[]", 2));
    const char *late = "{\"event\":\"end\",\"at\":1,\"name\":\"never\"}";
    assert_true(load_event(b, late, strlen(late)));
    assert_null(slotbook_check(b));
    slotbook_free(b);
}

/* Two GPUs, one idle: a second of steps run again is a second of the other one. */
static void a_restart_is_no_idle_time(void **state)
{
    struct slotbook *b = slotbook_new(SEED, 0, 0);
    struct slotbook_part part = {.node = "n1", .amount = 2 * SLOTBOOK_GPU, .idle = SLOTBOOK_GPU};
    struct slotbook_event e = {
        .kind = SLOTBOOK_EV_BEGIN, .name = "job", .parts = &part, .n_parts = 1};
    struct slotbook_held held;
    (void)state;
    (void)slotbook_apply(b, &e);
    e = (struct slotbook_event){.kind = SLOTBOOK_EV_REDO, .at = 1000, .name = "job", .amount = 1};
    assert_true(slotbook_apply(b, &e));
    assert_false(slotbook_apply(b, &e)); /* it is so already */
    e.amount = 0;
    e.at = 2000;
    assert_true(slotbook_apply(b, &e));
    e.name = "never";
    e.amount = 1;
    assert_false(slotbook_apply(b, &e));
    assert_true(slotbook_job(b, "job", 5000, &held));
    assert_int_equal(held.redone, 1000 * SLOTBOOK_GPU);
    assert_int_equal(held.idle, 5000 * SLOTBOOK_GPU);
    assert_int_equal(held.held, 10000 * SLOTBOOK_GPU);
    slotbook_free(b);
}

static void a_pool_is_a_label(void **state)
{
    struct slotbook *b = slotbook_new(SEED, 0, 0);
    struct slotbook_part part = {.node = "n1", .amount = 3 * SLOTBOOK_GPU, .idle = SLOTBOOK_GPU};
    int64_t now[SLOTBOOK_SUMS];
    (void)state;
    for (int i = 0; i < 2; i++)
        (void)slotbook_apply(b, &(struct slotbook_event){.kind = SLOTBOOK_EV_NODE,
                                                         .name = i ? "n2" : "n1",
                                                         .labels = i ? "a100" : "h20,ib",
                                                         .gpus = (int64_t)8 * SLOTBOOK_GPU});
    (void)slotbook_apply(b, &(struct slotbook_event){.kind = SLOTBOOK_EV_BEGIN,
                                                     .name = "job",
                                                     .project = "rl",
                                                     .parts = &part,
                                                     .n_parts = 1});
    slotbook_pool(b, "ib", now);
    assert_int_equal(now[SLOTBOOK_CAPACITY], 8 * SLOTBOOK_GPU);
    assert_int_equal(now[SLOTBOOK_USED], 2 * SLOTBOOK_GPU);
    assert_int_equal(now[SLOTBOOK_HELD_IDLE], SLOTBOOK_GPU);
    assert_int_equal(now[SLOTBOOK_FREE], 5 * SLOTBOOK_GPU);
    slotbook_pool(b, "", now);
    assert_int_equal(now[SLOTBOOK_CAPACITY], 16 * SLOTBOOK_GPU);
    assert_int_equal(now[SLOTBOOK_FREE], 13 * SLOTBOOK_GPU);
    slotbook_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_book_agrees_with_the_oracle),
        cmocka_unit_test(what_is_no_event_is_refused),
        cmocka_unit_test(a_restart_is_no_idle_time),
        cmocka_unit_test(a_pool_is_a_label),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

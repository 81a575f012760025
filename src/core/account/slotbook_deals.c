/* SPDX-License-Identifier: Apache-2.0 */
/* slotbook_deals.c - what projects have of each other, summed over time; see dealing.h.
 *
 * What is held and what is free stands in the cells, what is guaranteed and waited for was told.
 * After a change the rates of all pairs are divided anew, once a second at most, because that costs
 * a look at everything. A moment is looked at in an order of its own (size and name), so that a
 * book that was replayed divides it alike. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sum.h"
#include "core/account/slotbook_state.h"

/* ---- a life ---- */

void deals_init(struct slotbook_deals *d, const unsigned char seed[static 16])
{
    memcpy(d->seed, seed, sizeof(d->seed));
    d->due = DEALS_NOT_DUE;
    d->guarantees = map_new(seed);
    d->waits = map_new(seed);
    d->pairs = map_new(seed);
}

static void claim_free(struct slotbook_claim *c)
{
    free(c->pool);
    free(c->project);
    free(c);
}

static void slotbook_pair_free(struct slotbook_pair *p)
{
    free(p->project);
    free(p->other);
    free(p);
}

void deals_release(struct slotbook_deals *d)
{
    void *v;
    for (size_t pos = 0; (v = map_next(d->guarantees, &pos, NULL));)
        claim_free(v);
    for (size_t pos = 0; (v = map_next(d->waits, &pos, NULL));)
        claim_free(v);
    for (size_t pos = 0; (v = map_next(d->pairs, &pos, NULL));)
        slotbook_pair_free(v);
    map_free(d->guarantees);
    map_free(d->waits);
    map_free(d->pairs);
    free(d->closed);
}

/* ---- what is told ---- */

static struct map *claims_of(const struct slotbook *b, enum slotbook_kind kind)
{
    return kind == SLOTBOOK_EV_WAIT ? b->deals.waits : b->deals.guarantees;
}

static int64_t claim_amount(const struct slotbook_event *e)
{
    int64_t most = e->kind == SLOTBOOK_EV_WAIT ? SLOTBOOK_WAIT_MAX : INT64_MAX / 1000000;
    return e->amount < 0 ? 0 : e->amount < most ? e->amount : most;
}

bool deals_apply(struct slotbook *b, const struct slotbook_event *e)
{
    const char *pool = str_or(e->labels, ""), *project = str_or(e->project, "");
    _cleanup_(freep) char *key = xasprintf("%s\n%s", pool, project);
    struct map *claims = claims_of(b, e->kind);
    struct slotbook_claim *c = map_find(claims, key);
    int64_t amount = claim_amount(e);
    if (amount == (c ? c->amount : 0))
        return false;
    if (!amount) {
        map_remove(claims, key);
        claim_free(c);
        return true;
    }
    if (!c) {
        c = xcalloc(1, sizeof(*c));
        c->pool = xstrdup(pool);
        c->project = xstrdup(project);
        map_set(claims, key, c);
    }
    c->amount = amount;
    return true;
}

const struct slotbook_claim *slotbook_claim_next(const struct slotbook *b,
                                                 enum slotbook_kind kind,
                                                 size_t *pos)
{
    return map_next(claims_of(b, kind), pos, NULL);
}

/* ---- the moment ---- */

struct deals_moment {
    struct dealing_party *v;
    size_t n;
    struct map *by_name; /* to parties of v */
    int64_t free_amount;
    struct deals_held *held;
    size_t n_held;
};

/* What a project holds of nodes with these labels. */
struct deals_held {
    const char *labels, *project;
    size_t party;
    int64_t amount;
};

static int64_t cell_held(const struct slotbook_cell *c)
{
    return *c->project ? c->rate[SLOTBOOK_USED] + c->rate[SLOTBOOK_HELD_IDLE] : 0;
}

static struct dealing_party *moment_party(struct deals_moment *m, const char *name)
{
    struct dealing_party *p = map_find(m->by_name, name);
    if (p)
        return p;
    p = &m->v[m->n++];
    *p = (struct dealing_party){.name = name};
    map_set(m->by_name, name, p);
    return p;
}

static void moment_sort(const struct slotbook *b, struct deals_moment *m)
{
    dealing_sort(m->v, m->n);
    map_free(m->by_name);
    m->by_name = map_new(b->deals.seed);
    for (size_t i = 0; i < m->n; i++)
        map_set(m->by_name, m->v[i].name, &m->v[i]);
}

static int held_by_owner(const void *a, const void *b)
{
    const struct deals_held *p = a, *q = b;
    int by_labels = strcmp(p->labels, q->labels);
    return by_labels ? by_labels : strcmp(p->project, q->project);
}

static size_t party_of(const struct deals_moment *m, const char *project)
{
    return (size_t)((struct dealing_party *)map_find(m->by_name, project) - m->v);
}

/* Cells of all users and workloads together: each pool looks at them. */
static void moment_init_held(const struct slotbook *b, struct deals_moment *m)
{
    const struct slotbook_cell *cell;
    size_t n = 0;
    struct deals_held *v = xcalloc(map_count(b->cells) + 1, sizeof(*v));
    for (size_t pos = 0; (cell = map_next(b->cells, &pos, NULL));)
        if (cell_held(cell))
            v[n++] = (struct deals_held){
                .labels = cell->labels, .project = cell->project, .amount = cell_held(cell)};
    xsort(v, n, sizeof(*v), held_by_owner);
    for (size_t i = 0; i < n; i++) {
        if (m->n_held && !held_by_owner(&v[m->n_held - 1], &v[i])) {
            sum_add(&v[m->n_held - 1].amount, v[i].amount);
            continue;
        }
        v[m->n_held] = v[i];
        v[m->n_held++].party = party_of(m, v[i].project);
    }
    m->held = v;
}

static void moment_init(const struct slotbook *b, struct deals_moment *m)
{
    const struct slotbook_deals *d = &b->deals;
    const struct slotbook_cell *cell;
    const struct slotbook_claim *c;
    size_t most = map_count(b->cells) + map_count(d->guarantees) + map_count(d->waits);
    *m = (struct deals_moment){.v = xcalloc(most + 1, sizeof(*m->v)), .by_name = map_new(d->seed)};
    for (size_t pos = 0; (cell = map_next(b->cells, &pos, NULL));) {
        m->free_amount += cell->rate[SLOTBOOK_FREE] + cell->rate[SLOTBOOK_BLOCKED];
        if (cell_held(cell))
            sum_add(&moment_party(m, cell->project)->held, cell_held(cell));
    }
    for (size_t pos = 0; (c = map_next(d->guarantees, &pos, NULL));)
        sum_add(&moment_party(m, c->project)->guaranteed, c->amount);
    for (size_t pos = 0; (c = map_next(d->waits, &pos, NULL));)
        sum_add(&moment_party(m, c->project)->waits, c->amount);
    moment_sort(b, m);
    moment_init_held(b, m);
}

static void moment_release(struct deals_moment *m)
{
    map_free(m->by_name);
    free(m->held);
    free(m->v);
}

/* ---- rates ---- */

static struct slotbook_pair *pair_take(struct slotbook *b, const char *project, const char *other)
{
    _cleanup_(freep) char *key = xasprintf("%s\n%s", project, other);
    struct slotbook_pair *p = map_find(b->deals.pairs, key);
    if (p)
        return p;
    p = xcalloc(1, sizeof(*p));
    p->project = xstrdup(project);
    p->other = xstrdup(other);
    map_set(b->deals.pairs, key, p);
    return p;
}

static void on_dealing(const char *project,
                       const char *other,
                       enum dealing_sum sum,
                       int64_t amount,
                       void *arg)
{
    sum_add(&pair_take(arg, project, other)->rate[sum], amount);
}

/* ---- pools ---- */

/* A pool that somebody waits for. */
struct deals_pool {
    const char *name;
    int64_t waits;
};

static int pool_by_waits(const void *a, const void *b)
{
    const struct deals_pool *p = a, *q = b;
    if (p->waits != q->waits)
        return p->waits > q->waits ? -1 : 1;
    return strcmp(p->name, q->name);
}

/* The pools that are waited for most, and their number; *ret is the caller's. */
static size_t largest_pools(const struct slotbook *b, struct deals_pool **ret)
{
    size_t n = 0;
    struct deals_pool *v = xcalloc(map_count(b->deals.waits) + 1, sizeof(*v));
    struct map *seen = map_new(b->deals.seed);
    const struct slotbook_claim *c;
    for (size_t pos = 0; (c = map_next(b->deals.waits, &pos, NULL));) {
        struct deals_pool *p = map_find(seen, c->pool);
        if (!p) {
            p = &v[n++];
            p->name = c->pool;
            map_set(seen, c->pool, p);
        }
        sum_add(&p->waits, c->amount);
    }
    map_free(seen);
    xsort(v, n, sizeof(*v), pool_by_waits);
    *ret = v;
    return n < DEALING_POOLS ? n : DEALING_POOLS;
}

/* waits: by party; held has room for all, and is empty again on return, as waits is. */
static void divide_pool(struct slotbook *b,
                        const struct deals_moment *m,
                        const char *pool,
                        int64_t *waits,
                        int64_t *held)
{
    for (size_t i = 0; i < m->n_held; i++)
        if (str_list_has_all(m->held[i].labels, pool))
            sum_add(&held[m->held[i].party], m->held[i].amount);
    dealing_wait(m->v, m->n, waits, held, on_dealing, b);
    memset(waits, 0, m->n * sizeof(*waits));
    memset(held, 0, m->n * sizeof(*held));
}

/* Users choose what pools there are, and one costs a table of all projects: few are divided by
 * themselves, and the others as one pool that has all nodes. */
static void divide_waits(struct slotbook *b, const struct deals_moment *m)
{
    struct deals_pool *pools;
    size_t n = largest_pools(b, &pools);
    int64_t *waits = xcalloc((n + 1) * m->n + 1, sizeof(*waits)),
            *held = xcalloc(m->n + 1, sizeof(*held));
    struct map *by_name = map_new(b->deals.seed);
    const struct slotbook_claim *c;
    for (size_t i = 0; i < n; i++)
        if (*pools[i].name)
            map_set(by_name, pools[i].name, &pools[i]);
    for (size_t pos = 0; (c = map_next(b->deals.waits, &pos, NULL));) {
        const struct deals_pool *p = map_find(by_name, c->pool);
        size_t row = p ? (size_t)(p - pools) : n;
        sum_add(&waits[row * m->n + party_of(m, c->project)], c->amount);
    }
    for (size_t i = 0; i < n; i++)
        if (*pools[i].name)
            divide_pool(b, m, pools[i].name, &waits[i * m->n], held);
    divide_pool(b, m, "", &waits[n * m->n], held);
    map_free(by_name);
    free(pools);
    free(waits);
    free(held);
}

static void deals_divide(struct slotbook *b)
{
    struct slotbook_pair *p;
    struct deals_moment m;
    for (size_t pos = 0; (p = map_next(b->deals.pairs, &pos, NULL));)
        memset(p->rate, 0, sizeof(p->rate));
    if (!map_count(b->deals.guarantees) && !map_count(b->deals.waits))
        return;
    moment_init(b, &m);
    if (map_count(b->deals.guarantees)) /* else nothing is borrowed: all is everybody's */
        dealing_lend(m.v, m.n, m.free_amount, on_dealing, b);
    divide_waits(b, &m);
    moment_release(&m);
}

/* ---- time ---- */

int64_t deals_next_second(const struct slotbook *b)
{
    const int64_t second = 1000;
    return b->now + (second - b->now % second) % second;
}

void deals_change(struct slotbook *b, int64_t due)
{
    b->deals.due = due < b->deals.due ? due : b->deals.due;
}

static void deals_sum(struct slotbook_deals *d, int64_t until)
{
    struct slotbook_pair *p;
    if (until <= d->since)
        return;
    for (size_t pos = 0; (p = map_next(d->pairs, &pos, NULL));)
        for (int i = 0; i < DEALING_SUMS; i++)
            sum_add(&p->sum[i], sum_times(p->rate[i], until - d->since));
    d->since = until;
}

void deals_settle(struct slotbook *b)
{
    deals_sum(&b->deals, b->now);
    deals_divide(b);
    b->deals.since = b->now;
    b->deals.due = DEALS_NOT_DUE;
}

static bool slotbook_pair_is_empty(const struct slotbook_pair *p)
{
    for (int i = 0; i < DEALING_SUMS; i++)
        if (p->sum[i])
            return false;
    return true;
}

void deals_close(struct slotbook *b, int64_t end, int64_t label)
{
    struct slotbook_deals *d = &b->deals;
    struct slotbook_pair *p;
    deals_sum(d, end);
    for (size_t pos = 0; (p = map_next(d->pairs, &pos, NULL));) {
        if (slotbook_pair_is_empty(p))
            continue;
        if (d->n_closed == d->cap_closed) {
            d->cap_closed = d->cap_closed ? d->cap_closed * 2 : 64;
            d->closed = xrealloc(d->closed, d->cap_closed, sizeof(*d->closed));
        }
        struct slotbook_closed_pair *k = &d->closed[d->n_closed++];
        *k = (struct slotbook_closed_pair){.pair = p, .at = label};
        memcpy(k->sum, p->sum, sizeof(k->sum));
        memset(p->sum, 0, sizeof(p->sum));
        p->refs++;
    }
}

bool deals_are_empty(const struct slotbook *b)
{
    return !map_count(b->deals.pairs);
}

/* ---- what it tells ---- */

static void give_pair(const struct slotbook_pair *p,
                      int64_t at,
                      const int64_t *sums,
                      slotbook_dealing_f f,
                      void *arg)
{
    const struct slotbook_dealing row = {
        .at = at, .project = p->project, .other = p->other, .sums = sums};
    if (f)
        f(&row, arg);
}

static bool slotbook_pair_rests(const struct slotbook_pair *p)
{
    for (int i = 0; i < DEALING_SUMS; i++)
        if (p->rate[i])
            return false;
    return true;
}

/* The pairs have no sums: those without rates go. */
static void drop_resting_pairs(struct slotbook_deals *d)
{
    size_t n = 0;
    struct slotbook_pair *p;
    struct slotbook_pair **resting =
        xcalloc(map_count(d->pairs) + 1, sizeof(struct slotbook_pair *));
    for (size_t pos = 0; (p = map_next(d->pairs, &pos, NULL));)
        if (!p->refs && slotbook_pair_rests(p))
            resting[n++] = p;
    for (size_t i = 0; i < n; i++) {
        _cleanup_(freep) char *key = xasprintf("%s\n%s", resting[i]->project, resting[i]->other);
        map_remove(d->pairs, key);
        slotbook_pair_free(resting[i]);
    }
    free(resting);
}

void slotbook_take_dealings(struct slotbook *b, int64_t now, slotbook_dealing_f f, void *arg)
{
    struct slotbook_deals *d = &b->deals;
    struct slotbook_pair *p;
    slotbook_advance(b, now);
    deals_sum(d, b->now);
    for (size_t i = 0; i < d->n_closed; i++) {
        give_pair(d->closed[i].pair, d->closed[i].at, d->closed[i].sum, f, arg);
        d->closed[i].pair->refs--;
    }
    d->n_closed = 0;
    for (size_t pos = 0; (p = map_next(d->pairs, &pos, NULL));) {
        if (!slotbook_pair_is_empty(p))
            give_pair(p, slotbook_interval(slotbook_label(b)), p->sum, f, arg);
        memset(p->sum, 0, sizeof(p->sum));
    }
    drop_resting_pairs(d);
    deals_change(b, b->now); /* a book that is saved now makes its rates at this moment, too */
}

/* ---- invariants ---- */

const char *deals_check(const struct slotbook *b)
{
    const struct slotbook_deals *d = &b->deals;
    const struct slotbook_claim *c;
    const struct slotbook_pair *p;
    int64_t lent = 0, waits = 0, given = 0;
    if (d->due != DEALS_NOT_DUE)
        return NULL; /* the rates are those of before */
    for (size_t pos = 0; (c = map_next(d->waits, &pos, NULL));)
        waits -= c->amount;
    for (size_t pos = 0; (p = map_next(d->pairs, &pos, NULL));) {
        bool theirs = *p->other && strcmp(p->other, p->project) != 0;
        lent += p->rate[DEALING_LENT] - (theirs ? p->rate[DEALING_BORROWED] : 0);
        given += p->rate[DEALING_WAIT_GIVEN] - (theirs ? p->rate[DEALING_WAIT_TAKEN] : 0);
        waits += p->rate[DEALING_WAIT_TAKEN];
    }
    return lent    ? "what one borrows another one lends"
           : given ? "what one waits another one gives"
           : waits ? "every wait is taken once"
                   : NULL;
}

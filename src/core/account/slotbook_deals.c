/* SPDX-License-Identifier: Apache-2.0 */
/* slotbook_deals.c - what projects have of each other, summed over time; see dealing.h.
 *
 * What is held and what is free stands in the cells, what is guaranteed and waited for was told.
 * After a change the rates of all pairs are divided anew, once per moment at most. A moment is
 * looked at in an order of its own (size and name), so that a book that was replayed divides it
 * alike. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/account/slotbook_state.h"

/* ---- a life ---- */

void deals_init(struct slotbook_deals *d, const unsigned char seed[static 16])
{
    memcpy(d->seed, seed, sizeof(d->seed));
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
            moment_party(m, cell->project)->held += cell_held(cell);
    }
    for (size_t pos = 0; (c = map_next(d->guarantees, &pos, NULL));)
        moment_party(m, c->project)->guaranteed += c->amount;
    for (size_t pos = 0; (c = map_next(d->waits, &pos, NULL));)
        moment_party(m, c->project)->waits += c->amount;
    moment_sort(b, m);
}

static void moment_release(struct deals_moment *m)
{
    map_free(m->by_name);
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
    pair_take(arg, project, other)->rate[sum] += amount;
}

/* waits and held have room for all parties, and are empty again on return. */
static void divide_pool(struct slotbook *b,
                        const struct deals_moment *m,
                        const char *pool,
                        int64_t *waits,
                        int64_t *held)
{
    const struct slotbook_cell *cell;
    const struct slotbook_claim *c;
    for (size_t pos = 0; (c = map_next(b->deals.waits, &pos, NULL));)
        if (str_eq(c->pool, pool))
            waits[(struct dealing_party *)map_find(m->by_name, c->project) - m->v] += c->amount;
    for (size_t pos = 0; (cell = map_next(b->cells, &pos, NULL));)
        if (cell_held(cell) && str_list_has_all(cell->labels, pool))
            held[(struct dealing_party *)map_find(m->by_name, cell->project) - m->v] +=
                cell_held(cell);
    dealing_wait(m->v, m->n, waits, held, on_dealing, b);
    memset(waits, 0, m->n * sizeof(*waits));
    memset(held, 0, m->n * sizeof(*held));
}

static void divide_waits(struct slotbook *b, const struct deals_moment *m)
{
    int64_t *waits = xcalloc(m->n + 1, sizeof(*waits)), *held = xcalloc(m->n + 1, sizeof(*held));
    struct map *seen = map_new(b->deals.seed);
    const struct slotbook_claim *c;
    for (size_t pos = 0; (c = map_next(b->deals.waits, &pos, NULL));)
        if (!map_set(seen, c->pool, c->pool))
            divide_pool(b, m, c->pool, waits, held);
    map_free(seen);
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

static void deals_sum(struct slotbook_deals *d, int64_t until)
{
    struct slotbook_pair *p;
    if (until <= d->since)
        return;
    for (size_t pos = 0; (p = map_next(d->pairs, &pos, NULL));)
        for (int i = 0; i < DEALING_SUMS; i++)
            p->sum[i] += p->rate[i] * (until - d->since);
    d->since = until;
}

void deals_settle(struct slotbook *b)
{
    if (!b->deals.stale)
        return;
    deals_sum(&b->deals, b->now);
    deals_divide(b);
    b->deals.since = b->now;
    b->deals.stale = false;
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
}

/* ---- invariants ---- */

const char *deals_check(const struct slotbook *b)
{
    const struct slotbook_deals *d = &b->deals;
    const struct slotbook_claim *c;
    const struct slotbook_pair *p;
    int64_t lent = 0, waits = 0, given = 0;
    if (d->stale)
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

/* SPDX-License-Identifier: Apache-2.0 */
/* sched.c - the scheduler as a whole: made, copied, freed, checked; see sched.h.
 * What it is made of is told in sched_state.h. */
#include "core/sched/sched.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "core/sched/line/sched_order.h"
#include "core/sched/line/sched_queue.h"
#include "core/sched/place/sched_hosts.h"
#include "core/sched/place/sched_ledger.h"
#include "core/sched/place/sched_promise.h"
#include "core/sched/sched_pass.h"
#include "core/sched/share/sched_quota.h"

enum { TEXT_MAX = 64 << 20 }; /* names and slots of one gang */

/* ---- words ---- */

#define X(name, word) [SCHED_POLICY_##name] = #word,
static const char *const policies[] = {SCHED_POLICY_TABLE(X)};
#undef X
#define X(name, word) [SCHED_HINT_##name] = #word,
static const char *const hints[] = {SCHED_HINT_TABLE(X)};
#undef X
static_assert(array_len(policies) == SCHED_POLICY_END, "each policy has its word");
static_assert(array_len(hints) == SCHED_HINT_END, "each hint has its word");

const char *sched_policy_to_string(enum sched_policy p)
{
    return policies[p];
}

enum sched_policy sched_policy_from_string(const char *word)
{
    int p = 0;
    while (p < SCHED_POLICY_END && !str_eq(word, policies[p]))
        p++;
    return (enum sched_policy)p;
}

const char *sched_hint_to_string(enum sched_hint_kind k)
{
    return hints[k];
}

/* ---- a life ---- */

/* Every table and every index, for what is done to all. */
struct parts {
    struct rows *tables[11];
    struct index *indexes[9];
};

static struct parts parts_of(struct sched *s)
{
    return (struct parts){
        .tables = {&s->hosts, &s->pools, &s->shapes, &s->parts, &s->leases, &s->accounts,
                   &s->waiting, &s->groups, &s->lanes, &s->lines, &s->keeps},
        .indexes = {&s->host_of, &s->pool_of, &s->shape_of, &s->account_of, &s->lease_of,
                    &s->waiting_of, &s->group_of, &s->lane_of, &s->line_of},
    };
}

static void init_tables(struct sched *s)
{
    const size_t sizes[] = {sizeof(struct host),    sizeof(struct pool),  sizeof(struct shape),
                            sizeof(struct part),    sizeof(struct lease), sizeof(struct account),
                            sizeof(struct waiting), sizeof(struct group), sizeof(struct lane),
                            sizeof(struct line),    sizeof(struct keep)};
    struct parts p = parts_of(s);
    static_assert(array_len(sizes) == array_len(p.tables), "each table has its size");
    for (size_t i = 0; i < array_len(sizes); i++)
        rows_init(p.tables[i], sizes[i]);
}

static struct texts *texts_new(void)
{
    struct texts *t = xcalloc(1, sizeof(*t));
    buf_init(&t->nodes, TEXT_MAX);
    buf_init(&t->driver, TEXT_MAX);
    return t;
}

struct sched *sched_new(const unsigned char seed[static 16], const struct sched_limits *limits)
{
    struct sched *s = xcalloc(1, sizeof(*s));
    memcpy(s->seed, seed, sizeof(s->seed));
    memcpy(&s->salt, seed, sizeof(s->salt));
    s->limits = *limits;
    init_tables(s);
    s->kinds = xcalloc(1, sizeof(*s->kinds));
    s->n_kinds = 1;
    s->texts = texts_new();
    changed(s);
    s->nodes_stamp = s->tick;
    return s;
}

void sched_free(struct sched *s)
{
    if (!s)
        return;
    pass_release(s);
    foresight_release(s);
    queue_release(s);
    listed_release(s);
    hosts_release(s);
    kinds_release(s);
    for (uint32_t i = 1; i < s->pools.n; i++)
        if (row_is_used(&s->pools, i)) {
            free(pool_at(s, i)->text);
            free(pool_at(s, i)->needs);
            numbers_release(&pool_at(s, i)->kinds);
        }
    for (uint32_t i = 1; i < s->accounts.n; i++)
        if (row_is_used(&s->accounts, i))
            free(account_at(s, i)->name);
    struct parts p = parts_of(s);
    for (size_t i = 0; i < array_len(p.tables); i++)
        rows_release(p.tables[i]);
    for (size_t i = 0; i < array_len(p.indexes); i++)
        index_release(p.indexes[i]);
    numbers_release(&s->guaranteed);
    free(s->tellings);
    buf_release(&s->texts->nodes);
    buf_release(&s->texts->driver);
    free(s->texts);
    free(s);
}

/* Texts and lists that rows own. */
static void copy_owned(struct sched *c)
{
    for (uint32_t i = 1; i < c->hosts.n; i++) {
        struct host *h = host_at(c, i);
        h->first_keep = 0; /* promises are made anew */
        if (!row_is_used(&c->hosts, i))
            continue;
        h->name = xstrdup(h->name);
        h->labels = xstrdup(h->labels);
        h->network = xstrdup(h->network);
        h->versions = xstrdup(h->versions);
        h->why_not = xstrdup(h->why_not);
        h->only = xstrdup(h->only);
    }
    for (uint32_t i = 1; i < c->pools.n; i++)
        if (row_is_used(&c->pools, i)) {
            struct pool *p = pool_at(c, i);
            struct numbers kinds = p->kinds;
            p->text = xstrdup(p->text);
            p->needs = xstrdup(p->needs);
            numbers_copy(&p->kinds, &kinds);
        }
    for (uint32_t i = 1; i < c->accounts.n; i++)
        if (row_is_used(&c->accounts, i))
            account_at(c, i)->name = xstrdup(account_at(c, i)->name);
    for (uint32_t i = 1; i < c->waiting.n; i++)
        if (row_is_used(&c->waiting, i) && waiting_at(c, i)->avoid)
            waiting_at(c, i)->avoid = xstrdup(waiting_at(c, i)->avoid);
}

struct sched *sched_copy(const struct sched *s)
{
    struct sched *c = xmalloc(sizeof(*c));
    *c = *s;
    struct parts p = parts_of(c);
    for (size_t i = 0; i < array_len(p.tables); i++) {
        struct rows of = *p.tables[i]; /* still the original's */
        rows_copy(p.tables[i], &of);
    }
    for (size_t i = 0; i < array_len(p.indexes); i++) {
        struct index of = *p.indexes[i];
        index_copy(p.indexes[i], &of);
    }
    copy_owned(c);
    kinds_copy(c, s);
    numbers_copy(&c->guaranteed, &s->guaranteed);
    c->keeps.n = 1;
    c->keeps.freed = 0;
    c->ageing = xcalloc(s->cap_ageing, sizeof(*c->ageing));
    if (s->n_ageing)
        memcpy(c->ageing, s->ageing, s->n_ageing * sizeof(*c->ageing));
    c->tellings = xcalloc(s->n_tellings, sizeof(*c->tellings));
    if (s->n_tellings)
        memcpy(c->tellings, s->tellings, s->n_tellings * sizeof(*c->tellings));
    c->walk = (struct walk){.vain_stamp = s->walk.vain_stamp, .vain_now = s->walk.vain_now};
    memset(c->foresight, 0, sizeof(c->foresight));
    memset(&c->listed, 0, sizeof(c->listed));
    c->texts = texts_new();
    return c;
}

const char *sched_check(const struct sched *s)
{
    const char *broken = hosts_check(s);
    broken = broken ? broken : ledger_check(s);
    broken = broken ? broken : queue_check(s);
    return broken ? broken : quota_check(s);
}

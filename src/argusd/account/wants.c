/* SPDX-License-Identifier: Apache-2.0 */
/* wants.c - see wants.h. The book is told of what is there first, then of what is there no more;
 * an event that says nothing new changes nothing and is not kept. */
#include "argusd/account/wants.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/sum.h"
#include "core/job/access.h"

struct wants_told {
    const struct slotbook *book;
    int64_t now;
    enum slotbook_kind kind;
    wants_tell_f tell;
    void *arg;
};

static void wants_tell(const struct wants_told *t,
                       const char *pool,
                       const char *project,
                       int64_t amount)
{
    struct slotbook_event e = {
        .kind = t->kind, .at = t->now, .labels = pool, .project = project, .amount = amount};
    t->tell(&e, t->arg);
}

/* As accounting is told of jobs: one of no project is the default one's. */
static const char *wants_project(const struct sched_want *w)
{
    return *w->project ? w->project : ACCESS_DEFAULT_PROJECT;
}

/* Claims of the book that are not listed; their texts go with them. */
static void wants_end_others(const struct wants_told *t, const struct map *listed)
{
    const struct slotbook_claim *c;
    struct slotbook_claim *over = NULL;
    size_t n = 0;
    for (size_t pos = 0; (c = slotbook_claim_next(t->book, t->kind, &pos));) {
        _cleanup_(freep) char *key = xasprintf("%s\n%s", c->pool, c->project);
        if (map_find(listed, key))
            continue;
        over = xrealloc(over, n + 1, sizeof(*over));
        over[n++] =
            (struct slotbook_claim){.pool = xstrdup(c->pool), .project = xstrdup(c->project)};
    }
    for (size_t i = 0; i < n; i++) {
        wants_tell(t, over[i].pool, over[i].project, 0);
        free(over[i].pool);
        free(over[i].project);
    }
    free(over);
}

/* One pool and project may stand there several times: jobs of no project, and of the default one;
 * labels in another order. */
static void wants_tell_all(const struct wants_told *t, struct sched_want *v, size_t n)
{
    static const unsigned char seed[16] = {3}; /* names that operators chose */
    struct map *listed = map_new(seed);
    struct strv pools = {0};
    for (size_t i = 0; i < n; i++) {
        _cleanup_(freep) char *pool = dealing_pool(v[i].pool);
        _cleanup_(freep) char *key = xasprintf("%s\n%s", pool, wants_project(&v[i]));
        strv_add(&pools, pool);
        struct sched_want *first = map_set(listed, key, &v[i]);
        if (!first)
            continue;
        sum_add(&v[i].amount, first->amount);
        first->amount = 0;
    }
    for (size_t i = 0; i < n; i++)
        if (v[i].amount)
            wants_tell(t, pools.v[i], wants_project(&v[i]), v[i].amount);
    wants_end_others(t, listed);
    strv_release(&pools);
    map_free(listed);
}

void wants_look(const struct slotbook *book,
                const struct sched *sched,
                int64_t now,
                wants_tell_f tell,
                void *arg)
{
    struct wants_told t = {.book = book, .now = now, .tell = tell, .arg = arg};
    struct sched_want *v;
    size_t n = sched_guarantees(sched, &v);
    t.kind = SLOTBOOK_EV_GUARANTEE;
    wants_tell_all(&t, v, n);
    free(v);
    n = sched_wants(sched, &v);
    t.kind = SLOTBOOK_EV_WAIT;
    wants_tell_all(&t, v, n);
    free(v);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* sched_want.c - how many GPUs jobs wait for, and what projects are guaranteed; see sched.h.
 *
 * A job is asked what a pass would ask it, but for its place in line; what depends on its shape
 * alone is asked once for all jobs of that shape. */
#include <stdlib.h>
#include <string.h>

#include "base/sum.h"
#include "core/sched/place/sched_fit.h"
#include "core/sched/sched_pass.h"
#include "core/sched/share/sched_quota.h"

enum want_verdict { WANT_UNKNOWN, WANT_GPUS, WANT_OTHER };
enum { WANT_CHAINS = 4096 };

/* Room for its slots is there, but not for its CPUs or its memory. */
static bool want_lacks_more(const struct sched *s, struct shape *shape)
{
    struct shape bare = *shape;
    if (fit_exists_now(s, shape))
        return false;
    bare.driver.memory = bare.other.memory = 0;
    bare.driver.cpus = bare.other.cpus = 0;
    bare.full_at = shape->bare_full_at;
    bool found = fit_exists_now(s, &bare);
    shape->bare_full_at = bare.full_at;
    return found;
}

static bool want_is_of_gpus(const struct sched *s, uint32_t row, unsigned char *verdicts)
{
    struct shape *shape = shape_at(s, row);
    if (verdicts[row] == WANT_UNKNOWN)
        verdicts[row] = shape->gpus && shape_fits_ever(s, shape) && !want_lacks_more(s, shape)
                            ? WANT_GPUS
                            : WANT_OTHER;
    return verdicts[row] == WANT_GPUS;
}

static int want_by_pool_and_project(const void *a, const void *b)
{
    const struct sched_want *p = a, *q = b;
    int by_pool = strcmp(p->pool, q->pool);
    return by_pool ? by_pool : strcmp(p->project, q->project);
}

/* Those of one pool and project together. */
static size_t wants_merge(struct sched_want *v, size_t n)
{
    size_t kept = 0;
    xsort(v, n, sizeof(*v), want_by_pool_and_project);
    for (size_t i = 0; i < n; i++)
        if (kept && !want_by_pool_and_project(&v[kept - 1], &v[i]))
            sum_add(&v[kept - 1].amount, v[i].amount);
        else
            v[kept++] = v[i];
    return kept;
}

struct want_sum {
    uint32_t pool, project, next; /* next: its place in want_sums.v, plus 1; 0 = none */
    int64_t amount;
};

/* By pool and project, which are few; jobs are many. `first` heads chains by hash. */
struct want_sums {
    struct want_sum *v;
    size_t n;
    uint32_t first[WANT_CHAINS];
};

static void wants_count(struct want_sums *w, uint32_t pool, uint32_t project, int64_t amount)
{
    uint32_t *first = &w->first[mix64((uint64_t)pool << 32 | project) % WANT_CHAINS];
    struct want_sum *p = NULL;
    for (uint32_t i = *first; i && !p; i = w->v[i - 1].next)
        if (w->v[i - 1].pool == pool && w->v[i - 1].project == project)
            p = &w->v[i - 1];
    if (!p) {
        p = &w->v[w->n++];
        *p = (struct want_sum){.pool = pool, .project = project, .next = *first};
        *first = (uint32_t)w->n;
    }
    sum_add(&p->amount, amount);
}

static size_t want_texts(const struct sched *s, const struct want_sums *w, struct sched_want **ret)
{
    struct sched_want *v = xcalloc(w->n + 1, sizeof(*v));
    for (size_t i = 0; i < w->n; i++)
        v[i] = (struct sched_want){.pool = pool_at(s, w->v[i].pool)->text,
                                   .project = account_at(s, w->v[i].project)->name,
                                   .amount = w->v[i].amount};
    *ret = v;
    return wants_merge(v, w->n); /* pools of one text may have other needs */
}

size_t sched_wants(const struct sched *s, struct sched_want **ret)
{
    struct want_sums *sums = xcalloc(1, sizeof(*sums));
    unsigned char *verdicts = xcalloc((size_t)s->shapes.n + 1, sizeof(*verdicts));
    uint32_t account;
    sums->v = xcalloc(s->n_waiting + 1, sizeof(*sums->v));
    for (uint32_t i = 1; i < s->waiting.n && !pass_at_live_limit(s); i++) {
        const struct waiting *w = row_is_used(&s->waiting, i) ? waiting_at(s, i) : NULL;
        if (!w || w->held || !want_is_of_gpus(s, w->shape, verdicts))
            continue;
        const struct shape *shape = shape_at(s, w->shape);
        if (!quota_blocks(s, w->f.project, w->f.user, shape, s->now, &account))
            wants_count(sums, shape->pool, w->f.project, shape->gpus);
    }
    size_t n = want_texts(s, sums, ret);
    free(verdicts);
    free(sums->v);
    free(sums);
    return n;
}

size_t sched_guarantees(const struct sched *s, struct sched_want **ret)
{
    struct sched_want *v = xcalloc(s->guaranteed.n + 1, sizeof(*v));
    size_t n = 0;
    for (size_t i = 0; i < s->guaranteed.n; i++) {
        uint32_t row = s->guaranteed.v[i];
        const struct account *a = row_is_used(&s->accounts, row) ? account_at(s, row) : NULL;
        if (a && a->kind == SCHED_PROJECT && account_guaranteed(a) > 0)
            v[n++] = (struct sched_want){
                .pool = "", .project = a->name, .amount = account_guaranteed(a)};
    }
    *ret = v;
    return n;
}

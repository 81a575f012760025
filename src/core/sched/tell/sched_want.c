/* SPDX-License-Identifier: Apache-2.0 */
/* sched_want.c - how many GPUs jobs wait for, and what projects are guaranteed; see sched.h.
 *
 * A job is asked what a pass would ask it, but for its place in line; what depends on its shape
 * alone is asked once for all jobs of that shape. */
#include <stdlib.h>
#include <string.h>

#include "core/sched/place/sched_fit.h"
#include "core/sched/sched_pass.h"
#include "core/sched/share/sched_quota.h"

enum want_verdict { WANT_UNKNOWN, WANT_GPUS, WANT_OTHER };

/* Room for its slots is there, but not for its CPUs or its memory. */
static bool want_lacks_more(const struct sched *s, struct shape *shape)
{
    struct shape bare = *shape;
    if (fit_exists_now(s, shape))
        return false;
    bare.driver.memory = bare.other.memory = 0;
    bare.driver.cpus = bare.other.cpus = 0;
    return fit_find(s, &(struct fit){.shape = &bare}, NULL);
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
            v[kept - 1].amount += v[i].amount;
        else
            v[kept++] = v[i];
    return kept;
}

size_t sched_wants(const struct sched *s, struct sched_want **ret)
{
    struct sched_want *v = xcalloc(s->n_waiting + 1, sizeof(*v));
    unsigned char *verdicts = xcalloc((size_t)s->shapes.n + 1, sizeof(*verdicts));
    uint32_t account;
    size_t n = 0;
    for (uint32_t i = 1; i < s->waiting.n && !pass_at_live_limit(s); i++) {
        const struct waiting *w = row_is_used(&s->waiting, i) ? waiting_at(s, i) : NULL;
        if (!w || w->held || !want_is_of_gpus(s, w->shape, verdicts))
            continue;
        const struct shape *shape = shape_at(s, w->shape);
        if (!quota_blocks(s, w->f.project, w->f.user, shape, s->now, &account))
            v[n++] = (struct sched_want){.pool = pool_at(s, shape->pool)->text,
                                         .project = account_at(s, w->f.project)->name,
                                         .amount = shape->gpus};
    }
    free(verdicts);
    *ret = v;
    return wants_merge(v, n);
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

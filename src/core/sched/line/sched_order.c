/* SPDX-License-Identifier: Apache-2.0 */
/* sched_order.c - the order of waiting jobs, and the place of each; see sched_order.h.
 *
 * Groups of one level are merged by standing without being mixed: the place of one group's job
 * in another group is found by a descent, as both the place and the GPUs ahead grow along a
 * group. */
#include "core/sched/line/sched_order.h"

#include <stdlib.h>

#include "core/sched/line/sched_line.h"
#include "core/sched/line/sched_queue.h"
#include "core/sched/place/sched_hosts.h"
#include "core/sched/share/sched_quota.h"

static double standing_of(const struct sched *s, const struct group *g, uint64_t gpus_before)
{
    if (!g->project)
        return 0;
    struct account *a = account_at(s, g->project);
    return account_standing(a, s->now) + account_step(a, (int64_t)gpus_before);
}

static struct rank rank_of(const struct sched *s, uint32_t job, uint64_t gpus_before)
{
    const struct waiting *w = waiting_at(s, job);
    return (struct rank){.level = w->level,
                         .share = standing_of(s, group_at(s, w->group), gpus_before),
                         .a = w->a,
                         .b = w->b,
                         .job = job};
}

struct rank order_rank(const struct sched *s, uint32_t job)
{
    const struct waiting *w = waiting_at(s, job);
    uint64_t before = 0;
    if (group_at(s, w->group)->project)
        before = tree_rank_of(s, &line_of_group, job, line_own_gpus).sum;
    return rank_of(s, job, before);
}

bool candidate_before(const struct candidate *a, const struct candidate *b)
{
    const struct rank *x = &a->rank, *y = &b->rank;
    if (x->level != y->level)
        return x->level > y->level;
    if (x->share < y->share || x->share > y->share)
        return x->share < y->share;
    if (x->a != y->a)
        return x->a < y->a;
    return x->b != y->b ? x->b < y->b : x->job < y->job;
}

void candidate_push(struct heap *h, const struct candidate *c)
{
    if (h->n >= h->cap) {
        h->cap = h->cap ? h->cap * 2 : 32;
        h->v = xrealloc(h->v, h->cap, sizeof(*h->v));
    }
    size_t i = h->n++;
    for (; i && candidate_before(c, &h->v[(i - 1) / 2]); i = (i - 1) / 2)
        h->v[i] = h->v[(i - 1) / 2];
    h->v[i] = *c;
}

struct candidate candidate_pop(struct heap *h)
{
    struct candidate top = h->v[0], last = h->v[--h->n];
    size_t i = 0;
    for (size_t k; (k = 2 * i + 1) < h->n; i = k) {
        if (k + 1 < h->n && candidate_before(&h->v[k + 1], &h->v[k]))
            k++;
        if (!candidate_before(&h->v[k], &last))
            break;
        h->v[i] = h->v[k];
    }
    if (h->n)
        h->v[i] = last;
    return top;
}

/* ---- places in line ---- */

struct boundary {
    const struct group *g;
    struct candidate of; /* all before this */
};

static bool ranks_before(const struct sched *s, uint32_t i, struct tree_rank before, void *arg)
{
    const struct boundary *b = arg;
    const struct waiting *w = waiting_at(s, i);
    struct candidate c = {.rank = {.level = w->level,
                                   .share = standing_of(s, b->g, before.sum),
                                   .a = w->a,
                                   .b = w->b,
                                   .job = i}};
    return candidate_before(&c, &b->of);
}

/* How many of the group are before the member `end` (0: all) and compete for the pool. */
static size_t count_competitors(const struct sched *s,
                                const struct group *g,
                                uint32_t pool,
                                uint32_t end)
{
    size_t n = 0;
    for (uint32_t i = g->first_lane; i; i = lane_at(s, i)->next) {
        const struct lane *l = lane_at(s, i);
        if (pools_meet(s, l->pool, pool))
            n += end ? lane_before(s, i, end) : waiting_at(s, l->root)->in_lane.n;
    }
    return n;
}

int order_place(struct sched *s, uint32_t job)
{
    const struct waiting *w = waiting_at(s, job);
    uint32_t pool = shape_at(s, w->shape)->pool;
    size_t n = 1;
    for (int level = LEVELS - 1; level > w->level; level--)
        for (uint32_t g = s->levels[level]; g; g = group_at(s, g)->next)
            n += count_competitors(s, group_at(s, g), pool, 0);
    struct boundary b = {.of = {.rank = order_rank(s, job)}};
    for (uint32_t g = s->levels[w->level]; g; g = group_at(s, g)->next) {
        b.g = group_at(s, g);
        struct tree_rank r;
        uint32_t end = g == w->group ? job
                                     : tree_split(s, &line_of_group, b.g->root, line_own_gpus,
                                                  ranks_before, &b, &r);
        if (g == w->group || r.n)
            n += count_competitors(s, b.g, pool, end);
    }
    return (int)n;
}

/* The next of the group that was popped. */
static void list_next(struct sched *s, struct candidate c)
{
    c.sum += line_own_gpus(s, c.rank.job);
    uint32_t next = tree_next(s, &line_of_group, c.rank.job);
    if (!next)
        return;
    c.rank = rank_of(s, next, c.sum);
    candidate_push(&s->listed.heap, &c);
}

static int by_seq(const void *a, const void *b, void *arg)
{
    const struct sched *s = arg;
    const uint32_t *x = a, *y = b;
    int64_t p = waiting_at(s, *x)->f.seq, q = waiting_at(s, *y)->f.seq;
    return p != q ? (p > q) - (p < q) : (*x > *y) - (*x < *y);
}

static void list_held(struct sched *s)
{
    struct numbers *jobs = &s->listed.jobs;
    size_t from = jobs->n;
    if (jobs->n == s->n_waiting)
        return;
    for (uint32_t i = 1; i < s->waiting.n; i++)
        if (row_is_used(&s->waiting, i) && waiting_at(s, i)->held)
            numbers_add(jobs, i);
    qsort_r(jobs->v + from, jobs->n - from, sizeof(*jobs->v), by_seq, s);
}

static void list_begin(struct sched *s)
{
    s->listed.stamp = s->tick;
    s->listed.now = s->now;
    s->listed.valid = true;
    s->listed.jobs.n = s->listed.heap.n = 0;
    for (int level = 0; level < LEVELS; level++)
        for (uint32_t g = s->levels[level]; g; g = group_at(s, g)->next) {
            uint32_t first = tree_first(s, &line_of_group, group_at(s, g)->root);
            candidate_push(&s->listed.heap,
                           &(struct candidate){.row = g, .rank = rank_of(s, first, 0)});
        }
}

void *sched_queue_at(struct sched *s, size_t i, usec_t now)
{
    queue_advance(s, now);
    if (!s->listed.valid || s->listed.stamp != s->tick || s->listed.now != s->now)
        list_begin(s);
    while (s->listed.jobs.n <= i && s->listed.heap.n) {
        struct candidate c = candidate_pop(&s->listed.heap);
        numbers_add(&s->listed.jobs, c.rank.job);
        list_next(s, c);
    }
    if (s->listed.jobs.n <= i)
        list_held(s);
    return i < s->listed.jobs.n ? waiting_at(s, s->listed.jobs.v[i])->f.job : NULL;
}

void listed_release(struct sched *s)
{
    numbers_release(&s->listed.jobs);
    free(s->listed.heap.v);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* sched_line.c - groups, lanes and lines of waiting jobs; see sched_line.h and sched_state.h.
 *
 * Invariant: a job that is not held is in the trees of exactly one group, lane and line, those
 * of its level, project, pool, shape and user; none of these is empty. */
#include "core/sched/line/sched_line.h"

#include <stddef.h>

#include "base/str.h"
#include "core/sched/place/sched_hosts.h"

/* ---- the three trees ---- */

bool line_in_order(const struct sched *s, uint32_t a, uint32_t b)
{
    const struct waiting *x = waiting_at(s, a), *y = waiting_at(s, b);
    if (x->a != y->a)
        return x->a < y->a;
    return x->b != y->b ? x->b < y->b : a < b;
}

uint64_t line_own_gpus(const struct sched *s, uint32_t job)
{
    return (uint64_t)shape_at(s, waiting_at(s, job)->shape)->gpus;
}

static void sum_gpus(const struct sched *s, uint32_t i)
{
    struct twig *t = &waiting_at(s, i)->in_group;
    t->sum = line_own_gpus(s, i);
    t->sum += t->left ? waiting_at(s, t->left)->in_group.sum : 0;
    t->sum += t->right ? waiting_at(s, t->right)->in_group.sum : 0;
}

/* The minimum over the branches of a line. */
static void sum_line(const struct sched *s, uint32_t i)
{
    struct twig *t = &waiting_at(s, i)->in_line;
    const uint32_t below[] = {t->left, t->right};
    t->sum = waiting_at(s, i)->lasts;
    for (size_t k = 0; k < array_len(below); k++) {
        uint64_t sum = below[k] ? waiting_at(s, below[k])->in_line.sum : NEVER;
        t->sum = sum < t->sum ? sum : t->sum;
    }
}

const struct tree_kind line_of_group = {offsetof(struct waiting, in_group), line_in_order,
                                        sum_gpus};
const struct tree_kind line_of_lane = {offsetof(struct waiting, in_lane), line_in_order, NULL};
static const struct tree_kind of_line = {offsetof(struct waiting, in_line), line_in_order,
                                         sum_line};

uint32_t line_within(const struct sched *s, uint32_t line, usec_t lasts)
{
    uint32_t i = line_at(s, line)->root;
    while (i && waiting_at(s, i)->in_line.sum <= lasts) {
        const struct twig *t = &waiting_at(s, i)->in_line;
        if (t->left && waiting_at(s, t->left)->in_line.sum <= lasts)
            i = t->left;
        else if (waiting_at(s, i)->lasts <= lasts)
            return i;
        else
            i = t->right;
    }
    return 0;
}

static uint64_t own_none(const struct sched *s, uint32_t job)
{
    (void)s;
    (void)job;
    return 0;
}

static bool stands_before(const struct sched *s, uint32_t i, struct tree_rank before, void *arg)
{
    (void)before;
    return line_in_order(s, i, *(const uint32_t *)arg);
}

uint32_t line_after(const struct sched *s, uint32_t line, uint32_t job)
{
    struct tree_rank r;
    return tree_split(s, &of_line, line_at(s, line)->root, own_none, stands_before, &job, &r);
}

uint32_t line_next(const struct sched *s, uint32_t job)
{
    return tree_next(s, &of_line, job);
}

uint32_t lane_before(const struct sched *s, uint32_t lane, uint32_t job)
{
    struct tree_rank r;
    (void)tree_split(s, &line_of_lane, lane_at(s, lane)->root, own_none, stands_before, &job, &r);
    return r.n;
}

uint32_t lane_first(const struct sched *s, uint32_t lane)
{
    return tree_first(s, &line_of_lane, lane_at(s, lane)->root);
}

uint32_t lane_next(const struct sched *s, uint32_t job)
{
    return tree_next(s, &line_of_lane, job);
}

/* ---- groups, lanes, lines by what they are of ---- */

static uint64_t hash3(const struct sched *s, uint64_t a, uint64_t b, uint64_t c)
{
    return mix64(mix64(mix64(a ^ s->salt) ^ b) ^ c);
}

static bool group_is(const struct sched *s, uint32_t i, const void *key)
{
    const struct group *g = group_at(s, i), *k = key;
    return g->level == k->level && g->project == k->project;
}

static bool lane_is(const struct sched *s, uint32_t i, const void *key)
{
    const struct lane *l = lane_at(s, i), *k = key;
    return l->group == k->group && l->pool == k->pool;
}

static bool line_is(const struct sched *s, uint32_t i, const void *key)
{
    const struct line *l = line_at(s, i), *k = key;
    return l->group == k->group && l->shape == k->shape && l->user == k->user &&
           l->project == k->project;
}

static uint32_t group_take(struct sched *s, int level, uint32_t project)
{
    const struct group key = {.level = level, .project = project};
    uint64_t hash = hash3(s, (uint64_t)level, project, 0);
    uint32_t i = index_find(&s->group_of, s, hash, group_is, &key);
    if (i)
        return i;
    i = rows_take(&s->groups);
    struct group *g = group_at(s, i);
    g->level = level;
    g->project = project;
    g->next = s->levels[level];
    if (g->next)
        group_at(s, g->next)->prev = i;
    s->levels[level] = i;
    index_add(&s->group_of, hash, i);
    return i;
}

static void group_drop_empty(struct sched *s, uint32_t i)
{
    const struct group *g = group_at(s, i);
    if (g->root)
        return;
    if (g->prev)
        group_at(s, g->prev)->next = g->next;
    else
        s->levels[g->level] = g->next;
    if (g->next)
        group_at(s, g->next)->prev = g->prev;
    index_remove(&s->group_of, hash3(s, (uint64_t)g->level, g->project, 0), i);
    rows_give(&s->groups, i);
}

static uint32_t lane_take(struct sched *s, uint32_t group, uint32_t pool)
{
    const struct lane key = {.group = group, .pool = pool};
    uint64_t hash = hash3(s, group, pool, 1);
    uint32_t i = index_find(&s->lane_of, s, hash, lane_is, &key);
    if (i)
        return i;
    i = rows_take(&s->lanes);
    struct lane *l = lane_at(s, i);
    l->group = group;
    l->pool = pool;
    l->next = group_at(s, group)->first_lane;
    group_at(s, group)->first_lane = i;
    pool_hold(s, pool);
    index_add(&s->lane_of, hash, i);
    return i;
}

static void lane_drop_empty(struct sched *s, uint32_t i)
{
    const struct lane *l = lane_at(s, i);
    if (l->root)
        return;
    uint32_t *p = &group_at(s, l->group)->first_lane;
    while (*p != i)
        p = &lane_at(s, *p)->next;
    *p = l->next;
    pool_give(s, l->pool);
    index_remove(&s->lane_of, hash3(s, l->group, l->pool, 1), i);
    rows_give(&s->lanes, i);
}

static uint64_t line_hash(const struct sched *s, const struct line *l)
{
    return hash3(s, (uint64_t)l->group << 32 | l->shape, (uint64_t)l->user << 32 | l->project, 2);
}

static uint32_t with_quota(const struct sched *s, uint32_t account)
{
    return account_at(s, account)->has_quota ? account : 0;
}

static uint32_t line_take(struct sched *s, uint32_t group, const struct waiting *w)
{
    const struct line key = {.group = group,
                             .shape = w->shape,
                             .user = with_quota(s, w->f.user),
                             .project = with_quota(s, w->f.project)};
    uint64_t hash = line_hash(s, &key);
    uint32_t i = index_find(&s->line_of, s, hash, line_is, &key);
    if (i)
        return i;
    i = rows_take(&s->lines);
    *line_at(s, i) = key;
    line_at(s, i)->row = ROW_USED;
    uint32_t *first = &shape_at(s, w->shape)->first_line;
    line_at(s, i)->next = *first;
    if (*first)
        line_at(s, *first)->prev = i;
    *first = i;
    first = &lane_at(s, w->lane)->first_line;
    line_at(s, i)->lane_next = *first;
    if (*first)
        line_at(s, *first)->lane_prev = i;
    *first = i;
    index_add(&s->line_of, hash, i);
    return i;
}

static void line_drop_empty(struct sched *s, uint32_t i, uint32_t lane)
{
    const struct line *l = line_at(s, i);
    if (l->root)
        return;
    if (l->lane_prev)
        line_at(s, l->lane_prev)->lane_next = l->lane_next;
    else
        lane_at(s, lane)->first_line = l->lane_next;
    if (l->lane_next)
        line_at(s, l->lane_next)->lane_prev = l->lane_prev;
    if (l->prev)
        line_at(s, l->prev)->next = l->next;
    else
        shape_at(s, l->shape)->first_line = l->next;
    if (l->next)
        line_at(s, l->next)->prev = l->prev;
    index_remove(&s->line_of, line_hash(s, l), i);
    rows_give(&s->lines, i);
}

/* ---- into line and out of it ---- */

void line_join(struct sched *s, uint32_t job, uint32_t project)
{
    struct waiting *w = waiting_at(s, job);
    w->group = group_take(s, w->level, project);
    w->lane = lane_take(s, w->group, shape_at(s, w->shape)->pool);
    w->line = line_take(s, w->group, w);
    tree_add(s, &line_of_group, &group_at(s, w->group)->root, job);
    tree_add(s, &line_of_lane, &lane_at(s, w->lane)->root, job);
    tree_add(s, &of_line, &line_at(s, w->line)->root, job);
}

void line_leave(struct sched *s, uint32_t job)
{
    struct waiting *w = waiting_at(s, job);
    tree_remove(s, &of_line, &line_at(s, w->line)->root, job);
    tree_remove(s, &line_of_lane, &lane_at(s, w->lane)->root, job);
    tree_remove(s, &line_of_group, &group_at(s, w->group)->root, job);
    line_drop_empty(s, w->line, w->lane);
    lane_drop_empty(s, w->lane);
    group_drop_empty(s, w->group);
    w->line = w->lane = w->group = 0;
}

/* ---- invariants ---- */

struct in_trees {
    size_t groups, lanes, lines;
};

static const char *check_tree(const struct sched *s,
                              const struct tree_kind *k,
                              uint32_t root,
                              size_t *n)
{
    *n += twig_at(s, k, root)->n;
    return root ? tree_check(s, k, root) : "no group, lane or line is empty";
}

/* Adds its lines to *n. */
static const char *check_lane(const struct sched *s, uint32_t lane, size_t *n)
{
    const struct lane *a = lane_at(s, lane);
    for (uint32_t i = a->first_line, prev = 0; i; prev = i, i = line_at(s, i)->lane_next, ++*n) {
        const struct line *l = line_at(s, i);
        if (l->lane_prev != prev || l->group != a->group || shape_at(s, l->shape)->pool != a->pool)
            return "a lane has the lines of its group and pool";
    }
    return NULL;
}

static const char *check_trees(const struct sched *s, struct in_trees *n)
{
    const char *broken = NULL;
    size_t lines = 0;
    for (uint32_t i = 1; i < s->groups.n && !broken; i++)
        if (row_is_used(&s->groups, i))
            broken = check_tree(s, &line_of_group, group_at(s, i)->root, &n->groups);
    for (uint32_t i = 1; i < s->lanes.n && !broken; i++)
        if (row_is_used(&s->lanes, i))
            broken = str_or(check_tree(s, &line_of_lane, lane_at(s, i)->root, &n->lanes),
                            check_lane(s, i, &lines));
    for (uint32_t i = 1; i < s->lines.n && !broken; i++)
        if (row_is_used(&s->lines, i)) {
            broken = check_tree(s, &of_line, line_at(s, i)->root, &n->lines);
            lines--;
        }
    return broken || !lines ? broken : "each line is in one lane";
}

static const char *check_job(const struct sched *s, const struct waiting *w)
{
    const struct line *l = line_at(s, w->line);
    const struct lane *a = lane_at(s, w->lane);
    const struct group *g = group_at(s, w->group);
    if (l->group != w->group || l->shape != w->shape || l->user != with_quota(s, w->f.user) ||
        l->project != with_quota(s, w->f.project))
        return "a job is in the line of its shape and quotas";
    if (a->group != w->group || a->pool != shape_at(s, w->shape)->pool)
        return "a job is in the lane of its pool";
    if (g->level != w->level || (g->project && g->project != w->f.project))
        return "a job is in the group of its level and project";
    return NULL;
}

const char *line_check(const struct sched *s)
{
    size_t in_line = 0;
    struct in_trees n = {0};
    const char *broken = check_trees(s, &n);
    for (uint32_t i = 1; i < s->waiting.n && !broken; i++) {
        const struct waiting *w = row_is_used(&s->waiting, i) ? waiting_at(s, i) : NULL;
        if (!w || !w->line)
            continue;
        in_line++;
        broken = check_job(s, w);
    }
    if (broken)
        return broken;
    return n.groups == in_line && n.lanes == in_line && n.lines == in_line
               ? NULL
               : "each job in line is in one group, lane and line";
}

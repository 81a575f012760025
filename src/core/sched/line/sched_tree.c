/* SPDX-License-Identifier: Apache-2.0 */
/* sched_tree.c - the treap of sched_tree.h. The heap's order is a hash of the row's number: it
 * is not random, and no outsider chooses numbers. Depth is logarithmic in all cases that matter. */
#include "core/sched/line/sched_tree.h"

#include "core/sched/sched_state.h"

struct twig *twig_at(const struct sched *s, const struct tree_kind *k, uint32_t i)
{
    return (struct twig *)(void *)((char *)rows_at(&s->waiting, i) + k->at);
}

static uint64_t weight(uint32_t i)
{
    return mix64(i + 0x9e3779b97f4a7c15);
}

static uint32_t sched_tree_size_of(const struct sched *s, const struct tree_kind *k, uint32_t i)
{
    return i ? twig_at(s, k, i)->n : 0;
}

static void sched_tree_renew(const struct sched *s, const struct tree_kind *k, uint32_t i)
{
    struct twig *t = twig_at(s, k, i);
    t->n = 1 + sched_tree_size_of(s, k, t->left) + sched_tree_size_of(s, k, t->right);
    if (k->sum_up)
        k->sum_up(s, i);
}

/* What pointed at `old` from above points at i. */
static void sched_tree_hang(struct sched *s,
                            const struct tree_kind *k,
                            uint32_t *root,
                            uint32_t up,
                            uint32_t old,
                            uint32_t i)
{
    if (!up)
        *root = i;
    else if (twig_at(s, k, up)->left == old)
        twig_at(s, k, up)->left = i;
    else
        twig_at(s, k, up)->right = i;
    if (i)
        twig_at(s, k, i)->up = up;
}

static void rotate_up(struct sched *s, const struct tree_kind *k, uint32_t *root, uint32_t i)
{
    struct twig *t = twig_at(s, k, i);
    uint32_t parent = t->up;
    struct twig *p = twig_at(s, k, parent);
    sched_tree_hang(s, k, root, p->up, parent, i);
    uint32_t between = p->left == i ? t->right : t->left;
    if (p->left == i) {
        t->right = parent;
        p->left = between;
    } else {
        t->left = parent;
        p->right = between;
    }
    if (between)
        twig_at(s, k, between)->up = parent;
    p->up = i;
    sched_tree_renew(s, k, parent);
    sched_tree_renew(s, k, i);
}

void tree_add(struct sched *s, const struct tree_kind *k, uint32_t *root, uint32_t i)
{
    uint32_t up = 0;
    bool left = false;
    for (uint32_t at = *root; at; at = left ? twig_at(s, k, at)->left : twig_at(s, k, at)->right) {
        up = at;
        left = k->before(s, i, at);
    }
    *twig_at(s, k, i) = (struct twig){.up = up};
    if (!up)
        *root = i;
    else
        *(left ? &twig_at(s, k, up)->left : &twig_at(s, k, up)->right) = i;
    for (uint32_t at = i; at; at = twig_at(s, k, at)->up)
        sched_tree_renew(s, k, at);
    while (twig_at(s, k, i)->up && weight(i) > weight(twig_at(s, k, i)->up))
        rotate_up(s, k, root, i);
}

void tree_remove(struct sched *s, const struct tree_kind *k, uint32_t *root, uint32_t i)
{
    struct twig *t = twig_at(s, k, i);
    while (t->left && t->right)
        rotate_up(s, k, root, weight(t->left) > weight(t->right) ? t->left : t->right);
    uint32_t up = t->up;
    sched_tree_hang(s, k, root, up, i, t->left ? t->left : t->right);
    for (uint32_t at = up; at; at = twig_at(s, k, at)->up)
        sched_tree_renew(s, k, at);
    *t = (struct twig){0};
}

uint32_t tree_first(const struct sched *s, const struct tree_kind *k, uint32_t root)
{
    while (root && twig_at(s, k, root)->left)
        root = twig_at(s, k, root)->left;
    return root;
}

uint32_t tree_next(const struct sched *s, const struct tree_kind *k, uint32_t i)
{
    const struct twig *t = twig_at(s, k, i);
    if (t->right)
        return tree_first(s, k, t->right);
    while (t->up && twig_at(s, k, t->up)->right == i) {
        i = t->up;
        t = twig_at(s, k, i);
    }
    return t->up;
}

static uint64_t sum_of(const struct sched *s, const struct tree_kind *k, uint32_t i)
{
    return i ? twig_at(s, k, i)->sum : 0;
}

struct tree_rank tree_rank_of(const struct sched *s,
                              const struct tree_kind *k,
                              uint32_t i,
                              tree_own_f own)
{
    const struct twig *t = twig_at(s, k, i);
    struct tree_rank r = {.n = sched_tree_size_of(s, k, t->left), .sum = sum_of(s, k, t->left)};
    for (uint32_t at = i, up; (up = twig_at(s, k, at)->up); at = up) {
        t = twig_at(s, k, up);
        if (t->right != at)
            continue;
        r.n += 1 + sched_tree_size_of(s, k, t->left);
        r.sum += sum_of(s, k, t->left) + own(s, up);
    }
    return r;
}

uint32_t tree_split(const struct sched *s,
                    const struct tree_kind *k,
                    uint32_t root,
                    tree_own_f own,
                    tree_while_f is_before,
                    void *arg,
                    struct tree_rank *ret)
{
    uint32_t found = 0;
    *ret = (struct tree_rank){0};
    for (uint32_t i = root; i;) {
        const struct twig *t = twig_at(s, k, i);
        struct tree_rank here = {.n = ret->n + sched_tree_size_of(s, k, t->left),
                                 .sum = ret->sum + sum_of(s, k, t->left)};
        if (is_before(s, i, here, arg)) {
            *ret = (struct tree_rank){.n = here.n + 1, .sum = here.sum + own(s, i)};
            i = t->right;
        } else {
            found = i;
            i = t->left;
        }
    }
    return found;
}

const char *tree_check(const struct sched *s, const struct tree_kind *k, uint32_t root)
{
    uint32_t last = 0;
    for (uint32_t i = tree_first(s, k, root); i; i = tree_next(s, k, i)) {
        const struct twig *t = twig_at(s, k, i);
        struct twig kept = *t;
        if (last && !k->before(s, last, i))
            return "a tree is in its order";
        if ((t->left && twig_at(s, k, t->left)->up != i) ||
            (t->right && twig_at(s, k, t->right)->up != i) || (!t->up && root != i))
            return "a tree is linked both ways";
        if (t->up && weight(t->up) < weight(i))
            return "a tree is a heap of its weights";
        sched_tree_renew(s, k, i);
        if (kept.n != t->n || kept.sum != t->sum)
            return "a tree knows the sums of its branches";
        last = i;
    }
    return NULL;
}

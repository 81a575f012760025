/* SPDX-License-Identifier: Apache-2.0 */
/* sched_tree.h - ordered sets of waiting jobs with sums over their parts.
 *
 * A treap inside the rows of waiting jobs: one twig per tree that a job is in. Which way a tree
 * leans never shows: order and sums depend on its contents alone. Included by the scheduler's
 * own files only. */
#pragma once
#include "core/sched/sched_table.h"

struct twig {
    uint32_t left, right, up, n; /* n: of the whole branch */
    uint64_t sum;                /* what the kind of tree keeps of the whole branch */
};

struct tree_kind {
    size_t at; /* of the twig in the row */
    /* A strict order; never true both ways, false both ways only for a == b. */
    bool (*before)(const struct sched *s, uint32_t a, uint32_t b);
    void (*sum_up)(const struct sched *s,
                   uint32_t i); /* the sum of i from its branches; may be NULL */
};

struct twig *twig_at(const struct sched *s, const struct tree_kind *k, uint32_t i);

void tree_add(struct sched *s, const struct tree_kind *k, uint32_t *root, uint32_t i);
void tree_remove(struct sched *s, const struct tree_kind *k, uint32_t *root, uint32_t i);
/* 0 at the end. */
uint32_t tree_first(const struct sched *s, const struct tree_kind *k, uint32_t root);
uint32_t tree_next(const struct sched *s, const struct tree_kind *k, uint32_t i);

struct tree_rank {
    uint32_t n;   /* members before */
    uint64_t sum; /* and their sums; only where the kind adds */
};
/* The members before i and their sum. own(i) is the contribution of i itself to a sum. */
typedef uint64_t (*tree_own_f)(const struct sched *s, uint32_t i);
struct tree_rank tree_rank_of(const struct sched *s,
                              const struct tree_kind *k,
                              uint32_t i,
                              tree_own_f own);

/* True for the members up to some place in order and false from there on; `before` is what stands
 * before i. */
typedef bool (*tree_while_f)(const struct sched *s, uint32_t i, struct tree_rank before, void *arg);
/* The first member for which it is false (0: none), and what stands before that. */
uint32_t tree_split(const struct sched *s,
                    const struct tree_kind *k,
                    uint32_t root,
                    tree_own_f own,
                    tree_while_f is_before,
                    void *arg,
                    struct tree_rank *ret);

/* NULL, or what is wrong: links, order, counts, sums. */
const char *tree_check(const struct sched *s, const struct tree_kind *k, uint32_t root);

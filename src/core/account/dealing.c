/* SPDX-License-Identifier: Apache-2.0 */
/* dealing.c - divides what is lent and what is waited for; see dealing.h.
 *
 * Both are one table: a row for each project that takes, a column for each that gives. A row is
 * cut at the running sums of the columns' weights, so that its cells are whole and add up to it.
 * Each cell is told from both sides, under a name or among the others. */
#include "core/account/dealing.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/sum.h"

char *dealing_pool(const char *labels)
{
    struct strv all = {0};
    const char *item;
    for (size_t n; (item = str_item(&labels, &n));)
        strv_addf(&all, "%.*s", (int)n, item);
    strv_sort_once(&all);
    char *ret = strv_join(&all, ",");
    strv_release(&all);
    return ret;
}

static int64_t party_weight(const struct dealing_party *p)
{
    int64_t ret = p->held;
    sum_add(&ret, p->guaranteed);
    sum_add(&ret, p->waits);
    return ret;
}

static int party_by_weight(const void *a, const void *b)
{
    const struct dealing_party *p = a, *q = b;
    if (party_weight(p) != party_weight(q))
        return party_weight(p) > party_weight(q) ? -1 : 1;
    return strcmp(p->name, q->name);
}

void dealing_sort(struct dealing_party *v, size_t n)
{
    xsort(v, n, sizeof(*v), party_by_weight);
}

/* ---- the table ---- */

struct dealing_table {
    const struct dealing_party *v;
    size_t n;
    const int64_t *takes, *weights;
    enum dealing_sum taken, given;
    dealing_f f;
    void *arg;
};

/* Guarantees are numbers that people choose: the product of two amounts may need 128 bits. */
static int64_t cut_at(int64_t amount, int64_t at, int64_t all)
{
    __extension__ typedef unsigned __int128 product;
    return (int64_t)((product)amount * (product)at / (product)all);
}

static int64_t part_between(int64_t amount, int64_t from, int64_t to, int64_t all)
{
    return cut_at(amount, to, all) - cut_at(amount, from, all);
}

static void tell_cell(const struct dealing_table *t,
                      size_t i,
                      const char *other,
                      enum dealing_sum sum,
                      int64_t part)
{
    if (part)
        t->f(t->v[i].name, other, sum, part, t->arg);
}

/* What is given to takers that have no name is added to `given`, by column. */
static void tell_row(const struct dealing_table *t, size_t row, int64_t all, int64_t *given)
{
    int64_t at = 0, to = 0, others = 0;
    for (size_t i = 0; i < t->n; i++, at = to) {
        sum_add(&to, t->weights[i]);
        int64_t part = part_between(t->takes[row], at, to, all);
        if (i < DEALING_NAMED || i == row)
            tell_cell(t, row, t->v[i].name, t->taken, part);
        else
            others += part;
        if (i == row)
            continue; /* its own */
        if (row < DEALING_NAMED)
            tell_cell(t, i, t->v[row].name, t->given, part);
        else
            sum_add(&given[i], part);
    }
    tell_cell(t, row, DEALING_OTHERS, t->taken, others);
}

static void tell_table(const struct dealing_table *t)
{
    int64_t all = 0, *given = xcalloc(t->n + 1, sizeof(*given));
    for (size_t i = 0; i < t->n; i++)
        sum_add(&all, t->weights[i]);
    for (size_t i = 0; i < t->n; i++)
        if (t->takes[i] && all)
            tell_row(t, i, all, given);
        else
            tell_cell(t, i, DEALING_NOBODY, t->taken, t->takes[i]);
    for (size_t i = 0; i < t->n; i++)
        tell_cell(t, i, DEALING_OTHERS, t->given, given[i]);
    free(given);
}

/* ---- what is divided ---- */

static int64_t amount_above(int64_t a, int64_t b)
{
    return a > b ? a - b : 0;
}

/* What is lent of all that is borrowed. */
static int64_t lent_of(const struct dealing_party *v, size_t n, int64_t free_amount)
{
    int64_t held = 0, guaranteed = 0, borrowed = 0, left = 0;
    for (size_t i = 0; i < n; i++) {
        sum_add(&held, v[i].held);
        sum_add(&guaranteed, v[i].guaranteed);
        sum_add(&borrowed, amount_above(v[i].held, v[i].guaranteed));
        sum_add(&left, amount_above(v[i].guaranteed, v[i].held));
    }
    sum_add(&held, free_amount);
    int64_t lent = amount_above(borrowed, amount_above(held, guaranteed));
    return lent < left ? lent : left;
}

void dealing_lend(const struct dealing_party *v,
                  size_t n,
                  int64_t free_amount,
                  dealing_f f,
                  void *arg)
{
    int64_t lent = lent_of(v, n, free_amount), all = 0, at = 0, to = 0;
    int64_t *takes = xcalloc(n + 1, sizeof(*takes)), *left = xcalloc(n + 1, sizeof(*left));
    const struct dealing_table t = {.v = v,
                                    .n = n,
                                    .takes = takes,
                                    .weights = left,
                                    .taken = DEALING_BORROWED,
                                    .given = DEALING_LENT,
                                    .f = f,
                                    .arg = arg};
    for (size_t i = 0; i < n; i++)
        sum_add(&all, amount_above(v[i].held, v[i].guaranteed));
    for (size_t i = 0; i < n; i++) {
        int64_t borrowed = amount_above(v[i].held, v[i].guaranteed);
        left[i] = amount_above(v[i].guaranteed, v[i].held);
        sum_add(&to, borrowed);
        takes[i] = borrowed ? part_between(lent, at, to, all) : 0;
        at = to;
        tell_cell(&t, i, DEALING_NOBODY, DEALING_BORROWED, borrowed - takes[i]);
    }
    tell_table(&t);
    free(takes);
    free(left);
}

void dealing_wait(const struct dealing_party *v,
                  size_t n,
                  const int64_t *waits,
                  const int64_t *held,
                  dealing_f f,
                  void *arg)
{
    tell_table(&(struct dealing_table){.v = v,
                                       .n = n,
                                       .takes = waits,
                                       .weights = held,
                                       .taken = DEALING_WAIT_TAKEN,
                                       .given = DEALING_WAIT_GIVEN,
                                       .f = f,
                                       .arg = arg});
}

/* SPDX-License-Identifier: Apache-2.0 */
/* metric_table.c - columns of points that halve themselves; see metric_table.h.
 *
 * A column is as long as the table has points; what a key has no value for is NaN. */
#include "core/metric/metric_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct cell {
    double min, max, value;
};

struct column {
    char *name;
    double latest;
    int64_t latest_step;
    struct cell *cells; /* as many as the table has room for */
};

struct metric_table {
    size_t room, n; /* points */
    size_t per;     /* records that a full point covers */
    size_t in_last; /* of them in the last one */
    int64_t *first, *last;
    usec_t *at;
    struct column *columns;
    size_t n_columns, left_out;
    size_t next; /* where the next key likely is: records repeat their order */
};

static const struct cell EMPTY = {NAN, NAN, NAN};

struct metric_table *metric_table_new(size_t points)
{
    struct metric_table *t = xcalloc(1, sizeof(*t));
    t->room = points < 2 ? 2 : points + points % 2;
    t->per = 1;
    t->first = xcalloc(t->room, sizeof(*t->first));
    t->last = xcalloc(t->room, sizeof(*t->last));
    t->at = xcalloc(t->room, sizeof(*t->at));
    return t;
}

void metric_table_free(struct metric_table *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n_columns; i++) {
        free(t->columns[i].name);
        free(t->columns[i].cells);
    }
    free(t->columns);
    free(t->first);
    free(t->last);
    free(t->at);
    free(t);
}

static void metric_table_merge(struct cell *to, const struct cell *from)
{
    if (!isfinite(from->value))
        return;
    bool empty = !isfinite(to->value);
    to->min = empty || from->min < to->min ? from->min : to->min;
    to->max = empty || from->max > to->max ? from->max : to->max;
    to->value = from->value;
}

static void halve(struct metric_table *t)
{
    for (size_t i = 0; i < t->room / 2; i++) {
        t->first[i] = t->first[2 * i];
        t->last[i] = t->last[2 * i + 1];
        t->at[i] = t->at[2 * i + 1] > t->at[2 * i] ? t->at[2 * i + 1] : t->at[2 * i];
    }
    for (size_t k = 0; k < t->n_columns; k++) {
        struct cell *c = t->columns[k].cells;
        for (size_t i = 0; i < t->room / 2; i++) {
            struct cell one = c[2 * i];
            metric_table_merge(&one, &c[2 * i + 1]);
            c[i] = one;
        }
    }
    t->n = t->room / 2;
    t->per *= 2;
    t->in_last = t->per;
}

/* The point of this step: one that has it, or a new one. */
static size_t point_of(struct metric_table *t, int64_t step)
{
    if (t->n && step <= t->last[t->n - 1]) {
        size_t i = metric_table_after(t, step - 1);
        if (step < t->first[i])
            t->first[i] = step;
        return i;
    }
    if (t->n && t->in_last < t->per) {
        t->in_last++;
        t->last[t->n - 1] = step;
        return t->n - 1;
    }
    if (t->n == t->room)
        halve(t);
    t->first[t->n] = t->last[t->n] = step;
    t->at[t->n] = 0;
    for (size_t k = 0; k < t->n_columns; k++)
        t->columns[k].cells[t->n] = EMPTY;
    t->in_last = 1;
    return t->n++;
}

static struct column *column_of(struct metric_table *t, const char *name)
{
    size_t k = t->next;
    if (k >= t->n_columns || strcmp(t->columns[k].name, name) != 0)
        k = metric_table_find(t, name);
    t->next = k + 1;
    if (k < t->n_columns)
        return &t->columns[k];
    if (k == METRIC_KEYS_MAX) {
        t->left_out++;
        return NULL;
    }
    if (k % 32 == 0)
        t->columns = xrealloc(t->columns, k + 32, sizeof(*t->columns));
    struct column *c = &t->columns[t->n_columns++];
    *c = (struct column){.name = xstrdup(name), .cells = xcalloc(t->room, sizeof(*c->cells))};
    for (size_t i = 0; i < t->n; i++)
        c->cells[i] = EMPTY;
    return c;
}

/* A value of the same step takes the place of the one before, where the point is that step. */
static void metric_table_put(struct cell *c, double value, bool alone)
{
    struct cell one = {value, value, value};
    if (alone && isfinite(value))
        *c = one;
    else
        metric_table_merge(c, &one);
}

void metric_table_add(struct metric_table *t, const struct metric_record *r)
{
    if (r->superseded || r->step < 0 || !r->n)
        return;
    size_t i = point_of(t, r->step);
    bool alone = t->first[i] == t->last[i];
    t->at[i] = r->at > t->at[i] ? r->at : t->at[i];
    for (size_t k = 0; k < r->n; k++) {
        struct column *c = column_of(t, r->v[k].name);
        if (!c)
            continue;
        c->latest = r->v[k].value;
        c->latest_step = r->step;
        metric_table_put(&c->cells[i], r->v[k].value, alone);
    }
}

size_t metric_table_points(const struct metric_table *t)
{
    return t->n;
}

size_t metric_table_keys(const struct metric_table *t)
{
    return t->n_columns;
}

size_t metric_table_left_out(const struct metric_table *t)
{
    return t->left_out;
}

const char *metric_table_key(const struct metric_table *t, size_t key)
{
    return t->columns[key].name;
}

size_t metric_table_find(const struct metric_table *t, const char *name)
{
    size_t k = 0;
    while (k < t->n_columns && strcmp(t->columns[k].name, name) != 0)
        k++;
    return k;
}

double metric_table_latest(const struct metric_table *t, size_t key, int64_t *ret_step)
{
    *ret_step = t->columns[key].latest_step;
    return t->columns[key].latest;
}

size_t metric_table_after(const struct metric_table *t, int64_t step)
{
    size_t low = 0, high = t->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (t->last[mid] > step)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

bool metric_table_range(const struct metric_table *t,
                        size_t key,
                        size_t from,
                        size_t to,
                        struct metric_point *ret)
{
    struct cell sum = EMPTY;
    usec_t at = 0;
    for (size_t i = from; i < to; i++) {
        metric_table_merge(&sum, &t->columns[key].cells[i]);
        at = t->at[i] > at ? t->at[i] : at;
    }
    *ret = (struct metric_point){.first = t->first[from],
                                 .last = t->last[to - 1],
                                 .min = sum.min,
                                 .max = sum.max,
                                 .value = sum.value,
                                 .at = at};
    return isfinite(sum.value);
}

const char *metric_table_check(const struct metric_table *t)
{
    if (t->n > t->room || t->in_last > t->per)
        return "more than there is room for";
    for (size_t i = 0; i < t->n; i++)
        if (t->first[i] > t->last[i] || (i && t->first[i] <= t->last[i - 1]))
            return "steps out of order";
    for (size_t k = 0; k < t->n_columns; k++)
        for (size_t i = 0; i < t->n; i++) {
            const struct cell *c = &t->columns[k].cells[i];
            if (isfinite(c->value) && !(c->min <= c->value && c->value <= c->max))
                return "a value outside of its bounds";
        }
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* metric_table.c - columns of points that halve themselves; see metric_table.h.
 *
 * A column is as long as the table has points; what a key has no value for is NaN. Columns stay
 * where they were added: a key's number is for good. */
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
    struct cell *cells; /* as many as the table holds */
};

struct metric_table {
    size_t room, n;   /* points */
    size_t held;      /* of the room, what the columns have by now */
    size_t cells_max; /* of all columns */
    size_t per;       /* records that a full point covers */
    size_t in_last;   /* of them in the last one */
    int64_t *first, *last;
    usec_t *at;
    struct column *columns;
    struct metric_order order; /* of the columns */
    size_t n_columns, left_out;
    size_t next; /* where the next key likely is: records repeat their order */
};

enum { ROOM_LEAST = 2, HELD_FIRST = 8 };
static const struct cell EMPTY = {NAN, NAN, NAN};

struct metric_table *metric_table_new(size_t points)
{
    struct metric_table *t = xcalloc(1, sizeof(*t));
    t->room = points < ROOM_LEAST ? ROOM_LEAST : points;
    t->held = t->room < HELD_FIRST ? t->room : HELD_FIRST;
    t->cells_max = METRIC_KEYS_WHOLE * t->room;
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
    metric_order_release(&t->order);
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

/* Each two neighbours become one; the last point stays alone where their number is odd. */
static void halve(struct metric_table *t)
{
    size_t n = (t->n + 1) / 2;
    for (size_t i = 0; i < n; i++) {
        size_t a = 2 * i, b = a + 1 < t->n ? a + 1 : a;
        t->first[i] = t->first[a];
        t->last[i] = t->last[b];
        t->at[i] = t->at[b] > t->at[a] ? t->at[b] : t->at[a];
    }
    for (size_t k = 0; k < t->n_columns; k++) {
        struct cell *c = t->columns[k].cells;
        for (size_t i = 0; i < n; i++) {
            struct cell one = c[2 * i];
            if (2 * i + 1 < t->n)
                metric_table_merge(&one, &c[2 * i + 1]);
            c[i] = one;
        }
    }
    if (t->n && t->n % 2 == 0)
        t->in_last += t->per;
    t->n = n;
    t->per *= 2;
}

static void hold(struct metric_table *t, size_t points)
{
    for (size_t k = 0; k < t->n_columns; k++)
        t->columns[k].cells = xrealloc(t->columns[k].cells, points, sizeof(struct cell));
    t->held = points;
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
    if (t->n == t->room && t->in_last == t->per)
        halve(t);
    if (t->n && t->in_last < t->per) {
        t->in_last++;
        t->last[t->n - 1] = step;
        return t->n - 1;
    }
    if (t->n == t->held)
        hold(t, 2 * t->held < t->room ? 2 * t->held : t->room);
    t->first[t->n] = t->last[t->n] = step;
    t->at[t->n] = 0;
    for (size_t k = 0; k < t->n_columns; k++)
        t->columns[k].cells[t->n] = EMPTY;
    t->in_last = 1;
    return t->n++;
}

/* So few points that one column more has its place. */
static void make_room(struct metric_table *t)
{
    while (t->room > ROOM_LEAST && (t->n_columns + 1) * t->room > t->cells_max) {
        t->room = t->room / 2 < ROOM_LEAST ? ROOM_LEAST : t->room / 2;
        while (t->n > t->room)
            halve(t);
    }
    if (t->held > t->room)
        hold(t, t->room);
}

/* The number of the column; n_columns: there is none. */
static size_t find_next(struct metric_table *t, const char *name)
{
    size_t k = t->next;
    if (k >= t->n_columns || strcmp(t->columns[k].name, name) != 0)
        k = metric_table_find(t, name);
    t->next = k + 1;
    return k;
}

static void add_column(struct metric_table *t, const char *name)
{
    size_t rank, k = t->n_columns;
    if (k == METRIC_KEYS_MAX) {
        t->left_out++;
        return;
    }
    make_room(t);
    if (k % 32 == 0)
        t->columns = xrealloc(t->columns, k + 32, sizeof(*t->columns));
    struct column *c = &t->columns[k];
    *c = (struct column){.name = xstrdup(name), .cells = xcalloc(t->held, sizeof(*c->cells))};
    for (size_t i = 0; i < t->n; i++)
        c->cells[i] = EMPTY;
    (void)metric_order_find(&t->order, t->columns, sizeof(*c), name, strlen(name), &rank);
    metric_order_insert(&t->order, rank, k);
    t->n_columns++;
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
    for (size_t k = 0; k < r->n; k++) /* first: a new column may halve the points */
        if (find_next(t, r->v[k].name) == t->n_columns)
            add_column(t, r->v[k].name);
    size_t i = point_of(t, r->step);
    bool alone = t->first[i] == t->last[i];
    t->at[i] = r->at > t->at[i] ? r->at : t->at[i];
    for (size_t k = 0; k < r->n; k++) {
        size_t at = find_next(t, r->v[k].name);
        if (at == t->n_columns)
            continue;
        struct column *c = &t->columns[at];
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
    size_t rank;
    bool has =
        metric_order_find(&t->order, t->columns, sizeof(*t->columns), name, strlen(name), &rank);
    return has ? metric_order_place(&t->order, rank) : t->n_columns;
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

static const char *check_memory(const struct metric_table *t)
{
    if (t->n > t->held || t->held > t->room || t->in_last > t->per)
        return "more than there is room for";
    if (t->held > HELD_FIRST && t->held > 2 * t->n)
        return "memory for points that are not there";
    if (t->room > ROOM_LEAST && t->n_columns * t->room > t->cells_max)
        return "more memory than it was made for";
    return NULL;
}

static const char *check_names(const struct metric_table *t)
{
    if (t->order.n != t->n_columns)
        return "a column without its rank";
    for (size_t i = 1; i < t->order.n; i++)
        if (strcmp(t->columns[t->order.places[i - 1]].name, t->columns[t->order.places[i]].name) >=
            0)
            return "names out of order";
    return NULL;
}

static const char *check_points(const struct metric_table *t)
{
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

const char *metric_table_check(const struct metric_table *t)
{
    const char *why = check_memory(t);
    why = why ? why : check_names(t);
    return why ? why : check_points(t);
}

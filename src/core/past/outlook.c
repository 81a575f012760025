/* SPDX-License-Identifier: Apache-2.0 */
/* outlook.c - see outlook.h.
 *
 * A trial is a day foretold at a past midnight: its origin is the number of days that were known
 * then, its lead how many lie between, so it is about day origin + lead. Its truth is known at
 * every midnight t > origin + lead, and only then may it judge a method or widen an interval. */
#include "core/past/outlook.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

enum {
    FIRST_TRIED = 2 * OUTLOOK_WEEK, /* origin: methods need two weeks */
    FIRST_CHOSEN = 3 * OUTLOOK_WEEK,
    SHAPE_WEEKS = 4,
    LONG_WEEKS = 12,
    TREND_WEEKS = 8,
    RECENT_DAYS = 3,
};
static_assert((int)OUTLOOK_NEED == (int)FIRST_CHOSEN + 2 * (int)OUTLOOK_WEEK,
              "a week ahead is tried at a week of midnights and one more");

/* ---- the methods: day n + lead from n days ---- */

static double mean_of_last(const double *v, size_t n, size_t most)
{
    size_t count = most < n ? most : n;
    double sum = 0;
    for (size_t i = n - count; i < n; i++)
        sum += v[i];
    return count ? sum / (double)count : 0;
}

static size_t whole_weeks(size_t n, size_t most)
{
    return n / OUTLOOK_WEEK < most ? n / OUTLOOK_WEEK : most;
}

/* Over the last `most` weeks, or those that there are: at least one. */
static double mean_of_weekday(const double *v, size_t n, size_t lead, size_t most)
{
    size_t weeks = whole_weeks(n, most);
    double sum = 0;
    for (size_t k = 1; k <= weeks; k++)
        sum += v[n + lead % OUTLOOK_WEEK - k * OUTLOOK_WEEK];
    return sum / (double)weeks;
}

static int outlook_smaller(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* How far that weekday lies from the mean of its week: the median of four weeks, which one week
 * with a step in it does not bend. */
static double shape_of_weekday(const double *v, size_t n, size_t lead)
{
    double off[SHAPE_WEEKS];
    size_t weeks = whole_weeks(n, SHAPE_WEEKS);
    for (size_t k = 0; k < weeks; k++) {
        size_t end = n - k * OUTLOOK_WEEK;
        off[k] = v[end - OUTLOOK_WEEK + lead % OUTLOOK_WEEK] - mean_of_last(v, end, OUTLOOK_WEEK);
    }
    xsort(off, weeks, sizeof(*off), outlook_smaller);
    return (off[(weeks - 1) / 2] + off[weeks / 2]) / 2;
}

static double recent_level(const double *v, size_t n, size_t lead)
{
    double level = 0;
    for (size_t i = 1; i <= RECENT_DAYS; i++)
        level += v[n - i] - shape_of_weekday(v, n, OUTLOOK_WEEK - i);
    return level / RECENT_DAYS + shape_of_weekday(v, n, lead);
}

/* The line of least squares through the means of the weeks; the middle of week k lies k weeks and
 * half a week before day n. */
static double line_of_weeks(const double *v, size_t n, size_t lead)
{
    size_t weeks = whole_weeks(n, TREND_WEEKS);
    double sx = 0, sy = 0, sxx = 0, sxy = 0, count = (double)weeks;
    for (size_t k = 0; k < weeks; k++) {
        double x = -((double)k + 0.5) * OUTLOOK_WEEK;
        double y = mean_of_last(v, n - k * OUTLOOK_WEEK, OUTLOOK_WEEK);
        sx += x;
        sy += y;
        sxx += x * x;
        sxy += x * y;
    }
    double spread = count * sxx - sx * sx;
    double slope = spread > 0 ? (count * sxy - sx * sy) / spread : 0;
    /* The middle of the week in which the day lies: its place in the week is the shape's. */
    double at = ((double)(lead / OUTLOOK_WEEK) + 0.5) * OUTLOOK_WEEK;
    return (sy - slope * sx) / count + slope * at + shape_of_weekday(v, n, lead);
}

static double foretell(enum outlook_method m, const double *v, size_t n, size_t lead)
{
    switch (m) {
    case OUTLOOK_LAST_WEEK:
        return mean_of_weekday(v, n, lead, 1);
    case OUTLOOK_WEEKDAYS:
        return mean_of_weekday(v, n, lead, SHAPE_WEEKS);
    case OUTLOOK_LONG:
        return mean_of_weekday(v, n, lead, LONG_WEEKS);
    case OUTLOOK_LEVEL:
        return mean_of_last(v, n, OUTLOOK_WEEK);
    case OUTLOOK_MONTH:
        return mean_of_last(v, n, (size_t)SHAPE_WEEKS * OUTLOOK_WEEK);
    case OUTLOOK_RECENT:
        return recent_level(v, n, lead);
    case OUTLOOK_DAY:
        return v[n - 1];
    case OUTLOOK_TREND:
        return line_of_weeks(v, n, lead);
    case OUTLOOK_METHODS:
        break;
    }
    return 0;
}

static double outlook_value(enum outlook_method m, const double *v, size_t n, size_t lead)
{
    return fmax(0, foretell(m, v, n, lead));
}

/* ---- trials ---- */

struct trials {
    const double *v;
    size_t n, leads;
    double *missed;              /* of each method, origin and lead: |value - truth| */
    enum outlook_method *chosen; /* at each midnight */
};

static double *trial_of(const struct trials *t, enum outlook_method m, size_t origin, size_t lead)
{
    return &t->missed[((size_t)m * (t->n + 1) + origin) * t->leads + lead];
}

static void trials_make(struct trials *t)
{
    t->missed = xcalloc((size_t)OUTLOOK_METHODS * (t->n + 1) * t->leads, sizeof(*t->missed));
    for (int m = 0; m < OUTLOOK_METHODS; m++)
        for (size_t origin = FIRST_TRIED; origin < t->n; origin++)
            for (size_t lead = 0; lead < t->leads && origin + lead < t->n; lead++)
                *trial_of(t, (enum outlook_method)m, origin, lead) =
                    fabs(outlook_value((enum outlook_method)m, t->v, origin, lead) -
                         t->v[origin + lead]);
}

/* The first day whose truth still counts at midnight `at`. */
static size_t first_day(size_t at)
{
    return at > OUTLOOK_LOOK ? at - OUTLOOK_LOOK : 0;
}

/* Origins from which lead reaches a day that counts at midnight `at`, from *ret on; their end. */
static size_t origins_of_lead(size_t at, size_t lead, size_t least, size_t *ret)
{
    size_t day = first_day(at);
    size_t first = day > lead ? day - lead : 0;
    *ret = first > least ? first : least;
    return at > lead ? at - lead : 0;
}

static double method_loss(const struct trials *t, enum outlook_method m, size_t at)
{
    double sum = 0;
    for (size_t lead = 0; lead < t->leads; lead++) {
        size_t origin, end = origins_of_lead(at, lead, FIRST_TRIED, &origin);
        for (; origin < end; origin++)
            sum += *trial_of(t, m, origin, lead);
    }
    return sum;
}

static enum outlook_method choose_at(const struct trials *t, size_t at)
{
    enum outlook_method best = OUTLOOK_LAST_WEEK;
    double least = OUTLOOK_BETTER * method_loss(t, OUTLOOK_LAST_WEEK, at);
    for (int m = OUTLOOK_LAST_WEEK + 1; m < OUTLOOK_METHODS; m++) {
        double loss = method_loss(t, (enum outlook_method)m, at);
        if (loss < least) {
            least = loss;
            best = (enum outlook_method)m;
        }
    }
    return best;
}

static void trials_choose(struct trials *t)
{
    t->chosen = xcalloc(t->n + 1, sizeof(*t->chosen));
    for (size_t at = FIRST_CHOSEN; at <= t->n; at++)
        t->chosen[at] = choose_at(t, at);
}

/* ---- how wrong the forecasts were ---- */

/* By so much four in five of the forecasts missed at most, `week` weeks ahead, as it was known at
 * midnight `at`; negative: none was judged yet. room: for all trials of a week. */
static double width_at(const struct trials *t, size_t at, size_t week, double *room)
{
    size_t n = 0;
    for (size_t lead = week * OUTLOOK_WEEK; lead < (week + 1) * OUTLOOK_WEEK; lead++) {
        size_t origin, end = origins_of_lead(at, lead, FIRST_CHOSEN, &origin);
        for (; origin < end; origin++)
            room[n++] = *trial_of(t, t->chosen[origin], origin, lead);
    }
    if (!n)
        return -1;
    xsort(room, n, sizeof(*room), outlook_smaller);
    /* One more than there are: the day that comes is as likely to be the worst as any of them. */
    size_t rank = (size_t)ceil((double)(n + 1) * OUTLOOK_INSIDE - 1e-9);
    return room[(rank < n ? rank : n) - 1];
}

/* Widths of the weeks, which never shrink with the distance. */
static void widths_at(const struct trials *t, size_t at, double *room, double *ret)
{
    double last = -1;
    for (size_t week = 0; week < t->leads / OUTLOOK_WEEK; week++) {
        double width = width_at(t, at, week, room);
        ret[week] = width < 0 || width > last ? width : last;
        last = ret[week];
    }
}

static void outlook_judge(const struct trials *t, double *room, struct outlook *o)
{
    double width[OUTLOOK_WEEKS_MAX] = {0}, naive = 0, error = 0;
    size_t inside = 0;
    for (size_t origin = FIRST_CHOSEN; origin < t->n; origin++) {
        widths_at(t, origin, room, width);
        for (size_t lead = 0; lead < t->leads && origin + lead < t->n; lead++) {
            double missed = *trial_of(t, t->chosen[origin], origin, lead);
            if (origin + lead < first_day(t->n))
                continue;
            o->trials++;
            error += missed;
            naive += *trial_of(t, OUTLOOK_LAST_WEEK, origin, lead);
            if (width[lead / OUTLOOK_WEEK] < 0)
                continue;
            o->judged++;
            inside += missed <= width[lead / OUTLOOK_WEEK] + 1e-9;
        }
    }
    o->error = error / (double)o->trials;
    o->naive_error = naive / (double)o->trials;
    o->covered = o->judged ? (double)inside / (double)o->judged : 0;
}

static void outlook_tell(const struct trials *t, double *room, struct outlook *o)
{
    double width[OUTLOOK_WEEKS_MAX] = {0};
    o->method = t->chosen[t->n];
    o->n = t->leads;
    widths_at(t, t->n, room, width);
    for (size_t lead = 0; lead < t->leads; lead++) {
        double mid = outlook_value(o->method, t->v, t->n, lead);
        double half = width[lead / OUTLOOK_WEEK];
        o->points[lead] = (struct outlook_point){mid, fmax(0, mid - half), mid + half};
    }
}

void outlook_run(const double *demand, size_t n, size_t weeks, struct outlook *ret)
{
    size_t skip = n > OUTLOOK_PAST ? n - OUTLOOK_PAST : 0;
    struct trials t = {.v = demand + skip, .n = n - skip};
    *ret = (struct outlook){.days = t.n};
    if (t.n < OUTLOOK_NEED || !weeks)
        return;
    size_t most = (t.n - OUTLOOK_NEED) / OUTLOOK_WEEK + 1;
    most = most < OUTLOOK_WEEKS_MAX ? most : OUTLOOK_WEEKS_MAX;
    ret->weeks = weeks < most ? weeks : most;
    t.leads = ret->weeks * OUTLOOK_WEEK;
    trials_make(&t);
    trials_choose(&t);
    double *room = xcalloc((size_t)(OUTLOOK_LOOK + OUTLOOK_WEEK) * OUTLOOK_WEEK, sizeof(*room));
    outlook_judge(&t, room, ret);
    outlook_tell(&t, room, ret);
    free(room);
    free(t.missed);
    free(t.chosen);
}

size_t outlook_full(const struct outlook *o, double gpus, bool early)
{
    size_t i = 0;
    while (i < o->n && (early ? o->points[i].high : o->points[i].mid) < OUTLOOK_FULL * gpus)
        i++;
    return i;
}

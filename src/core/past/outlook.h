/* SPDX-License-Identifier: Apache-2.0 */
/* outlook.h - how many GPUs a pool will need on each day of the next weeks, and how wrong that was.
 *
 * Pure. What goes in is the mean demand of each past day, the newest last; a day without demand is
 * a zero. Several simple methods are tried on the days that are known: at each past midnight each
 * of them foretells the weeks behind it, of which the truth is there. At every such midnight the
 * method that had been best until then is taken (the naive one, "as last week", unless another was
 * better by OUTLOOK_BETTER), so what is told of the error is that of forecasts as they would have
 * been made, with nothing of their future in them. The interval of a week ahead is as wide as those
 * forecasts were wrong so many weeks ahead: four in five of them would have been inside.
 *
 * A week ahead that could not be tried on OUTLOOK_WEEK past midnights is not told; with less than
 * OUTLOOK_NEED days nothing is. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum {
    OUTLOOK_WEEK = 7,
    OUTLOOK_WEEKS_MAX = 13,
    OUTLOOK_NEED = 35,  /* days of history for one week ahead, and seven for each further one */
    OUTLOOK_LOOK = 56,  /* days whose truth judges methods and widths */
    OUTLOOK_PAST = 182, /* older days are not looked at */
};
#define OUTLOOK_INSIDE 0.8  /* of an interval */
#define OUTLOOK_BETTER 0.98 /* of the naive error, or less: then a method is worth leaving it */
#define OUTLOOK_FULL 0.95   /* of the capacity: gangs never pack the rest */

/* The words leave the process (JSON). The first is the naive one. */
#define OUTLOOK_METHOD_TABLE(X)                                                                    \
    X(LAST_WEEK, last_week) /* as the same day of the week before */                               \
    X(WEEKDAYS, weekdays)   /* the mean of that weekday over four weeks */                         \
    X(LONG, long_weekdays)  /* over twelve */                                                      \
    X(LEVEL, level)         /* the mean of the last week, on each day */                           \
    X(MONTH, month)         /* the mean of the last four weeks, on each day */                     \
    X(RECENT, recent)       /* the last three days' level, with the weekdays' shape */             \
    X(DAY, last_day)        /* the last day, on each day */                                        \
    X(TREND, trend)         /* a line through eight weeks, with the weekdays' shape */
#define X(name, word) OUTLOOK_##name,
enum outlook_method { OUTLOOK_METHOD_TABLE(X) OUTLOOK_METHODS };
#undef X

struct outlook_point {
    double mid, low, high; /* GPUs, the mean of a day */
};

struct outlook {
    size_t days;  /* of history that were looked at */
    size_t weeks; /* that are told; 0 = not enough history, and nothing below is set */
    enum outlook_method method;
    size_t trials;             /* days that were foretold and held against the truth */
    double error, naive_error; /* mean absolute error of these, GPUs */
    size_t judged;             /* trials that had an interval */
    double covered;            /* share of these that were inside; 0 without any */
    size_t n;                  /* points: days, from the one behind the history on */
    struct outlook_point points[OUTLOOK_WEEKS_MAX * OUTLOOK_WEEK];
};

/* demand >= 0 of n days. Tells `weeks` at most, and OUTLOOK_WEEKS_MAX. */
void outlook_run(const double *demand, size_t n, size_t weeks, struct outlook *ret);

/* The first point at which so many GPUs are full; early: at the upper end of the interval. o->n:
 * none of those that are told. */
size_t outlook_full(const struct outlook *o, double gpus, bool early);

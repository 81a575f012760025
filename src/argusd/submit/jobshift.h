/* SPDX-License-Identifier: Apache-2.0 */
/* jobshift.h - what a change of a waiting job would do to it and to those that wait beside it: the
 * scheduler's copies run ahead with and without it, from the same moment. A part of plan.c. */
#pragma once
#include "argusd/kit/api.h"
#include "base/field.h"
#include "core/past/forecast.h"

struct jobshift_beside;

/* Zeroed: nothing is changed. */
struct jobshift {
    char *id;            /* of the job */
    struct sched *as_is; /* without the change, until it was run */
    struct jobshift_beside *v;
    size_t n;
    usec_t was50, was90; /* the job's own start as it is; the scheduler's clock, 0 = not foreseen */
};

/* A job that would start at another time; wall. */
struct jobshift_other {
    const char *job, *user; /* NULL: one that may not be seen */
    usec_t before, after;   /* 0 = not foreseen */
};
extern const struct field_table jobshift_other_table;

/* The copies are made: on the loop. */
void jobshift_begin(struct jobshift *w, const struct sched *s, const char *id);
void jobshift_release(struct jobshift *w);
/* On a worker; nothing happens where nothing is changed. e may be NULL. */
void jobshift_run(struct jobshift *w, const struct forecast_error *e, usec_t now);
/* What the run with the change has foreseen: its rows. */
void jobshift_take(struct jobshift *w, const struct forecast_row *rows, size_t n);
/* On the loop again: those that start a minute earlier or later at least. `v` is to be freed; texts
 * are the live jobs'. */
struct field_list jobshift_others(const struct jobshift *w, const struct api_eyes *eyes);

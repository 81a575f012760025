/* SPDX-License-Identifier: Apache-2.0 */
/* goodput.h - how much of a job's time went into steps that counted, and how often to save.
 *
 * Goodput is the time of the steps that were not run again over the time that the attempts held
 * their slots. How often to save follows from what a save takes (C) and how far failures are apart
 * (M), both as measured: T = sqrt(2 C M) (J. W. Young, "A first order approximation to the optimum
 * checkpoint interval", CACM 17(9), 1974) in the form that holds for short M too: sqrt(2 C M)
 * (1 + sqrt(C / 2M) / 3 + C / 18M) - C for C < 2 M, else M (J. T. Daly, "A higher order estimate
 * of the optimum checkpoint interval for restart dumps", FGCS 22(3), 2006). Pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/field.h"

enum { GOODPUT_ATTEMPTS_MAX = 64 };
/* Per cent of the time of ten steps one after another that lay between them, at most. The words
 * leave the process (JSON). */
#define GOODPUT_TENS_TABLE(X) X(2) X(5) X(10) X(15) X(20) X(30) X(40) X(50) X(70) X(100)
#define X(percent) GOODPUT_TENS_##percent,
enum goodput_tens { GOODPUT_TENS_TABLE(X) GOODPUT_TENS };
#undef X

/* The step times of one attempt. */
struct goodput_attempt {
    int k;
    uint64_t steps, lost; /* steps reported; of these, steps that a later attempt ran again */
    double good_s, lost_s;
    uint64_t saves;
    double save_s;          /* all saves together */
    double unsaved_s;       /* steps since the newest save, which are gone if nobody goes on */
    double between_s;       /* between steps, where the log says how long each took: reading data */
    int tens[GOODPUT_TENS]; /* how many tens of steps had that part of their time between them */
    int ten;                /* steps of the ten that is not whole: it is not kept */
    double ten_s, ten_between_s; /* what these took, and what lay between them */
    /* Moments, by the clock under which they were read; 0 = not yet. The first step began; the
     * newest that counted ended, the newest at all, the first that no older attempt had reached. */
    usec_t first_at, kept_at, last_at, fresh_at;
};

/* The sums of a job, one entry per attempt in order; attempts past the ceiling are counted in
 * the last entry. Zeroed to begin. */
struct goodput_sums {
    struct goodput_attempt v[GOODPUT_ATTEMPTS_MAX];
    size_t n;
};

/* A step of attempt k. seconds, save_s: NaN or 0 where not known, or where nothing was saved. */
void goodput_add(struct goodput_sums *s, int k, bool lost, double seconds, double save_s);
/* So long after the step before did this one come, beyond the step_s that it took itself. May be
 * below 0: one record is read late, the next one early; the sum counts. */
void goodput_add_between(struct goodput_sums *s, int k, double seconds, double step_s);
/* Which part of its time lay between the steps of the best tenth of all tens, 0 to 1, rounded up to
 * a bound of GOODPUT_TENS_TABLE; NaN: there are not ten tens. */
double goodput_least_between(const struct goodput_sums *s);
/* The part of all tens, 0 to 1, between whose steps more than so many per cent of their time lay; 0
 * where there are none. percent: a bound of GOODPUT_TENS_TABLE. */
double goodput_tens_above(const struct goodput_sums *s, int percent);
/* The step of goodput_add() ended at this moment. fresh: no older attempt had reached it. */
void goodput_add_moment(struct goodput_sums *s, int k, bool lost, usec_t ended, bool fresh);
extern const struct field_table goodput_attempt_table;
/* From a list of them; what has another form is left out. */
void goodput_from_json(const json_t *array, struct goodput_sums *ret);

struct goodput {
    uint64_t steps, lost; /* steps that counted, and steps that were run again */
    double good_s, lost_s, held_s;
    double ratio;      /* good_s of held_s; NaN: nothing was held */
    double save_s;     /* of one save; NaN: not known */
    double mtbf_s;     /* held time between two failures; NaN: there was none */
    int64_t save_freq; /* in steps; 0: there is no saying */
};
/* held_s: the time that the attempts held their slots; failures: their interruptions. */
void goodput_judge(const struct goodput_sums *s, double held_s, int failures, struct goodput *ret);

/* Seconds between the end of one save and the beginning of the next, as above. */
double goodput_interval(double save_s, double mtbf_s);

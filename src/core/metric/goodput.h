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

/* The step times of one attempt. */
struct goodput_attempt {
    int k;
    uint64_t steps, lost; /* steps reported; of these, steps that a later attempt ran again */
    double good_s, lost_s;
    uint64_t saves;
    double save_s;    /* all saves together */
    double unsaved_s; /* steps since the newest save, which are gone if nobody goes on */
    double between_s; /* between steps, where the log says how long each took: reading data */
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
/* So long after the step before did this one come, beyond what it took itself. May be below 0: one
 * record is read late, the next one early; the sum counts. */
void goodput_add_between(struct goodput_sums *s, int k, double seconds);
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

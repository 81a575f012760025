/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of gpu_idle.h on recorded trainings (tests/golden/phases), made slower: their GPUs rest
 * while they load, test and save, and work for the rest of the time. No phase of theirs may be
 * called idle where the log names it, and where it does not only until it is learnt. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/unit.h"
#include "core/metric/gpu_idle.h"

enum { WINDOW = 30, LAPS = 2 }; /* minutes; a run that is resumed does all of it again */
static const struct gpu_idle_rule RULE = {.least = 0.05,
                                          .window = WINDOW * USEC_MIN,
                                          .span = WINDOW * USEC_MIN,
                                          .warn = 15 * USEC_MIN};
static const char *const RUNS[] = {"grpo-0.5.0", "grpo-0.8.0", "grpo-0.9.1", "ppo-0.5.0",
                                   "ppo-0.9.1"};

/* A job minute by minute, and how often it was warned. */
struct slow_run {
    struct gpu_idle w;
    bool has_phases;
    long minute;
    double use[WINDOW];
    int rests, warned;
};

static void slow_run_pass(struct slow_run *o, long minutes, enum hang_phase phase, bool rests)
{
    for (long m = 0; m < minutes; m++, o->minute++) {
        double sum = 0;
        o->use[o->minute % WINDOW] = rests ? 0 : 0.9;
        for (int i = 0; i < WINDOW; i++)
            sum += o->use[i];
        const struct gpu_idle_look look = {.now = (usec_t)(o->minute + WINDOW) * USEC_MIN,
                                           .use = o->minute < WINDOW ? NAN : sum / WINDOW,
                                           .phase = phase,
                                           .has_phases = o->has_phases};
        o->warned += gpu_idle_see(&o->w, &RULE, &look) == GPU_IDLE_WARN;
    }
    o->rests += rests;
}

/* each() with each line of a recorded run. */
static void each_line(const char *run,
                      void (*each)(const char *line, size_t n, void *arg),
                      void *arg)
{
    _cleanup_(freep) char *path = xasprintf("%s/phases/%s.log", GOLDEN_DIR, run);
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    while ((n = getline(&line, &room, f)) > 0)
        each(line, (size_t)n, arg);
    free(line);
    (void)fclose(f);
}

/* ---- the log names them ---- */

struct named_phases {
    struct slow_run run;
    enum hang_phase phase;
    long rest, work; /* minutes that a line of each kind stands for */
};

static void pass_named(const char *line, size_t n, void *arg)
{
    struct named_phases *o = arg;
    o->phase = hang_phase_read(o->phase, line, n);
    bool rests = o->phase != HANG_TRAINING && o->phase != HANG_FIRST;
    slow_run_pass(&o->run, rests ? o->rest : o->work, o->phase, rests);
}

static void warns_in_no_phase_that_a_log_names(void **state)
{
    static const long rests[] = {10, 45, 300}, works[] = {5, 60};
    (void)state;
    for (size_t i = 0; i < array_len(RUNS) * array_len(rests) * array_len(works); i++) {
        const char *name = RUNS[i % array_len(RUNS)];
        struct named_phases o = {.run.has_phases = true,
                                 .rest = rests[i / array_len(RUNS) % array_len(rests)],
                                 .work = works[i / array_len(RUNS) / array_len(rests)]};
        each_line(name, pass_named, &o);
        assert_true(o.run.rests > 10);
        if (o.run.warned)
            fail_msg("%s: warned %d times, %ld minutes a phase", name, o.run.warned, o.rest);
    }
}

/* ---- nobody names them ---- */

struct unnamed_phases {
    struct slow_run run;
    long first;      /* minutes that its first rest takes */
    double a_minute; /* seconds of the recorded run that become a minute; 0: not known yet */
    double work;     /* seconds since the rest before */
};

static double seconds_of(const char *line, const char *name)
{
    const char *at = strstr(line, name);
    return at ? strtod(at + strlen(name), NULL) : 0;
}

/* What a step's line says: it worked, and then it tested and saved. */
static void pass_unnamed(const char *line, size_t n, void *arg)
{
    struct unnamed_phases *o = arg;
    double rest =
        seconds_of(line, "timing_s/testing:") + seconds_of(line, "timing_s/save_checkpoint:");
    (void)n;
    o->work += seconds_of(line, "timing_s/step:");
    if (rest <= 0)
        return;
    o->a_minute = o->a_minute > 0 ? o->a_minute : rest / (double)o->first;
    slow_run_pass(&o->run, lround(o->work / o->a_minute), HANG_ENVIRONMENT, false);
    slow_run_pass(&o->run, lround(rest / o->a_minute), HANG_ENVIRONMENT, true);
    o->work = 0;
}

static void learns_phases_that_nobody_names(void **state)
{
    static const long firsts[] = {40, 60, 90};
    (void)state;
    for (size_t i = 0; i < array_len(RUNS) * array_len(firsts); i++) {
        const char *name = RUNS[i % array_len(RUNS)];
        struct unnamed_phases o = {.first = firsts[i / array_len(RUNS)]};
        for (int lap = 0; lap < LAPS; lap++) /* its work goes on over the end of a lap */
            each_line(name, pass_unnamed, &o);
        assert_true(o.run.rests >= 4);
        if (o.run.warned != 2) /* two are needed to learn from */
            fail_msg("%s: warned %d times in %d rests of about %ld minutes", name, o.run.warned,
                     o.run.rests, o.first);
    }
}

static void warns_each_time_of_what_is_beyond_all_patience(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_len(RUNS); i++) {
        struct unnamed_phases o = {.first = (GPU_IDLE_PATIENCE + 1) * (long)WINDOW};
        for (int lap = 0; lap < LAPS; lap++)
            each_line(RUNS[i], pass_unnamed, &o);
        assert_int_equal(o.run.warned, o.run.rests);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warns_in_no_phase_that_a_log_names),
        cmocka_unit_test(learns_phases_that_nobody_names),
        cmocka_unit_test(warns_each_time_of_what_is_beyond_all_patience),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

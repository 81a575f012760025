/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of sample_figures.h. */
#include "core/sample/sample_figures.h"

#include <math.h>
#include <string.h>

#include "base/unit.h"
#include "core/sample/sample_mark.h"
#include "core/training/training_figure.h"

static void assert_near(double x, double want)
{
    if (!(fabs(x - want) < 1e-6))
        fail_msg("%g, not %g", x, want);
}

/* Three groups: one solved, one that failed as a whole with one text, one that teaches. */
static void shares_of_a_step(void **state)
{
    struct sample_place v[] = {
        {.prompt = 3, .group = 30, .score = 0, .answer = 5, .repeats = 500},
        {.prompt = 1, .group = 10, .score = 1, .answer = 1, .wide_answer = 1000},
        {.prompt = 2, .group = 20, .score = 0, .answer = 4, .wide_prompt = 600},
        {.prompt = 1, .group = 10, .score = 1, .answer = 2, .repeats = 100},
        {.prompt = 3, .group = 30, .score = 1, .answer = 5},
        {.prompt = 2, .group = 20, .score = 0, .answer = 4},
        {.prompt = 4, .group = 40, .score = 1, .answer = 6},
        {.prompt = 2, .group = 20, .score = NAN, .answer = 4},
    };
    struct sample_place before[] = {{.prompt = 9}, {.prompt = 1}, {.prompt = 4}, {.prompt = 1}};
    double x[SAMPLE_FIGURES];
    (void)state;
    sample_figures(v, array_len(v), 1, before, array_len(before), x);
    assert_near(x[SAMPLE_FLAT], 2.0 / 3);
    assert_near(x[SAMPLE_SOLVED], 1.0 / 3);
    assert_near(x[SAMPLE_SAME], 2.0 / 3);
    assert_near(x[SAMPLE_ONE], 3.0 / 8);
    assert_near(x[SAMPLE_REPEATS], 0.6 / 8);
    assert_near(x[SAMPLE_FRESH], 0.5);
    assert_near(x[SAMPLE_WIDE_ANSWERS], 1.0 / 8);
    assert_near(x[SAMPLE_WIDE_PROMPTS], 0.6 / 8);
}

static void marks_of_a_step(void **state)
{
    struct sample_place v[] = {{.prompt = 1, .group = 1, .marks = SAMPLE_IS_BLANK},
                               {.prompt = 2, .group = 2, .marks = SAMPLE_HAS_TEMPLATE},
                               {.prompt = 3, .group = 3, .marks = SAMPLE_HAS_TEMPLATE},
                               {.prompt = 4, .group = 4}};
    double x[SAMPLE_FIGURES];
    (void)state;
    sample_figures(v, array_len(v), 1, NULL, 0, x);
    assert_near(x[SAMPLE_BLANK], 0.25);
    assert_near(x[SAMPLE_TEMPLATE], 0.5);
}

/* A step of which each prompt has so many answers; with_uid: of two answers a group each. */
static double twins_of(const size_t *answers, size_t prompts, bool with_uid)
{
    struct sample_place v[64] = {0};
    double x[SAMPLE_FIGURES];
    size_t n = 0;
    for (size_t i = 0; i < prompts; i++)
        for (size_t k = 0; k < answers[i]; k++, n++) {
            v[n].prompt = 1 + i;
            v[n].group = with_uid ? 100 + n / 2 : 1 + i;
        }
    sample_figures(v, n, 1, NULL, 0, x);
    return x[SAMPLE_TWINS];
}

static void prompts_that_come_twice(void **state)
{
    static const size_t all_once[] = {4, 4, 4}, one_twice[] = {4, 8, 4}, uneven[] = {4, 5, 4};
    static const size_t single[] = {1, 1, 2}, pairs[] = {2, 2}, one[] = {8};
    (void)state;
    assert_near(twins_of(all_once, 3, false), 0);
    assert_near(twins_of(one_twice, 3, false), 0.25);
    assert_true(isnan(twins_of(uneven, 3, false)));
    assert_true(isnan(twins_of(single, 3, false))); /* two answers to it, or it came twice */
    assert_near(twins_of(pairs, 2, true), 0);
    assert_near(twins_of(one, 1, true), 0.75);
    assert_near(twins_of(one, 1, false), 0);
}

/* Nothing is told of what is not there: a score, a step before, a group, a sample. */
static void what_is_not_told(void **state)
{
    struct sample_place v[] = {{.prompt = 1, .group = 1, .score = NAN},
                               {.prompt = 2, .group = 2, .score = 0}};
    double x[SAMPLE_FIGURES];
    (void)state;
    sample_figures(v, array_len(v), NAN, NULL, 0, x);
    assert_true(isnan(x[SAMPLE_FLAT]) && isnan(x[SAMPLE_SOLVED]) && isnan(x[SAMPLE_SAME]));
    assert_true(isnan(x[SAMPLE_FRESH]) && isnan(x[SAMPLE_ONE]));
    assert_near(x[SAMPLE_REPEATS], 0);
    sample_figures(NULL, 0, NAN, NULL, 0, x);
    for (size_t i = 0; i < SAMPLE_FIGURES; i++)
        assert_true(isnan(x[i]));
    /* As long as no score was ever better than another nothing is solved. */
    struct sample_place none[] = {{.group = 1, .score = 0}, {.group = 1, .score = 0}};
    sample_figures(none, array_len(none), NAN, NULL, 0, x);
    assert_near(x[SAMPLE_FLAT], 1);
    assert_near(x[SAMPLE_SOLVED], 0);
}

/* The verdict looks for them by the same names. */
static void names_are_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAMPLE_FIGURES; i++) {
        bool is_known = false;
        for (size_t k = 0; k < training_names_n; k++)
            is_known = is_known || !strcmp(training_names[k].name, sample_figure_names[i]);
        assert_true(is_known);
        assert_true(
            !strncmp(sample_figure_names[i], METRIC_OF_SAMPLES, sizeof(METRIC_OF_SAMPLES) - 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_of_a_step),        cmocka_unit_test(marks_of_a_step),
        cmocka_unit_test(prompts_that_come_twice), cmocka_unit_test(what_is_not_told),
        cmocka_unit_test(names_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

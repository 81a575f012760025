/* SPDX-License-Identifier: Apache-2.0 */
/* sample_figures.c - shares of groups, of prompts and of texts; see sample_figures.h. */
#include "core/sample/sample_figures.h"

#include <math.h>
#include <stdbool.h>

#include "base/mem.h"
#include "core/sample/sample_effect.h"
#include "core/sample/sample_mark.h"

const char *const sample_figure_names[] = {
#define X(e, name) name,
    SAMPLE_FIGURE_TABLE(X)
#undef X
};

/* ---- groups ---- */

static bool figures_is_same(const struct sample_place *v, size_t n)
{
    size_t same = 1;
    while (same < n && v[same].answer == v[0].answer)
        same++;
    return same >= n;
}

/* How many groups there are, also those of fewer than two scored answers. */
static size_t figures_of_groups(struct sample_place *v, size_t n, double best, double *ret)
{
    size_t all = 0, groups = 0, flat = 0, solved = 0, same = 0;
    struct sample_effect effect;
    sample_order_by_group(v, n);
    sample_effect(v, n, &effect);
    ret[SAMPLE_BY_PROMPT] = effect.by_prompt;
    ret[SAMPLE_BY_ANSWER] = effect.by_answer;
    for (size_t i = 0, step, scored; i < n; i += step) {
        step = sample_order_group(v, i, n, &scored);
        all++;
        if (scored < 2)
            continue;
        double least = v[i].score, most = v[i + scored - 1].score;
        groups++;
        flat += most <= least;
        solved += least >= best; /* never of NaN */
        same += figures_is_same(v + i, step);
    }
    if (!groups)
        return all;
    ret[SAMPLE_FLAT] = (double)flat / (double)groups;
    ret[SAMPLE_SOLVED] = (double)solved / (double)groups;
    ret[SAMPLE_SAME] = (double)same / (double)groups;
    return all;
}

/* ---- prompts ---- */

static int figures_by_answer(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* How often the most frequent answer came. */
static size_t figures_most(const struct sample_place *v, size_t n)
{
    _cleanup_(freep) uint32_t *answers = xcalloc(n, sizeof(*answers));
    size_t most = 0, row = 0;
    for (size_t i = 0; i < n; i++)
        answers[i] = v[i].answer;
    xsort(answers, n, sizeof(*answers), figures_by_answer);
    for (size_t i = 0; i < n; i++) {
        row = i && answers[i] == answers[i - 1] ? row + 1 : 1;
        most = row > most ? row : most;
    }
    return most;
}

/* v is sorted by prompt. */
static size_t figures_count_prompts(const struct sample_place *v, size_t n)
{
    size_t prompts = 0;
    for (size_t i = 0; i < n; i++)
        prompts += !i || v[i].prompt != v[i - 1].prompt;
    return prompts;
}

/* How many from i on, which is one of them, are of one prompt, v being sorted so. */
static size_t figures_of_one_prompt(const struct sample_place *v, size_t i, size_t n)
{
    size_t end = i + 1;
    while (end < n && v[end].prompt == v[i].prompt)
        end++;
    return end - i;
}

/* How many groups the step has by the numbers of answers, where each prompt has as many as the one
 * with the fewest, or a multiple of them: dumps before verl 0.9 have no uid. 0: they do not tell.
 * v is sorted by prompt. */
static size_t figures_groups_by_number(const struct sample_place *v, size_t n)
{
    size_t least = n;
    for (size_t i = 0, answers; i < n; i += answers) {
        answers = figures_of_one_prompt(v, i, n);
        least = answers < least ? answers : least;
    }
    for (size_t i = 0, answers; i < n; i += answers) {
        answers = figures_of_one_prompt(v, i, n);
        if (answers % least)
            return 0;
    }
    return least > 1 ? n / least : 0;
}

/* v is sorted by prompt. */
static double figures_twins(const struct sample_place *v, size_t n, size_t groups, size_t prompts)
{
    size_t by_number = figures_groups_by_number(v, n);
    if (groups <= prompts && by_number) /* of one prompt alone all are one group */
        groups = by_number;
    if (groups < prompts || (groups == prompts && !by_number))
        return NAN;
    return 1 - (double)prompts / (double)groups;
}

static void figures_of_prompts(struct sample_place *v,
                               size_t n,
                               size_t groups,
                               struct sample_place *before,
                               size_t n_before,
                               double *ret)
{
    sample_order_by_prompt(v, n);
    size_t prompts = figures_count_prompts(v, n), fresh = 0;
    if (prompts >= ONE_PROMPTS)
        ret[SAMPLE_ONE] = (double)figures_most(v, n) / (double)n;
    ret[SAMPLE_TWINS] = figures_twins(v, n, groups, prompts);
    if (!n_before)
        return;
    sample_order_by_prompt(before, n_before);
    for (size_t i = 0; i < n; i++) {
        if (i && v[i].prompt == v[i - 1].prompt)
            continue;
        size_t at = sample_order_prompt(before, n_before, v[i].prompt);
        fresh += at == n_before || before[at].prompt != v[i].prompt;
    }
    ret[SAMPLE_FRESH] = (double)fresh / (double)prompts;
}

/* ---- texts ---- */

static void figures_of_texts(const struct sample_place *v, size_t n, double *ret)
{
    double repeats = 0, answers = 0, prompts = 0;
    size_t blank = 0, turns = 0;
    for (size_t i = 0; i < n; i++) {
        repeats += v[i].repeats;
        answers += v[i].wide_answer;
        prompts += v[i].wide_prompt;
        blank += (v[i].marks & SAMPLE_IS_BLANK) != 0;
        turns += (v[i].marks & SAMPLE_HAS_TEMPLATE) != 0;
    }
    ret[SAMPLE_REPEATS] = repeats / SAMPLE_SHARE / (double)n;
    ret[SAMPLE_WIDE_ANSWERS] = answers / SAMPLE_SHARE / (double)n;
    ret[SAMPLE_WIDE_PROMPTS] = prompts / SAMPLE_SHARE / (double)n;
    ret[SAMPLE_BLANK] = (double)blank / (double)n;
    ret[SAMPLE_TEMPLATE] = (double)turns / (double)n;
}

void sample_figures(struct sample_place *v,
                    size_t n,
                    double best,
                    struct sample_place *before,
                    size_t n_before,
                    double ret[static SAMPLE_FIGURES])
{
    for (size_t i = 0; i < SAMPLE_FIGURES; i++)
        ret[i] = NAN;
    if (!n)
        return;
    figures_of_texts(v, n, ret);
    size_t groups = figures_of_groups(v, n, best, ret);
    figures_of_prompts(v, n, groups, before, n_before, ret);
}

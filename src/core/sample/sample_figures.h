/* SPDX-License-Identifier: Apache-2.0 */
/* sample_figures.h - what the samples of one step say of its training, each a share from 0 to 1.
 * They are told as metrics of the step, under these names. Pure. */
#pragma once
#include "core/sample/sample_order.h"

enum { ONE_PROMPTS = 4 };

/* X(enumerator, name). Groups are those of two scored answers and more.
 * FLAT     groups of which all answers have the same score: with GRPO they teach nothing
 * SOLVED   groups of which each answer has the greatest score that the run has seen
 * SAME     groups of which all answers are the same text
 * ONE      answers that are the most frequent text of the step, whatever they answer; none is told
 *          of fewer than ONE_PROMPTS prompts
 * REPEATS  how much of an answer stood in it before, in the mean: sample_repeats()
 * FRESH    prompts that neither of the two steps dumped before had
 * BY_PROMPT, BY_ANSWER  how much of the spread of the scores follows the prompt, and within a
 *          group the answer: sample_effect.h, a little below 0 where it follows neither
 * BLANK, TEMPLATE  answers without a word, and answers with turns of a chat: sample_mark.h
 * TWINS    groups whose prompt another group of the step has, too; none is told where neither the
 *          uid nor the numbers of answers tell groups of one prompt apart
 * WIDE_ANSWERS, WIDE_PROMPTS  bytes that are not ASCII: of another language, or no text */
#define SAMPLE_FIGURE_TABLE(X)                                                                     \
    X(SAMPLE_FLAT, "samples/flat_groups")                                                          \
    X(SAMPLE_SOLVED, "samples/solved_groups")                                                      \
    X(SAMPLE_SAME, "samples/same_answers")                                                         \
    X(SAMPLE_ONE, "samples/one_answer")                                                            \
    X(SAMPLE_REPEATS, "samples/repeats")                                                           \
    X(SAMPLE_FRESH, "samples/fresh_prompts")                                                       \
    X(SAMPLE_BY_PROMPT, "samples/score_by_prompt")                                                 \
    X(SAMPLE_BY_ANSWER, "samples/score_by_answer")                                                 \
    X(SAMPLE_WIDE_ANSWERS, "samples/wide_answers")                                                 \
    X(SAMPLE_WIDE_PROMPTS, "samples/wide_prompts")                                                 \
    X(SAMPLE_BLANK, "samples/blank_answers")                                                       \
    X(SAMPLE_TEMPLATE, "samples/template_answers")                                                 \
    X(SAMPLE_TWINS, "samples/twin_prompts")
enum sample_figure {
#define X(e, name) e,
    SAMPLE_FIGURE_TABLE(X)
#undef X
        SAMPLE_FIGURES
};
extern const char *const sample_figure_names[];

/* v: the samples of the step. best: the greatest score that the run has seen, NaN: none. before:
 * those of the two steps before, none at the first ones. NaN where there is nothing to tell. v and
 * before are sorted anew. */
void sample_figures(struct sample_place *v,
                    size_t n,
                    double best,
                    struct sample_place *before,
                    size_t n_before,
                    double ret[static SAMPLE_FIGURES]);

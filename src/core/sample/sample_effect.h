/* SPDX-License-Identifier: Apache-2.0 */
/* sample_effect.h - whether the scores of a step follow anything: the prompt, the answer, or
 * neither, as scores that a die gives. Both shares are zero in the mean where there is nothing to
 * follow, and may then lie a little below. Pure.
 *
 * by_prompt is the omega squared of an analysis of variance with one factor; by_answer the adjusted
 * R squared of a linear model of the answers' traits, within the groups of one prompt. */
#pragma once
#include "core/sample/sample_order.h"

struct sample_effect {
    double by_prompt, by_answer; /* NaN: too few samples, or all have the same score */
};
/* v is sorted by group (sample_order_by_group()). */
void sample_effect(const struct sample_place *v, size_t n, struct sample_effect *ret);

/* How long the answer is, and how often each class of bytes is in it, each from 0 to 255. */
void sample_traits(const char *text, size_t n, uint8_t ret[static SAMPLE_TRAITS]);

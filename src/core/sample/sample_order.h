/* SPDX-License-Identifier: Apache-2.0 */
/* sample_order.h - the samples of one dump as numbers: what they sum up to, and in which order they
 * are told. Pure. */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum {
    SAMPLE_SHARE = 1000, /* parts of a whole, in which shares are kept */
    SAMPLE_TRAITS = 8,
};

struct sample_place {
    uint64_t offset; /* of its line in the dump */
    uint64_t prompt, group;
    double score;                      /* NaN: none */
    double change;                     /* as sample_order_compare() says; NaN: not known */
    uint32_t bytes;                    /* of the line, without its end */
    uint16_t repeats;                  /* of its answer, in SAMPLE_SHARE parts */
    uint16_t marks;                    /* of its answer: enum sample_marks */
    uint32_t answer;                   /* the same for the same answer */
    uint16_t wide_answer, wide_prompt; /* of their bytes those that are not ASCII, likewise */
    uint8_t traits[SAMPLE_TRAITS];     /* of its answer: sample_traits() */
};

struct sample_sum {
    uint64_t scored; /* samples with a score; the figures are theirs, NaN where there is none */
    double mean, least, most; /* score */
    uint64_t groups;          /* of two scored answers and more */
    uint64_t flat;            /* of those: all answers have the same score, so nothing is learned */
};
void sample_order_sum(const struct sample_place *v, size_t n, struct sample_sum *ret);

/* Sorts v by group, and by score within it: those without one stand last. */
void sample_order_by_group(struct sample_place *v, size_t n);
/* How many from i on are of one group, v being sorted so; the first *ret_scored have a score. */
size_t sample_order_group(const struct sample_place *v, size_t i, size_t n, size_t *ret_scored);
void sample_order_by_prompt(struct sample_place *v, size_t n);
/* Where this prompt begins, v being sorted so, or would stand. */
size_t sample_order_prompt(const struct sample_place *v, size_t n, uint64_t prompt);

/* The words are what a client asks for. */
#define SAMPLE_ORDER_TABLE(X)                                                                      \
    X(SAMPLE_AS_DUMPED, "dumped")                                                                  \
    X(SAMPLE_WORST, "worst")                                                                       \
    X(SAMPLE_BEST, "best")                                                                         \
    X(SAMPLE_CHANGED, "changed")
enum sample_order {
#define X(e, word) e,
    SAMPLE_ORDER_TABLE(X)
#undef X
        SAMPLE_ORDERS
};
/* NULL ends them. */
extern const char *const sample_order_names[];

/* Sets the change of each of v: the mean score of its prompt among v less that among before. NaN
 * where the prompt has no score on one of the sides. before is sorted anew. */
void sample_order_compare(struct sample_place *v,
                          size_t n,
                          struct sample_place *before,
                          size_t n_before);
/* Sorts v. Worst and best are those with a score, changed those with a change, the largest first;
 * how many they are: they stand at the front, the others behind them. */
size_t sample_order_sort(enum sample_order order, struct sample_place *v, size_t n);

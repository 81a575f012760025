/* SPDX-License-Identifier: Apache-2.0 */
/* sample.h - one line of verl's dump of what a model wrote, and measures of its text.
 *
 *   {"input": "2+2=", "output": "4", "gts": "4", "score": 1.0, "step": 3, "uid": "1f…_0_0",
 *    "request_id": "…", "acc": 1}
 *
 * input and output are there in each release, gts from 0.6.0 on, uid where verl sorts by it. All
 * other members are parts of the reward. Pure. Nothing is copied: values point into the line, which
 * lives as long as they are used. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum {
    SAMPLE_LINE_MAX = 8 << 20, /* bytes; the hook writes at most 4 MiB */
    SAMPLE_PARTS_MAX = 32,     /* more are counted only */
};

/* The JSON text of a value, with the quotes of a string. n 0: there is none. */
struct sample_value {
    const char *p;
    size_t n;
};

struct sample {
    struct sample_value input, output, gts, uid, request_id;
    double score; /* NaN: none, or no number */
    int64_t step; /* -1: none */
    struct sample_part {
        struct sample_value key, value;
    } parts[SAMPLE_PARTS_MAX];
    size_t n_parts, n_more; /* n_more: parts that are not here */
};

/* The object that is the whole line, but for blanks around it. False, and nothing is known: it is
 * none, is longer than SAMPLE_LINE_MAX, or has neither input nor output. */
bool sample_read(const char *line, size_t n, struct sample *ret);

/* Appends a string as the bytes that it stands for, which may be no UTF-8; any other value as it is
 * written. Past the ceiling of out out->failed is set. */
void sample_text(struct sample_value v, struct buf *out);
/* A number, true or false. False: it is neither, or not finite. */
bool sample_number(struct sample_value v, double *ret);

/* The same for the same prompt at any step. */
uint64_t sample_prompt(const struct sample *s);
/* The same for the answers to one prompt in one step: the sample's part of its uid
 * ({sample}_{rollout}_{output}), which is another at each step; else as the prompt. */
uint64_t sample_group(const struct sample *s);

/* The share of its runs of four words (letters, in a script without blanks) that stood in the text
 * before, 0 to 1. Of a long text the first SAMPLE_UNITS_MAX words are looked at. */
enum { SAMPLE_UNITS_MAX = 1 << 14 };
double sample_repeats(const char *text, size_t n);

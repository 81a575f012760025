/* SPDX-License-Identifier: Apache-2.0 */
/* promtext.h - the samples of a page in Prometheus' text form 0.0.4, one after the other. Pure.
 *
 * Reads what a peer wrote: nothing is allocated, a line is PROMTEXT_LINE_MAX bytes long and has
 * PROMTEXT_LABELS_MAX labels at most; one that is longer, or cannot be read, is skipped and
 * counted, and the others are read. Comments (HELP, TYPE) are skipped; a time stamp is ignored. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum { PROMTEXT_LINE_MAX = 8192, PROMTEXT_LABELS_MAX = 64 };

/* A piece of the page: borrowed, not terminated. */
struct promtext_piece {
    const char *p;
    size_t n;
};

struct promtext {
    const char *text, *end;
    unsigned lines, bad; /* samples met, and how many of them cannot be read */
    /* The sample. */
    struct promtext_piece name;
    struct {
        struct promtext_piece key, value; /* as it stands there: \" \\ \n are not undone */
    } labels[PROMTEXT_LABELS_MAX];
    size_t n_labels;
    double value;
};

struct promtext promtext_begin(const char *text, size_t n);
bool promtext_next(struct promtext *t); /* false at the end */
/* The value of a label; n = 0 and p = "" if it is not there. */
struct promtext_piece promtext_label(const struct promtext *t, const char *key);
bool promtext_piece_is(struct promtext_piece piece, const char *word);

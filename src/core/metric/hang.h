/* SPDX-License-Identifier: Apache-2.0 */
/* hang.h - whether a running job still makes progress: which part of it is late, and when that
 * is sure.
 *
 * A training is late when no new step came for `factor` times the median step, for twice the
 * longest step that was seen, and for `floor`, whichever is the longest. Before the first step
 * each phase has a limit of its own within which a line must be printed.
 *
 * Late is a suspicion only: the stacks of all ranks (stacks.h) decide. While a process moves,
 * the limit is doubled, a few times over. Time in which the job could not be observed does not
 * count: after it the watch begins anew. All times are of one steady clock. Pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

/* X(enumerator, what it is called in a sentence) */
#define HANG_PHASE_TABLE(X)                                                                        \
    X(HANG_ENVIRONMENT, "the start of its processes")                                              \
    X(HANG_MODEL, "loading the model")                                                             \
    X(HANG_FIRST, "the first rollout and step")                                                    \
    X(HANG_TRAINING, "training")                                                                   \
    X(HANG_VALIDATION, "validation")                                                               \
    X(HANG_SAVING, "saving a checkpoint")                                                          \
    X(HANG_FINISHING, "the end of the training")
enum hang_phase {
#define X(e, text) e,
    HANG_PHASE_TABLE(X)
#undef X
        HANG_PHASE_COUNT
};

/* The phase that the last mark of trainers in this piece of a log names; `before` if there is
 * none. Each line is looked at by itself; a line that is cut at an end may be missed. */
enum hang_phase hang_phase_read(enum hang_phase before, const char *text, size_t n);

struct hang_limits {
    double factor; /* times the median step; 0: nothing is ever late */
    usec_t floor;
    usec_t start[HANG_FIRST + 1]; /* of the phases up to the first step */
    usec_t silence;               /* of a job without steps; 0: such a job is never late */
};

/* The observations of an attempt at one moment. */
struct hang_look {
    usec_t now;
    bool blind;                 /* the job cannot be observed now */
    bool is_known;              /* a training of verl: its log names its phases */
    bool is_done;               /* all the steps that it was to make are made */
    uint64_t steps;             /* of training, that this attempt has told of */
    double median_s, longest_s; /* of the attempt's steps, in seconds; NaN: not known */
    uint64_t bytes;             /* of its output */
    enum hang_phase phase;
};

/* The watch over one attempt; zeroed to begin anew. */
struct hang {
    bool begun;
    uint64_t steps, bytes;
    usec_t step_at, output_at, phase_at;
    enum hang_phase phase;
    bool is_known, is_done;
    double median_s, longest_s;
    int grants; /* how often the time was doubled since the last progress */
};

/* How often: after that, what moves is called hung too. */
enum { HANG_GRANTS_MAX = 4 };

/* Take this in. True: the attempt went on (a step; before the first and after the last, output). */
bool hang_see(struct hang *h, const struct hang_look *look);

enum hang_kind { HANG_NOTHING, HANG_NO_STEP, HANG_NO_OUTPUT };
struct hang_late {
    enum hang_kind kind;
    usec_t span, limit; /* it is late for so long, where this much is fine */
    usec_t silent;      /* nothing was printed for so long */
};
/* Is it late at this moment? */
bool hang_is_late(const struct hang *h,
                  const struct hang_limits *limits,
                  usec_t now,
                  struct hang_late *ret);

/* Grants the same time again because a process moves, or because that cannot be found out.
 * False: the job has had enough. */
bool hang_grant(struct hang *h);

/* "no new step for 4m10s (a step takes 12s, 3m are allowed)", as a message: its code, and its
 * arguments into text. */
const char *hang_late_message(const struct hang *h,
                              const struct hang_late *late,
                              char *text,
                              size_t size);

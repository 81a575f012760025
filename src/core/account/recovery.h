/* SPDX-License-Identifier: Apache-2.0 */
/* recovery.h - how much of a job's time went into training, and what each interruption cost.
 *
 * The time of a job, from the plan of its first attempt to its end, is cut into the parts of
 * RECOVERY_PART_TABLE. Each microsecond is in exactly one of them, so that their sum is the time
 * that its attempts held their slots plus the time that it waited to be started again:
 *
 *     planned   first step   last that counted   last   fault   noticed   ended    planned
 *        |--start--|--productive, other--|--redo-----------|-detect-|-diagnose-|-queue-|--start…
 *
 * ETTR is the productive part of that sum. The word and its idea, productive time over the time in
 * which a job ran or could have run, are those of A. Kokolis et al., "Revisiting Reliability in
 * Large-Scale Machine Learning Research Clusters", HPCA 2025 (arXiv:2410.21680). Ours is narrower
 * on both sides: productive are only steps that counted, by what they say they took, and not the
 * time between two steps; the wait before the first attempt is told beside it, for it is the
 * queue's and no repair. MTTR is the mean time from a failure to the end of the first step that no
 * attempt had reached before it.
 *
 * Where a time is not known, the part that it would end is empty and its time goes to the next one.
 * A clock that jumps back makes a part empty, never negative. Pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"

/* The words leave the process (JSON: "productive_s"). */
#define RECOVERY_PART_TABLE(X)                                                                     \
    X(PRODUCTIVE, productive) /* steps that counted */                                             \
    X(DETECT, detect)         /* from the fault until it was noticed */                            \
    X(DIAGNOSE, diagnose)     /* until the attempt was ended, with what was found */               \
    X(QUEUE, queue)           /* until the next attempt had its slots */                           \
    X(START, start)           /* from there until its first step began */                          \
    X(REDO, redo)             /* steps that were run again, or cut off by the fault */             \
    X(OTHER, other)           /* between steps, and after the last; all of a job without steps */
#define X(name, word) RECOVERY_##name,
enum recovery_part { RECOVERY_PART_TABLE(X) RECOVERY_PARTS };
#undef X

enum recovery_end {
    RECOVERY_RUNS,        /* it has not ended */
    RECOVERY_DONE,        /* it ended by itself, or because somebody wanted it to */
    RECOVERY_PREEMPTED,   /* its slots were taken; it goes on later */
    RECOVERY_NOT_STARTED, /* it was given up before it ran */
    RECOVERY_FAILED,
};

/* One attempt, by the wall clock; 0 = not known, or not yet. Texts are borrowed, NULL = none. */
struct recovery_attempt {
    enum recovery_end end;
    usec_t planned; /* its slots were given */
    usec_t fault, noticed, ended;
    usec_t first;      /* its first step began */
    usec_t kept, last; /* its last step that counted ended, and its last step */
    usec_t fresh;      /* its first step that no older attempt had reached ended */
    double good_s;     /* its steps that counted, by what they say */
    const char *class; /* of its failure */
    const char *node;  /* that may be at fault */
};

struct recovery_job {
    const struct recovery_attempt *v; /* in order */
    size_t n;
    usec_t queued, now; /* now: where what has not ended ends */
    bool waits;         /* it is in the queue now */
    double gpus;
    const char *user; /* for the book; borrowed */
};

struct recovery {
    usec_t part[RECOVERY_PARTS];
    usec_t held, waited; /* by its attempts; for attempts after the first: together the parts */
    usec_t first_wait;   /* for the first attempt: in no part */
    bool told;           /* at least one step */
    double ettr;         /* NaN: it has told of no step */
    int failures, interruptions; /* the latter with preemptions and starts that came to nothing */
    int repaired;                /* failures with a new step behind them */
    double repair_s;             /* of these, together */
    double mttr_s;               /* NaN: nothing was repaired */
};
void recovery_judge(const struct recovery_job *job, struct recovery *ret);

/* ---- over many jobs ---- */

/* What is summed up under one name: of a class or node what its interruptions cost, of a user all
 * that his jobs did. Times are in GPU-seconds but for repair_s. */
struct recovery_sum {
    char *name;
    size_t jobs, failures, interruptions, repaired;
    double part_s[RECOVERY_PARTS], wait_s; /* wait_s: of first attempts, of users alone */
    double repair_s;
    size_t seen; /* the last job that was counted in `jobs` */
};
/* All but what is productive, and what an interruption has no part in. */
double recovery_cost(const struct recovery_sum *s);

/* Interruptions that are no failures stand under words of their own: "preempted", "not_started";
 * a failure without a class is "unknown". */
enum recovery_by { RECOVERY_BY_CLASS, RECOVERY_BY_NODE, RECOVERY_BY_USER, RECOVERY_BYS };

/* Names of each kind that are kept; what comes after is only counted. */
enum { RECOVERY_NAMES_MAX = 2000 };

struct recovery_book;
/* seed: 16 random bytes. */
struct recovery_book *recovery_book_new(const unsigned char seed[static 16]);
void recovery_book_free(struct recovery_book *b); /* NULL is fine */
void recovery_book_add(struct recovery_book *b, const struct recovery_job *job);
/* The sum over all jobs that told of a step. Borrowed. */
const struct recovery_sum *recovery_book_total(const struct recovery_book *b);
/* The costliest first, by name where they cost the same. Borrowed until the next call but this. */
const struct recovery_sum *const *recovery_book_list(struct recovery_book *b,
                                                     enum recovery_by by,
                                                     size_t *ret_n);
/* How often a name of this kind found no room. */
size_t recovery_book_left_out(const struct recovery_book *b, enum recovery_by by);

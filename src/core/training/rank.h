/* SPDX-License-Identifier: Apache-2.0 */
/* rank.h - which rank of a training is slower than the others, and why it may be.
 *
 * Each rank tells windows of some seconds (hook/argus_ranks.py): how long it worked, and how long
 * it waited in collectives for the others. All wait for the slowest, so the slow rank is the one
 * that works for longer than the others do and waits for less. It is told once that holds in each
 * of the newest RANK_WINDOWS windows. More than a quarter of the ranks are no slow ones: then the
 * work is uneven, as with samples of uneven length.
 *
 * A connection that is slow delays all ranks alike. It is found by the shortest round trip that
 * each rank measures: that of the slow one is long to everybody.
 *
 * Pure. What a rank tells is outside bytes: rank_read() has ceilings, and a judgement never says
 * more than that. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/field.h"

enum {
    RANKS_MAX = 4096,       /* of a job that are read */
    RANK_BYTES_MAX = 16384, /* of what one tells */
    RANK_WINDOWS = 3,       /* that are judged */
    RANK_NODE_MAX = 64,
    RANK_ID_MAX = 32,
};
#define RANK_FRESH (60 * USEC_SEC) /* windows that ended before that are not of now */

/* Sums of the newest windows of one rank, as shares of their time but for rtt. NaN: not told. */
struct rank_told {
    char id[RANK_ID_MAX]; /* of its world: a job may have several */
    int64_t rank, world, pid;
    char node[RANK_NODE_MAX];
    usec_t at; /* the end of the newest window; wall */
    size_t n;  /* windows that follow one another, up to RANK_WINDOWS */
    struct rank_window {
        double work, wait; /* of its seconds */
    } w[RANK_WINDOWS];     /* the newest first */
    double work, wait;     /* over all of them, as below */
    double cpu, throttled; /* seconds a second */
    double faults;         /* major page faults a second */
    double disk;           /* bytes a second */
    double rtt;            /* the shortest round trip in all of them, milliseconds */
};
/* False: it is nothing that a rank tells, or no window has a collective in it. */
bool rank_read(const char *text, size_t n, struct rank_told *ret);

/* X(enumerator, word): what a rank may be slow by. The message is "rank_slow_" and its word. */
#define RANK_CAUSE_TABLE(X)                                                                        \
    X(RANK_CPU_CAP, "cpu_cap")   /* its cgroup holds it back */                                    \
    X(RANK_MEMORY, "memory")     /* its pages come from the disk */                                \
    X(RANK_DISK, "disk")         /* it reads or writes, and the processor rests */                 \
    X(RANK_NETWORK, "network")   /* its connections have long round trips */                       \
    X(RANK_BLOCKED, "blocked")   /* it waits for something outside: the processor rests */         \
    X(RANK_COMPUTES, "computes") /* it computes for longer: a slower machine, or more to do */
#define X(e, word) e,
enum rank_cause { RANK_CAUSE_TABLE(X) RANK_CAUSES };
#undef X
const char *rank_cause_to_string(enum rank_cause c);

struct rank_verdict {
    bool is_judged; /* all ranks of a world told of now; else nothing is known */
    size_t ranks;   /* of the world */
    bool is_slow;   /* one is, the slowest of them: */
    int64_t rank;
    char node[RANK_NODE_MAX];
    enum rank_cause cause;
    double factor; /* times the work of the others; of RANK_NETWORK the round trip */
    double lost;   /* share of the time of all ranks that is lost by waiting for it */
};
void rank_judge(const struct rank_told *v, size_t n, usec_t now, struct rank_verdict *ret);

/* The sentence of a slow rank, as base/message.h has it: its code, the arguments into text. */
const char *rank_message(const struct rank_verdict *v, char *text, size_t size);
/* As it is shown: "SlowRank" in openapi.json. Returns its sentence in English; yours. */
extern const struct field_table rank_table;
char *rank_to_json(const struct rank_verdict *v, usec_t since, struct jout *j);

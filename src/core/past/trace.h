/* SPDX-License-Identifier: Apache-2.0 */
/* trace.h - a list of past jobs, as a CSV file has them: when each was submitted, how
 * long it ran, how many GPUs it held, in which cluster (here: pool).
 *
 * Pure: text in, rows out. The first line names the columns submit_time, duration_s,
 * num_gpus and cluster, in any order and among others, which are not looked at; without
 * `cluster` all rows are of the pool "all". Times are "YYYY-MM-DD HH:MM:SS" (taken as UTC)
 * or seconds since 1970. Fields may be in double quotes, lines may end in CR LF. Rows may
 * come in any order; the same row twice is two jobs; 0 seconds and 0 GPUs are jobs, too. */
#pragma once
#include <stddef.h>

#include "base/clock.h"
#include "base/err.h"

enum {
    TRACE_MAX_ROWS = 1000000,
    TRACE_MAX_POOLS = 1000,
    TRACE_MAX_GPUS = 8192, /* of one job */
    TRACE_MAX_NAME = 64,   /* bytes of a pool's name */
};

struct trace_row {
    usec_t submit, duration;
    int gpus;
    unsigned pool; /* index into pools */
    unsigned line; /* in the file */
};

struct trace_pool {
    char *name;
    size_t first, n; /* its rows */
};

/* Rows by pool, submission and line; pools by name. */
struct trace {
    struct trace_row *rows;
    size_t n;
    struct trace_pool *pools;
    size_t n_pools;
};

/* ERR_BAD_SPEC with "<name>:<line>: …" of the first bad row. */
must_check int trace_parse(const char *name,
                           const char *text,
                           size_t len,
                           struct trace *ret,
                           struct err *err);
void trace_release(struct trace *t);

/* From the first to the last submission of the whole trace; where they are one, the longest
 * duration; never 0. */
usec_t trace_span(const struct trace *t);
usec_t trace_start(const struct trace *t);

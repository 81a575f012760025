/* SPDX-License-Identifier: Apache-2.0 */
/* listsort.h - what a list of jobs can be sorted by, as parts of its SQL.
 *
 * An order is whole: what a job does not have (yet) goes last in either direction, and of equal
 * ones the newest goes first. So a page that begins behind a job repeats none and leaves none out
 * while the rows stay as they are. */
#pragma once
#include "store/store.h"

struct buf;

/* Its number in the query, of the numbered parameters that the order needs. */
struct listsort_params {
    int now, cursor; /* the clock, for spans that have not ended; seq of the last job before */
};

/* " AND …": only the jobs that come after the one with that seq. */
void listsort_add_after(const struct store_job_query *q,
                        struct listsort_params params,
                        struct buf *sql);
/* " ORDER BY …" */
void listsort_add_order(const struct store_job_query *q,
                        struct listsort_params params,
                        struct buf *sql);

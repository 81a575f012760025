/* SPDX-License-Identifier: Apache-2.0 */
/* gpurow.h - what a job used of each of its GPUs: rows out of the books that scouts keep
 * (evidence/gpubooks.h), as they are kept with the job. */
#pragma once
#include "base/field.h"
#include "base/json.h"
#include "core/figure/gpu_card.h"
#include "core/job/gang.h"

enum {
    GPUROW_ATTEMPTS_MAX = 8, /* the newest ones, of which each GPU has a row */
    GPUROW_ROWS_MAX = 1024,  /* of a job, unless its newest attempt alone has more */
};

/* One GPU of one attempt of a job, since that began. Below 0: not known. */
struct gpurow {
    char node[128], uuid[FIGURE_UUID_MAX];
    int gpu;
    int attempt;       /* 0: the sum of all attempts that have no rows any more, of no node */
    double rank;       /* the lowest of the job's processes on it */
    bool by_processes; /* seen by its processes; else by the lease's index */
    double watched_s;  /* seconds that were watched */
    double busy_s;     /* of these, in which the GPU worked for the job */
    double used_joules, mem_peak_bytes;
};
extern const struct field_table gpurow_table;

/* Nothing is known of it. */
struct gpurow gpurow_blank(void);

/* The rows of one book: of the GPUs that the lease has there, and of those that its processes are
 * on. has_part: the lease is of a part of a GPU, and a GPU's work is the job's only where its
 * processes were seen. Room for FIGURE_GPUS_MAX. */
size_t gpurow_list(const struct gpu_sample *book,
                   const struct gang_node *node,
                   int attempt,
                   bool has_part,
                   struct gpurow *ret);
/* The row of a GPU in record_extra.gpus; false: there is none. */
bool gpurow_find(const json_t *rows, const char *node, int gpu, int attempt, struct gpurow *ret);

/* What stays of the attempts before this one, out of the rows that are kept: the newest whole
 * attempts that fit into `room` rows and GPUROW_ATTEMPTS_MAX, and before these the sum of all
 * others, if there are any. free() it. */
size_t gpurow_earlier(const json_t *rows, int attempt, size_t room, struct gpurow **ret);
/* The sum of all rows: times and energy added up, of memory the most. */
struct gpurow gpurow_sum(const json_t *rows);

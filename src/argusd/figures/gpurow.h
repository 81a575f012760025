/* SPDX-License-Identifier: Apache-2.0 */
/* gpurow.h - what a job used of each of its GPUs: rows out of the books that scouts keep
 * (evidence/gpubooks.h), as they are kept with the job. */
#pragma once
#include "base/field.h"
#include "base/json.h"
#include "core/figure/gpu_card.h"

/* One GPU of the newest attempt of a job, since that began. Below 0: not known. */
struct gpurow {
    char node[128], uuid[FIGURE_UUID_MAX];
    int gpu, attempt;
    double rank;       /* the lowest of the job's processes on it */
    bool by_processes; /* seen by its processes; else by the lease's index */
    double watched_s;  /* seconds that were watched */
    double busy_s;     /* of these, in which the GPU worked for the job */
    double used_joules, mem_peak_bytes;
};
extern const struct field_table gpurow_table;

/* The rows of one book: of the GPUs that the lease has there, and of those that its processes are
 * on. Room for FIGURE_GPUS_MAX. */
size_t gpurow_list(const struct gpu_sample *book,
                   const char *node,
                   uint64_t leased,
                   int attempt,
                   struct gpurow *ret);
/* The row of a GPU in record_extra.gpus; false: there is none. */
bool gpurow_find(const json_t *rows, const char *node, int gpu, struct gpurow *ret);

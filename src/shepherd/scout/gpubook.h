/* SPDX-License-Identifier: Apache-2.0 */
/* gpubook.h - what the GPUs of a node have done since an attempt began, added up from samples.
 * Pure.
 *
 * For each GPU: how long it was watched, for how much of that it worked, energy and peak memory;
 * for each process on it its share of that work, never more in sum than the GPU's own. So what a
 * job used is the sum of its processes', and what all jobs used on a node is never more than the
 * node's. */
#pragma once
#include "core/figure/gpu_card.h"

/* UNKNOWN stands for a process that the book has not met, or could not place yet; STRANGER for one
 * that is known to be of no job, or of an earlier attempt. */
enum gpubook_is { GPUBOOK_UNKNOWN, GPUBOOK_OURS, GPUBOOK_STRANGER, GPUBOOK_ANOTHERS };
struct gpubook_who {
    enum gpubook_is (*is)(int pid, void *arg);
    double (*rank)(int pid, void *arg); /* below 0: it has none */
    void *arg;
};

/* A span between two samples is never counted as longer: a machine that slept did not work. */
#define GPUBOOK_SPAN_MAX (60 * USEC_SEC)

/* Adds a sample; span: since the one before, 0 for the first. */
void gpubook_add(struct gpu_sample *book,
                 const struct gpu_sample *now,
                 usec_t span,
                 const struct gpubook_who *who);

/* SPDX-License-Identifier: Apache-2.0 */
/* samplefigures.h - what the samples of each step say of a training, as records of metrics
 * (core/sample/sample_figures.h), and a few of them to look at, from the index of a job. Blocking.
 */
#pragma once
#include "core/metric/metric.h"
#include "core/sample/sample_pick.h"

struct samplefigures;

/* path: of the index, which may not be there yet. */
struct samplefigures *samplefigures_new(const char *path);
void samplefigures_free(struct samplefigures *f); /* NULL is fine */
/* The first step of training behind `after`, up to `last`, that the index has. False: it has none
 * now. *ret has its step and values; release it. */
bool samplefigures_next(struct samplefigures *f,
                        int64_t after,
                        int64_t last,
                        struct metric_record *ret);
/* Another number once the index has something else; 0: there is none. */
uint64_t samplefigures_stamp(const struct samplefigures *f);
/* Samples of the newest step of training up to this one; none where there is no such step. Sets
 * n, v and is_last of ret, and its stamp to 0 where the index cannot be read now. While somebody
 * writes to the index they are of what it has, and is_last is false. */
void samplefigures_pick(const struct samplefigures *f,
                        enum sample_pick_by by,
                        const char *job,
                        int64_t step,
                        struct sample_picks *ret);

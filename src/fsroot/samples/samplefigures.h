/* SPDX-License-Identifier: Apache-2.0 */
/* samplefigures.h - what the samples of each step say of a training, as records of metrics
 * (core/sample/sample_figures.h), from the index of a job. Blocking. */
#pragma once
#include "core/metric/metric.h"

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

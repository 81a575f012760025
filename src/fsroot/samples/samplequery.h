/* SPDX-License-Identifier: Apache-2.0 */
/* samplequery.h - samples of a job that are asked for, a page of them. Blocking.
 *
 * What is known to be secret is masked in a line before anything else is done with it: a search
 * finds only what is shown. */
#pragma once
#include "core/metric/loggrep.h"
#include "core/sample/sample.h"
#include "fsroot/attempt/mask.h"
#include "fsroot/samples/sampleindex.h"

struct samplequery_hit {
    int64_t step;
    uint64_t rank; /* its place among those that were asked for in this step, from 0 */
    const struct sample_place *place;
    const struct sample *sample; /* of the masked line */
};
/* False: that is enough. */
typedef bool (*samplequery_f)(const struct samplequery_hit *hit, void *arg);

struct samplequery {
    const char *root, *job;
    const struct sampleindex *index;
    enum sample_kind kind;
    int64_t step;  /* -1: the newest, and the older ones behind it with all_steps */
    int64_t since; /* of SAMPLE_CHANGED: the step that it is compared with */
    bool all_steps;
    bool has_prompt;
    uint64_t prompt;    /* a prompt, or a group of answers to one */
    double least, most; /* score; NaN: any, and none at all */
    enum sample_order order;
    struct loggrep *grep;    /* NULL: none. The answer or the prompt must match */
    const struct mask *mask; /* may be NULL */
    samplequery_f each;
    bool (*is_late)(void *arg); /* asked between two lines: the page ends then */
    void *arg;

    int64_t at_step; /* where it goes on; -1: at the beginning. In both directions */
    uint64_t at;     /* rank in this step */
    /* Results. */
    bool has_more;    /* at_step and at say where */
    uint64_t changed; /* dumps that are no longer what the index says, and were left out */
};
void samplequery_run(struct samplequery *q);

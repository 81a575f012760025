/* SPDX-License-Identifier: Apache-2.0 */
/* past.h - what finished runs like a job tell of it: which sizes fitted into the GPUs and which
 * ran out of their memory, which was faster, and how often it is worth to save.
 *
 * Two command lines of verl are alike when every override on them is the same, but for what cannot
 * change what a GPU holds (names, files, learning rates, how long and how often) and for the sizes:
 * …micro_batch_size_per_gpu, …max_token_len_per_gpu, gpu_memory_utilization. Of alike runs the one
 * whose sizes are all at most those of another needs at most its memory. Nothing else is
 * concluded, and no number is said that a run has not had. Pure and bounded. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "core/job/job.h"
#include "core/metric/goodput.h"

enum { PAST_RUNS_MAX = 200, PAST_SIZES_MAX = 16, PAST_ARGS_MAX = 512 };

struct past_size {
    char *key;
    double value;
};

/* A command line as it is compared. */
struct past_line {
    char *alike;                            /* what has to be the same; NULL: it cannot be told */
    char *work;                             /* what one step has to do: batches, samples, files */
    struct past_size sizes[PAST_SIZES_MAX]; /* by key */
    size_t n;
    int64_t save_freq, total_steps; /* 0: not given */
};

/* argv: an array of texts; NULL, or more of them than PAST_ARGS_MAX: nothing can be told. */
void past_line_read(const json_t *argv, struct past_line *ret);
void past_line_release(struct past_line *l);

/* The job that is asked for. Borrowed. */
struct past_kind {
    const struct past_line *line;
    const char *verl; /* NULL = not known */
    int64_t nnodes;
    double gpus_per_node;
};

/* A job that has ended, of the same workload and pool. Borrowed. */
struct past_row {
    const char *id, *project;
    const char *verl; /* the version that its command line follows; NULL = not known */
    enum job_state state;
    int64_t nnodes;
    double gpus_per_node;
    const json_t *argv;         /* array: the command line of its newest attempt */
    const json_t *metrics;      /* object: how its training went, see core/metric/metric_watch.h */
    usec_t ran;                 /* its newest attempt */
    enum finding_class finding; /* why the job failed, */
    enum finding_class newest;  /* and its newest attempt; FINDING_NONE = not known */
    int failures;               /* that were followed by another attempt */
};

enum past_end { PAST_OTHER, PAST_WORKED, PAST_DIED }; /* DIED: of the memory of its GPUs */

struct past_run {
    char *id, *project, *verl;
    int64_t nnodes;
    double gpus_per_node;
    struct past_line line;
    enum past_end end;
    bool succeeded;
    double step_s; /* of its newest attempt; NaN: not known */
    struct goodput_attempt told;
    double held_s; /* time of its newest attempt, and of the steps of those before */
    int failures;
};

/* The newest first: in the order in which they came. Zeroed to begin. */
struct past {
    struct past_run *v;
    size_t n;
};

/* Kept where its command line can be told and there is room. */
void past_add(struct past *p, const struct past_row *row);
/* Those that are no runs like kind's go: alike, of the same size, and of the same minor version of
 * verl as far as both are known. */
void past_keep(struct past *p, const struct past_kind *kind);
void past_release(struct past *p);

/* Objects as those of advise.h into the array that is open: keys "overrides.<Hydra key>". Silent
 * where the runs say nothing. */
void past_advise_sizes(const struct past *p, const struct past_line *asked, struct jout *j);
/* The same of how often to save, by runs of this project alone; false: they say nothing of it.
 * by_override: that is how the spec says it. */
bool past_advise_save(const struct past *p,
                      const struct past_line *asked,
                      const char *project,
                      bool by_override,
                      struct jout *j);

/* SPDX-License-Identifier: Apache-2.0 */
/* metricfile.h - the metrics of a job on the shared root: read from its attempts, merged into
 * jobs/<job>/metrics/metrics.jsonl.
 *
 * The source is attempts/<k>/metrics.jsonl where verl writes one, else the driver's log. Only what
 * is new is read. The merged file says of each line where in its source it came from, so it is
 * all that a reader needs to go on after a restart: nothing is lost and nothing doubled. When an
 * attempt begins at a step that older ones had passed, the file is written anew with their lines
 * from there on marked. An attempt's file and log are read as far as a ceiling, holes of a sparse
 * file left out. Every call may block. */
#pragma once
#include "base/clock.h"
#include "base/err.h"
#include "core/metric/metric_table.h"
#include "core/metric/metric_watch.h"
#include "core/training/training.h"

struct metric_reader;

struct metric_reader *metric_reader_new(const char *root, const char *job);
void metric_reader_free(struct metric_reader *r); /* NULL is fine */

/* Bytes that are read of the file of an attempt, and as many of its log; none is no ceiling. */
void metric_reader_set_most(struct metric_reader *r, uint64_t bytes);

/* Another source of values for steps that an attempt has told of: the first record of a step behind
 * `after`, up to `last`, which the pass releases. False: there is none now. */
typedef bool (*metric_more_f)(int64_t after, int64_t last, struct metric_record *ret, void *arg);
/* Before the first pass. A step's values are taken once a newer step was told, so that what they
 * are made of is there; each step once, in their order. What comes later than that is left out. */
void metric_reader_set_more(struct metric_reader *r, metric_more_f next, void *arg);

struct metric_pass {
    bool more;      /* the pass had its fill: there is more to read now */
    size_t records; /* new ones */
    bool is_cut;    /* the attempt says more than is read of one */
};

/* Read what the attempts up to this one have said since the last pass. ended: the last one writes
 * no more, its last line may lack an end. now: wall. What cannot be written or read now is tried
 * again by the next pass. */
must_check int metric_reader_pass(struct metric_reader *r,
                                  int attempt,
                                  bool ended,
                                  usec_t now,
                                  struct metric_pass *ret,
                                  struct err *err);
/* Borrowed until the next pass. */
const struct metric_watch *metric_reader_watch(const struct metric_reader *r);
/* Its verdict and its steps; borrowed until the next pass. */
struct training *metric_reader_training(const struct metric_reader *r);

enum { METRIC_VOIDS_MAX = 32 };

/* Steps that an attempt ran and a later one ran again. */
struct metric_void {
    int attempt;
    int64_t first, last;
};

/* A job's merged file as a table that follows it. */
struct metric_curves;

struct metric_curves *metric_curves_new(const char *root, const char *job, size_t points);
void metric_curves_free(struct metric_curves *c); /* NULL is fine */
/* Reads new records of the file, or all of it when it was replaced. A missing file is no error. */
must_check int metric_curves_update(struct metric_curves *c, struct err *err);
/* Borrowed until the next update. */
const struct metric_table *metric_curves_table(const struct metric_curves *c);
/* The values of those steps, coarser than the others'; borrowed until the next update. */
const struct metric_table *metric_curves_void_table(const struct metric_curves *c, size_t i);
/* The first ones, at most METRIC_VOIDS_MAX; borrowed. */
const struct metric_void *metric_curves_voids(const struct metric_curves *c, size_t *ret_n);
/* True if the file is larger than the part that is read. */
bool metric_curves_is_cut(const struct metric_curves *c);

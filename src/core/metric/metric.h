/* SPDX-License-Identifier: Apache-2.0 */
/* metric.h - one line of a log or metrics file as a record: a step and its values.
 *
 * Understood are verl's file logger ({"step":1,"data":{…}}), verl's line on the console
 * ("… step:1 - key:value - …", behind colours, actor names and progress bars), plain JSON lines
 * with a step and numbers ({"step":1,"total_steps":30,"loss":0.5}), alone or behind a progress
 * bar or a logger's prefix (what a value may be: metric_json.h), the scores of verl's main_eval as
 * Python prints a dict ({'test_score/gsm8k': np.float64(0.25)}), which have no step and get 0, and
 * our own merged file (metric_record_to_json()). Everything else is no record. All bytes are
 * allowed; what is too long is cut or left out and counted. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/json.h"
#include "core/metric/metric_order.h"

enum {
    METRIC_LINE_MAX = 1 << 20, /* bytes of one line; longer ones are no records */
    METRIC_VALUES_MAX = 2048,  /* of one record */
    METRIC_NAME_MAX = 200,     /* bytes of a key */
};

/* A line that any program can print to tell a metric. */
#define METRIC_LINE_EXAMPLE "{\"step\": 1, \"loss\": 0.5}"

struct metric_value {
    char *name;
    double value; /* NaN or infinite where training said so; null in JSON reads as NaN */
};

struct metric_record {
    int64_t step;
    struct metric_value *v; /* each name once, with its last value */
    size_t n;
    struct metric_order order; /* of v as it was read; a record made by hand has none */
    size_t left_out;           /* values past the ceilings */
    char *unread;              /* the key of the first value that is no number; NULL: none */
    size_t n_unread;           /* such values */

    int64_t total; /* steps of the whole training, 0 = not told */

    /* The attempt, in records of our merged file; else 0. */
    int attempt;
    uint64_t offset; /* of the byte after its line in the source */
    bool from_log;   /* the source is driver.log */
    bool is_made;    /* the source is none of the attempt's: see metric_reader_set_more() */
    usec_t at;       /* when it was read first */
    bool superseded; /* a later attempt has run this step again */
};

void metric_record_release(struct metric_record *r);

enum metric_line {
    METRIC_NOTHING,
    METRIC_RECORD,
    METRIC_TOTAL, /* ret->step is how many steps the training has: "Total training steps: 30" */
    METRIC_TOTAL_MAYBE, /* the total as an optimiser tells it: used where METRIC_TOTAL is missing */
};

/* line without its end. *ret is filled for everything but NOTHING; release it. */
enum metric_line metric_read_line(const char *line, size_t n, struct metric_record *ret);
/* The first byte of text (n bytes) that may belong to a line of interest; NULL: none. Quick. */
const char *metric_find(const char *text, size_t n);

/* Appends one line of the merged file, with its end. */
void metric_record_to_json(const struct metric_record *r, struct buf *out);

/* NaN where it has no such name. */
double metric_value(const struct metric_record *r, const char *name);
/* What the samples of a step say: "samples/flat_groups". It comes after the step's own record. */
#define METRIC_OF_SAMPLES "samples/"
/* What verl's main_eval tells of a data set: "test_score/openai/gsm8k". */
#define METRIC_OF_SCORES "test_score/"
/* False: all its values are of a validation, of scores or of samples, which are no step of
 * training. */
bool metric_is_training(const struct metric_record *r);
/* False: all that it tells are scores at step 0. They have no step, so they go back to none. */
bool metric_has_step(const struct metric_record *r);

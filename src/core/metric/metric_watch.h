/* SPDX-License-Identifier: Apache-2.0 */
/* metric_watch.h - how a training goes, from its records: progress, speed, curves in small, and
 * the first step at which something was wrong (not a number, a reward that fell back).
 *
 * Pure and bounded. The same records give the same answer, so it is made anew from the merged
 * file after a restart. */
#pragma once
#include "base/field.h"
#include "core/metric/metric.h"

struct metric_watch;

struct metric_watch *metric_watch_new(void);
void metric_watch_free(struct metric_watch *w); /* NULL is fine */

/* Records in their order; superseded ones are only counted. */
void metric_watch_add(struct metric_watch *w, const struct metric_record *r);
/* The steps of the whole training; what is sure is not changed by what is not. */
void metric_watch_set_total(struct metric_watch *w, int64_t total, bool sure);

int64_t metric_watch_step(const struct metric_watch *w);  /* -1: none yet */
int64_t metric_watch_total(const struct metric_watch *w); /* 0: not known */
/* The step that a record of a new attempt begins at is one that older attempts had reached. */
bool metric_watch_goes_back(const struct metric_watch *w, const struct metric_record *r);
/* An older attempt's record is void once `begin` came: the first record of a newer one. */
bool metric_is_void(const struct metric_record *old, const struct metric_record *begin);

/* The time of one step of the whole training, in seconds; NaN where not known. */
double metric_watch_step_seconds(const struct metric_watch *w);

/* How the newest attempt that told of a step goes. */
struct metric_pace {
    int attempt;      /* 0: none */
    uint64_t records; /* of training, that it has told of */
    int64_t step, total;
    double median_s;  /* of its newest steps, in seconds; NaN: not known */
    double longest_s; /* of them, with what lay between two; NaN */
    double reward;    /* the newest; NaN: none */
    usec_t ends_at; /* wall: the last step, at this pace from the newest record on; 0: not known */
    char
        bad_key[METRIC_NAME_MAX + 1]; /* has been no number since bad_step and still is; "": none */
    int64_t bad_step;
};
void metric_watch_pace(const struct metric_watch *w, struct metric_pace *ret);

/* How long the steps took that no later attempt ran again, in seconds. */
double metric_watch_useful(const struct metric_watch *w);

/* The newest step that was told of is one that an older attempt had reached. */
bool metric_watch_redoes(const struct metric_watch *w);

/* What went wrong in the training, each kind once. */
enum metric_trouble_kinds {
    METRIC_NOT_FINITE = 1 << 0, /* a metric that is no number */
    METRIC_COLLAPSED = 1 << 1,  /* the reward fell back */
};
struct metric_trouble {
    unsigned kinds;
    char bad_key[METRIC_NAME_MAX + 1]; /* the first that was no number, since bad_step */
    int64_t bad_step;
    int64_t fallen_step; /* where the mean of the reward was fallen_to, from best */
    double best, fallen_to;
};
void metric_watch_trouble(const struct metric_watch *w, struct metric_trouble *ret);
/* The kinds that metric_watch_to_json() wrote. */
unsigned metric_trouble_from_json(const json_t *metrics);

/* What a page shows of the training, as one object: "Training" in openapi.json. */
extern const struct field_table metric_training_table, metric_curve_table;
void metric_watch_to_json(const struct metric_watch *w, struct jout *j, const char *key);

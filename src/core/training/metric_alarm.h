/* SPDX-License-Identifier: Apache-2.0 */
/* metric_alarm.h - the alerts of a job's metrics (core/spec/metric_alert.h), asked at each record.
 *
 * An alert is of every metric that its pattern names, METRIC_ALARM_METRICS of them at most, and
 * holds while one of them does what it says. Pure and bounded; made anew from the merged file after
 * a restart. */
#pragma once
#include <stdbool.h>

#include "base/field.h"
#include "base/strv.h"
#include "core/metric/metric.h"
#include "core/sample/sample_pick.h"
#include "core/spec/metric_alert.h"
#include "core/training/spark.h"

/* METRIC_ALARMS_MAX: of a job and of its project together. Each has a bit in an unsigned.
 * METRIC_ALARM_SPANS: so many spans of one alert are kept, over all its metrics: the newest. */
enum {
    METRIC_ALARM_METRICS = 32,
    METRIC_ALARM_SPANS = 8,
    METRIC_ALARM_ARGS_MAX = 768,
    METRIC_ALARMS_MAX = 2 * METRIC_ALERTS_MAX
};

struct metric_alarms;

/* The job's own, then those of its project, without what the job says itself. What cannot be read
 * is left out: an older version took it. NULL is none. Copied. */
struct metric_alarms *metric_alarms_new(const struct strv *own, const struct strv *of_project);
void metric_alarms_free(struct metric_alarms *as); /* NULL is fine */
/* The same alerts, which have seen no record. NULL of NULL. */
struct metric_alarms *metric_alarms_like(const struct metric_alarms *as);
void metric_alarms_add(struct metric_alarms *as, const struct metric_record *r);

/* A run of steps during which an alert held for one metric. */
struct metric_alarm_span {
    const char *metric; /* borrowed */
    int64_t since;      /* the first step that counts for it */
    int64_t told;       /* the step at which it was clear */
    int64_t ended;      /* the step at which it did not hold any more; 0: it does */
    double value;       /* the metric's when it was clear; may be NaN */
};

/* What the i-th alert came to. */
struct metric_alarm {
    const char *alert;          /* as it was given; borrowed */
    bool of_project;            /* a rule of the job's project, and not the job's own */
    bool stands, seen;          /* it holds now; it ever did */
    const char *metric;         /* that does so now, or did last; NULL: none ever did. Borrowed */
    int64_t step;               /* since this one */
    int64_t told;               /* the step at which it was clear */
    double value;               /* at its newest record; NaN is one, too */
    double from;                /* its best, or its first; NaN where it is asked against neither */
    struct sample_picks *picks; /* that show it; NULL: nobody looked for them yet. Borrowed */
    double limit;               /* that its value is held against; NaN: none is */
    const char *curve;          /* of all its values up to then (spark.h); "" of none. Borrowed */
    const double *points;       /* of that curve, n_points; borrowed */
    size_t n_points;
    const struct metric_alarm_span *spans; /* when it held, the oldest first; borrowed */
    size_t n_spans;
};
size_t metric_alarms_count(const struct metric_alarms *as); /* 0 of NULL */
void metric_alarms_get(const struct metric_alarms *as, size_t i, struct metric_alarm *ret);
/* Copied. */
void metric_alarms_set_picks(struct metric_alarms *as, size_t i, const struct sample_picks *picks);
/* Its sentence, as base/message.h has it: its code, the arguments into text. */
const char *metric_alarm_message(const struct metric_alarm *a, char *text, size_t size);
/* Those that ever held, as bits; and of what metric_alarms_to_json() wrote. */
unsigned metric_alarms_seen(const struct metric_alarms *as);
unsigned metric_alarms_seen_from_json(const json_t *alarms);

/* Writes them as a list; a job without alerts has an empty one. */
extern const struct field_table metric_alarm_table;
void metric_alarms_to_json(const struct metric_alarms *as, struct jout *j, const char *key);

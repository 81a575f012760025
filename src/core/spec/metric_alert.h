/* SPDX-License-Identifier: Apache-2.0 */
/* metric_alert.h - an alert of a metric in one line, as `alerts` of a JobSpec or a project has it.
 *
 *   actor/entropy < 0.1 for 10 steps       also <= > >=
 *   val-core*acc/mean@1 falls 20 % from best
 *   response_length/mean rises 50 % from first
 *   actor/pg_loss is nan
 *
 * The name of a metric, where * and ? stand for any; it has no blank. A number may have a %, and is
 * a hundredth then. `falls … from best` is below the greatest value that it had by this share of
 * that, `rises … from best` above the smallest; `from first` takes its first value. `for N steps`:
 * in so many steps that told it, one after the other; 1 where it is not given. Words are in any
 * case. Pure. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

/* X(enumerator, how it is written) */
#define METRIC_ALERT_TABLE(X)                                                                      \
    X(METRIC_ALERT_BELOW, "<")                                                                     \
    X(METRIC_ALERT_AT_MOST, "<=")                                                                  \
    X(METRIC_ALERT_ABOVE, ">")                                                                     \
    X(METRIC_ALERT_AT_LEAST, ">=")                                                                 \
    X(METRIC_ALERT_FALLS, "falls")                                                                 \
    X(METRIC_ALERT_RISES, "rises")                                                                 \
    X(METRIC_ALERT_IS_NAN, "is")
#define METRIC_ALERT_ROW(e, word) e,
enum metric_alert_kind { METRIC_ALERT_TABLE(METRIC_ALERT_ROW) METRIC_ALERT_KINDS };
#undef METRIC_ALERT_ROW

/* METRIC_ALERTS_MAX: of a job's spec, and as many of its project. */
enum { METRIC_ALERTS_MAX = 16, METRIC_ALERT_TEXT_MAX = 300, METRIC_ALERT_STEPS_MAX = 100000 };

struct metric_alert {
    char *metric;
    enum metric_alert_kind kind;
    double number;   /* a share where it falls or rises */
    bool from_first; /* of these: else from best */
    int64_t steps;
};
void metric_alert_release(struct metric_alert *a);
/* ERR_BAD_SPEC with the column of what is not understood. */
must_check int metric_alert_parse(const char *text, struct metric_alert *ret, struct err *err);

/* SPDX-License-Identifier: Apache-2.0 */
/* training.h - all that is judged of one training: its verdict, the anatomy of its steps
 * and the alerts of its metrics, fed by the same records. Pure. */
#pragma once
#include "core/training/anatomy.h"
#include "core/training/metric_alarm.h"
#include "core/training/verdict.h"

struct training {
    struct verdict *verdict;
    struct anatomy *anatomy;
    struct metric_alarms *alarms; /* NULL until training_set_alerts() */
};
struct training *training_new(void);
/* One that has seen no record, of the same alerts and bounds. */
struct training *training_like(const struct training *t);
/* The alerts of the job's spec; before the first record, and once. */
void training_set_alerts(struct training *t, const struct strv *texts);
void training_free(struct training *t); /* NULL is fine */
/* A record that the watch has seen. */
void training_add(struct training *t,
                  const struct metric_record *r,
                  const struct metric_watch *watch);

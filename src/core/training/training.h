/* SPDX-License-Identifier: Apache-2.0 */
/* training.h - all that is judged of one training: its verdict, the anatomy of its steps
 * and the alerts of its metrics, fed by the same records; and the samples that show what is wrong.
 * Pure. */
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
/* The alerts of the job's spec, and those of its project; before the first record, and once. */
void training_set_alerts(struct training *t, const struct strv *own, const struct strv *of_project);
void training_free(struct training *t); /* NULL is fine */
/* Who has the samples of this training fills ret with those of its newest step up to `step`. */
typedef void training_pick_f(enum sample_pick_by by,
                             int64_t step,
                             struct sample_picks *ret,
                             void *arg);
/* Asks for the samples of what is wrong and of alerts that hold: once, and again as long as the
 * step at which that was clear may still come. stamp: of all samples that there are, another one
 * once there are more; 0: there are none. */
void training_pick(struct training *t, uint64_t stamp, training_pick_f *pick, void *arg);
/* A record that the watch has seen. */
void training_add(struct training *t,
                  const struct metric_record *r,
                  const struct metric_watch *watch);

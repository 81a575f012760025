/* SPDX-License-Identifier: Apache-2.0 */
/* jobrisk.h - what would become of a job if machines were drained or jobs stopped, as a row of a
 * plan: of the plan of a drain (api/machines/drainplan.c), and of plans that are kept (room ops).
 * Jobs that Argus did not submit have no row, and the same words for their fates. */
#pragma once
#include "argusd/kit/api.h"
#include "base/field.h"

enum jobrisk_fate { FATE_ENDS, FATE_STOPPED, FATE_RESTARTED, FATE_WAITED_FOR };
/* By fate, as they leave the process; NULL behind the last. */
extern const char *const jobrisk_fate_words[];
/* The fate of jobs that Argus did not submit; stops: somebody said that they are to be stopped. */
enum jobrisk_fate jobrisk_fate_of_others(bool stops);

/* Texts are borrowed from the job. */
struct jobrisk {
    const char *job, *name, *user, *project, *state;
    double gpus, gpus_here, at_risk_gpu_hours;
    int64_t step;
    usec_t ends_at, ends_late_at;
    int fate; /* enum jobrisk_fate */
};
extern const struct field_table jobrisk_table;

struct jobrisk_ask {
    const char *node; /* whose GPUs are "here"; NULL: all of the job's */
    enum node_then then;
    usec_t deadline; /* wall; 0: none */
};
void jobrisk_fill(const struct api *a,
                  const struct jobrisk_ask *ask,
                  const struct live *l,
                  struct jobrisk *ret);
/* What it saved last is where it goes on; what came after is lost. */
bool jobrisk_is_lost(const struct jobrisk *job);

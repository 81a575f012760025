/* SPDX-License-Identifier: Apache-2.0 */
/* view_attempts.h - the attempts of a job on its page, and what of them other pages show too. */
#pragma once
#include "argusd/jobs/record.h"
#include "base/field.h"
#include "core/account/slotbook.h"
#include "core/job/job.h"

struct api_eyes;

/* A finding in short: one that was made before the first attempt, or that of an attempt. Borrowed.
 */
struct view_brief {
    const char *class, *sentence, *node, *advice;
};

/* All borrowed. */
struct view_attempts_ask {
    const struct job *job;
    const struct record_extra *extra;
    const struct api_eyes *eyes;        /* who is shown it; NULL: nobody, it is written down */
    double gpus;                        /* of the job */
    const struct slotbook_held *leased; /* by the newest up to now; NULL: the job is over */
};
/* A list for view_attempt_table. Texts of the job are borrowed. */
void view_fill_attempts(const struct view_attempts_ask *ask, struct field_list *ret);
void view_release_attempts(struct field_list *attempts);

extern const struct field_table view_attempt_table, view_brief_table;
extern const struct field_table view_node_gpus_table; /* of struct gang_node */

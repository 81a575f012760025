/* SPDX-License-Identifier: Apache-2.0 */
/* view_item.h - a job in a list, of which its page is made too; view.c alone includes it.
 *
 * Made of the job's row in the store and, where it lives, of what memory knows better. */
#pragma once
#include "argusd/kit/saying.h"
#include "argusd/kit/view.h"
#include "base/field.h"
#include "core/account/slotbook.h"

/* Texts are borrowed for one answer, but for those of `reason`. */
struct job_item {
    struct store_job row;
    uint64_t flags;
    usec_t unknown_since, hold_until;
    struct reason now; /* of a live job: what `reason` borrows from */
    struct said reason;
    int position;
    const struct view_eta *eta;
    struct view_eta expected;
    const struct view_eta *ends;
    struct view_eta foreseen; /* what `ends` points to */
    double gpus, gpu_util, gpu_hours;
    double reward;           /* NaN: none */
    int64_t total_steps;     /* -1: not known */
    struct field_list nodes; /* its lease; borrowed */
};

/* item->reason is to be released. */
void view_fill_item(struct job_item *item,
                    const struct store_job *row,
                    const struct live *l,
                    const struct api_eyes *eyes);

/* With what the lease of l (may be NULL) holds, to the whole minute: a page that is the same keeps
 * its ETag. */
struct slotbook_held view_held(struct slotbook_held held, const struct live *l);
double view_hours(int64_t held);

/* SPDX-License-Identifier: Apache-2.0 */
/* jobtable.h - the tables of jobs: the list, the queue, and how the trainings go. */
#pragma once
#include "argus/cli/cli.h"

enum jobtable {
    JOBTABLE_LIST,
    JOBTABLE_ALL, /* the same, of everybody */
    JOBTABLE_QUEUE,
    JOBTABLE_TOP,
};

/* Print items of the list API (TOP: whole jobs); says on stderr what an empty one means and what
 * did not fit. */
void jobtable_print(struct cli *cli,
                    const json_t *jobs,
                    enum jobtable kind,
                    const struct when *w,
                    bool wide);

/* SPDX-License-Identifier: Apache-2.0 */
/* jobtable.h - the two tables of jobs: the list and the queue. */
#pragma once
#include "argus/cli.h"

enum jobtable { JOBTABLE_LIST, JOBTABLE_QUEUE };

/* Print items of the list API; says on stderr what an empty one means and what did not fit. */
void jobtable_print(struct cli *cli,
                    const json_t *jobs,
                    enum jobtable kind,
                    const struct when *w,
                    bool wide);

/* SPDX-License-Identifier: Apache-2.0 */
/* mergedlog.h - the logs of a job's driver and workers as one, each line behind the log it is of:
 * `logs --source all`. */
#pragma once
#include "argus/cli/cli.h"

enum { MERGEDLOG_TAIL_MAX = 2000 };

struct mergedlog_ask {
    const char *grep;      /* NULL: every line */
    int64_t attempt, tail; /* 0: the newest; as many as the server tells at once */
    bool follow;
};

/* Prints the newest lines; with follow, also those that come, until the job has ended. A lost
 * connection is made again, and no line is lost or doubled by it. Returns 0, with follow the exit
 * status of the job, 0 when detached by Ctrl-C. id: the job's whole id. */
must_check int mergedlog_run(struct cli *cli,
                             const char *id,
                             const struct mergedlog_ask *ask,
                             struct err *err);

/* SPDX-License-Identifier: Apache-2.0 */
/* logfiles.h - logs of a job beside the driver's: of its workers, of the scene of a failure. */
#pragma once
#include "argus/cli/cli.h"

struct logfiles_ask {
    const char *source;      /* "worker", "scene" */
    const char *node, *rank; /* NULL: any */
    const char *file;        /* pattern of a name; NULL: any */
    const char *grep;        /* NULL: every line */
    int64_t attempt, tail;   /* 0: the newest; everything */
    bool follow;
};

/* Prints those that fit, one after the other, each below a line that names it when there are more.
 * follow: the one that fits. Returns the exit status. id: the job's whole id. */
must_check int logfiles_run(struct cli *cli,
                            const char *id,
                            const struct logfiles_ask *ask,
                            struct err *err);

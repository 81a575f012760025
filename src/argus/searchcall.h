/* SPDX-License-Identifier: Apache-2.0 */
/* searchcall.h - lines that match a pattern, in the logs of all jobs that one may see. */
#pragma once
#include "argus/cli.h"

struct searchcall {
    const char *grep, *user, *project, *since; /* NULL: any */
    int64_t most;                              /* hits; 0: all */
};

/* Prints "ID/ATTEMPT:OFFSET: LINE" for each hit as its page comes. */
must_check int searchcall_run(struct cli *cli, const struct searchcall *call, struct err *err);
